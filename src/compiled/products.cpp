// SPDX-License-Identifier: Apache-2.0
// Products, for the processor that this file is compiled for, of programs that are compiled for the same (SLUICE_COMPILED_PRODUCTS).
#include <sluice/output/detail/packed/products.hpp>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

template void run(FloatPanels const&, MatrixView<float const> const&, ProductWriter const&, std::ptrdiff_t,
                  std::ptrdiff_t);
template void run(Bfloat16Panels const&, Bfloat16Rows const&, ProductWriter const&, std::ptrdiff_t, std::ptrdiff_t);
template void run(Int8Panels const&, Int8Rows const&, ProductWriter const&, std::ptrdiff_t, std::ptrdiff_t);

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
