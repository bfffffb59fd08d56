// SPDX-License-Identifier: Apache-2.0
/// \file
/// The precisions of products with packed weights, and what a product does to its sums before it writes them.
#pragma once

#include <sluice/language.hpp>

#include <cstdint>

namespace sluice::inline v0 {

/// What PackedMatrix::multiply applies to a product before it is written: first relu, then add.
struct Epilogue {
  bool relu = false;  ///< negative numbers become 0; a NaN stays
  bool add = false;   ///< adds to what y holds (a residual connection)
};

/// The stored precision of both factors of a product; sums have 32 bits, and results are float32.
enum class Precision : std::uint8_t {
  float32,   ///< unchanged
  bfloat16,  ///< 8 bits of precision and the range of a float, half the memory
  int8,      ///< integer multiples of 1/127 of a row's largest magnitude, a quarter of the memory; sums are exact
};

}  // namespace sluice::inline v0
