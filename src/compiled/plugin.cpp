// SPDX-License-Identifier: Apache-2.0
// A projection for processors of which the loader knows no level. A shared object of its own, which exports this function alone: no
// function that is compiled for such a processor can be linked in place of another file's.
#include "projection_of.hpp"

#include <cstddef>
#include <span>

extern "C" [[gnu::visibility("default")]] sluice::detail::AnyProjection*
sluice_projection(sluice::MatrixView<float const> const& weights, float const* bias, std::size_t bias_size,
                  sluice::Precision precision) {
  return sluice::detail::projection_of(weights, {bias, bias_size}, precision).release();
}
