// SPDX-License-Identifier: Apache-2.0
/// \file
/// What adapters.cpp needs of two engines: declarations as in llama.h, and an engine with a dense cache.
#pragma once

#include <cstdint>
#include <vector>

// ---- llama.cpp ---------------------------------------------------------------------------------------------------------

extern "C" {
using llama_token = std::int32_t;
using llama_pos = std::int32_t;
using llama_seq_id = std::int32_t;
struct llama_context;
struct llama_memory_i;
using llama_memory_t = llama_memory_i*;
struct llama_batch {
  std::int32_t n_tokens;
  llama_token* token;
  float* embd;
  llama_pos* pos;
  std::int32_t* n_seq_id;
  llama_seq_id** seq_id;
  std::int8_t* logits;
};
std::uint32_t llama_n_ctx(llama_context const*);
std::uint32_t llama_n_batch(llama_context const*);
std::uint32_t llama_n_seq_max(llama_context const*);
llama_memory_t llama_get_memory(llama_context const*);
bool llama_memory_seq_rm(llama_memory_t, llama_seq_id, llama_pos, llama_pos);
void llama_memory_seq_cp(llama_memory_t, llama_seq_id, llama_seq_id, llama_pos, llama_pos);
std::int32_t llama_decode(llama_context*, llama_batch);
float* llama_get_logits_ith(llama_context*, std::int32_t);
}

// ---- an engine with a dense cache ----------------------------------------------------------------------------------------

namespace engine {

/// All that a batch of decoder states holds: tensors whose first dimension is the row. With libtorch, keys, values and
/// the encoder's output of every layer, all torch::Tensor.
struct State {
  std::vector<std::vector<std::int32_t>> rows;  // here: what a row has seen
};

State encode(std::vector<std::vector<std::int32_t>> const& sources);
/// index_select(0, rows) of every tensor.
State select(State const& state, std::vector<std::int64_t> const& rows);
/// torch::cat({a, b}, 0) of every tensor.
State concatenate(State const& a, State const& b);
/// Appends tokens[i] to row i, all of them at one position. Returns logits [rows, V].
std::vector<float> decode(State& state, std::int64_t position, std::vector<std::int64_t> const& tokens);

inline constexpr std::int32_t vocabulary_size = 12, bos = 0, eos = 1;

}  // namespace engine
