// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products that are written to a matrix, of all precisions. They are the largest templates of the library: with
/// SLUICE_COMPILED_PRODUCTS they are compiled once, in src/compiled/products.cpp, by those who build it with a program's own
/// flags.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/packed/packed_bfloat16.hpp>
#include <sluice/output/detail/packed/packed_float.hpp>
#include <sluice/output/detail/packed/packed_int8.hpp>
#include <sluice/output/detail/packed/product_writer.hpp>
#include <sluice/output/detail/packed/tile_blocks.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cstddef>

#ifdef SLUICE_COMPILED_PRODUCTS
#ifndef _OPENMP  // another instruction set's namespace
namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

extern template void run(FloatPanels const&, MatrixView<float const> const&, ProductWriter const&, std::ptrdiff_t,
                         std::ptrdiff_t);
extern template void run(Bfloat16Panels const&, Bfloat16Rows const&, ProductWriter const&, std::ptrdiff_t,
                         std::ptrdiff_t);
extern template void run(Int8Panels const&, Int8Rows const&, ProductWriter const&, std::ptrdiff_t, std::ptrdiff_t);

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
#endif
#endif
