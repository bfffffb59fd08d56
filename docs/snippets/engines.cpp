// SPDX-License-Identifier: Apache-2.0
// A stand-in for an engine, so that the adapter can run: logits are a hash of the tokens seen.
#include "engines.hpp"

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
