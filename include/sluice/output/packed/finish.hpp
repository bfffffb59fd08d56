// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is applied to a packed product.
#pragma once

#include <sluice/language.hpp>

namespace sluice::inline v0 {

/// What is applied to a product before it is written: first relu, then add.
struct Finish {
  bool relu = false;  ///< negative numbers become 0; a NaN stays
  bool add = false;   ///< adds to what y holds (a residual connection)
};

}  // namespace sluice::inline v0
