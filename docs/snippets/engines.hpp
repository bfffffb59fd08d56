// SPDX-License-Identifier: Apache-2.0
/// \file
/// What adapters.cpp needs: an engine with a dense cache.
#pragma once

#include <cstdint>
#include <vector>

// ---- an engine with a dense cache ----------------------------------------------------------------------------------------

namespace engine {

/// The decoder state of a batch: tensors whose first dimension is the row. With libtorch, keys, values and
/// the encoder's output of every layer, all torch::Tensor.
struct State {
  std::vector<std::vector<std::int32_t>> memory;  // here: a row's source, padded to the batch's longest
  std::vector<std::vector<std::int32_t>> seen;    // and the tokens that it was fed
};

State encode(std::vector<std::vector<std::int32_t>> const& sources);
/// index_select(0, rows) of every tensor.
State select(State const& state, std::vector<std::int64_t> const& rows);
/// The number of positions of the memory; and the memory padded with zeros, which the lengths of the sources mask.
std::int64_t width(State const& state);
State pad(State const& state, std::int64_t width);
/// torch::cat({a, b}, 0) of every tensor. Throws for memories of different widths, where a real engine may corrupt memory.
State concatenate(State const& a, State const& b);
/// Appends tokens[i] to row i, all at the same position. Returns logits [rows, V].
std::vector<float> decode(State& state, std::int64_t position, std::vector<std::int64_t> const& tokens);

inline constexpr std::int32_t vocabulary_size = 12, bos = 0, eos = 1;

}  // namespace engine
