// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a packed product does to its sums before it writes them.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0 {

/// What PackedMatrix::multiply applies to a product before it is written: first relu, then add.
struct Epilogue {
  bool relu = false;  ///< negative numbers become 0; a NaN stays
  bool add = false;   ///< adds to what y holds (a residual connection)
};

}  // namespace sluice::inline v0
