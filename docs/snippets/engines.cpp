// SPDX-License-Identifier: Apache-2.0
// Stand-ins for two engines, so that the adapters can run: logits are a hash of the tokens seen.
#include "engines.hpp"

#include <map>
#include <stdexcept>

namespace {

float logit(std::vector<std::int32_t> const& seen, std::int32_t token) {
  std::uint64_t key = 0x9E3779B97F4A7C15u;
  auto const add = [&](std::int32_t x) {
    key = (key ^ static_cast<std::uint64_t>(x + 7)) * 0xD1B54A32D192ED03u;
    key ^= key >> 29;
  };
  for (auto const x : seen) add(x);
  add(token);
  return static_cast<float>(key >> 40) * 0x1p-21f +
         (token == engine::eos ? 0.2f * static_cast<float>(seen.size()) : 0.0f);
}

}  // namespace

struct llama_memory_i {
  std::map<llama_seq_id, std::vector<llama_token>> sequences;
};
struct llama_context {
  llama_memory_i memory;
  std::map<std::int32_t, std::vector<float>> logits;
};

llama_context* fake_llama();
llama_context* fake_llama() {
  static llama_context context;
  return &context;
}
std::uint32_t llama_n_ctx(llama_context const*) { return 64; }
std::uint32_t llama_n_batch(llama_context const*) { return 8; }
std::uint32_t llama_n_seq_max(llama_context const*) { return 32; }
llama_memory_t llama_get_memory(llama_context const* context) { return const_cast<llama_memory_t>(&context->memory); }

bool llama_memory_seq_rm(llama_memory_t memory, llama_seq_id sequence, llama_pos first, llama_pos) {
  auto& tokens = memory->sequences[sequence];
  auto const kept = first < 0 ? 0u : static_cast<std::size_t>(first);
  if (kept < tokens.size()) tokens.resize(kept);
  return true;
}
void llama_memory_seq_cp(llama_memory_t memory, llama_seq_id from, llama_seq_id to, llama_pos, llama_pos) {
  memory->sequences[to] = memory->sequences[from];
}
std::int32_t llama_decode(llama_context* context, llama_batch batch) {
  if (batch.n_tokens > static_cast<std::int32_t>(llama_n_batch(context))) return -1;
  context->logits.clear();
  for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
    auto& tokens = context->memory.sequences[*batch.seq_id[i]];
    if (batch.n_seq_id[i] != 1 || batch.pos[i] != static_cast<llama_pos>(tokens.size())) return -1;
    tokens.push_back(batch.token[i]);
    if (batch.logits[i] != 0)
      for (std::int32_t v = 0; v < engine::vocabulary_size; ++v) context->logits[i].push_back(logit(tokens, v));
  }
  return 0;
}
float* llama_get_logits_ith(llama_context* context, std::int32_t i) { return context->logits.at(i).data(); }

namespace engine {

State encode(std::vector<std::vector<std::int32_t>> const& sources) { return {sources}; }

State select(State const& state, std::vector<std::int64_t> const& rows) {
  State chosen;
  for (auto const row : rows) chosen.rows.push_back(state.rows.at(static_cast<std::size_t>(row)));
  return chosen;
}

State concatenate(State const& a, State const& b) {
  auto both = a;
  both.rows.insert(both.rows.end(), b.rows.begin(), b.rows.end());
  return both;
}

std::vector<float> decode(State& state, std::int64_t position, std::vector<std::int64_t> const& tokens) {
  if (tokens.size() != state.rows.size()) throw std::invalid_argument("tokens");
  std::vector<float> logits;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& seen = state.rows[i];
    if (seen.size() != static_cast<std::size_t>(position) + 2)
      throw std::invalid_argument("position");  // 2: the source
    seen.push_back(static_cast<std::int32_t>(tokens[i]));
    for (std::int32_t v = 0; v < vocabulary_size; ++v) logits.push_back(logit(seen, v));
  }
  return logits;
}

}  // namespace engine
