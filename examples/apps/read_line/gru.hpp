// SPDX-License-Identifier: Apache-2.0
/// \file
/// One step of a GRU.
#pragma once

#include <cmath>
#include <cstddef>

namespace read_line {

/// \param inputs  [3 width]: of the input, for reset, update and the new state, with its bias
/// \param gates   [3 width]: of the state, likewise
/// \param from    the state [width]
/// \param to      the state after it; may be `from`
inline void gru_step(float const* inputs, float const* gates, float const* from, float* to, std::ptrdiff_t width) {
  auto const sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  for (std::ptrdiff_t i = 0; i < width; ++i) {
    auto const reset = sigmoid(inputs[i] + gates[i]), update = sigmoid(inputs[width + i] + gates[width + i]);
    auto const fresh = std::tanh(inputs[2 * width + i] + reset * gates[2 * width + i]);
    to[i] = (1 - update) * fresh + update * from[i];
  }
}

}  // namespace read_line
