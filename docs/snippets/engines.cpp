// SPDX-License-Identifier: Apache-2.0
// A stand-in for an engine, so that the adapter can run: logits are a hash of the tokens seen.
#include "engines.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace {

constexpr std::int32_t padding = -1;

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

State encode(std::vector<std::vector<std::int32_t>> const& sources) {
  State state{sources, std::vector<std::vector<std::int32_t>>(sources.size())};
  std::size_t longest = 0;
  for (auto const& source : sources) longest = std::max(longest, source.size());
  return pad(state, static_cast<std::int64_t>(longest));
}

std::int64_t width(State const& state) { return static_cast<std::int64_t>(state.memory.at(0).size()); }

State pad(State const& state, std::int64_t width) {
  auto padded = state;
  for (auto& row : padded.memory) row.resize(static_cast<std::size_t>(width), padding);
  return padded;
}

State select(State const& state, std::vector<std::int64_t> const& rows) {
  State chosen;
  for (auto const row : rows) {
    chosen.memory.push_back(state.memory.at(static_cast<std::size_t>(row)));
    chosen.seen.push_back(state.seen.at(static_cast<std::size_t>(row)));
  }
  return chosen;
}

State concatenate(State const& a, State const& b) {
  if (width(a) != width(b)) throw std::invalid_argument("memories of different widths");
  auto both = a;
  both.memory.insert(both.memory.end(), b.memory.begin(), b.memory.end());
  both.seen.insert(both.seen.end(), b.seen.begin(), b.seen.end());
  return both;
}

std::vector<float> decode(State& state, std::int64_t position, std::vector<std::int64_t> const& tokens) {
  if (tokens.size() != state.seen.size()) throw std::invalid_argument("tokens");
  std::vector<float> logits;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& seen = state.seen[i];
    if (seen.size() != static_cast<std::size_t>(position)) throw std::invalid_argument("position");
    seen.push_back(static_cast<std::int32_t>(tokens[i]));
    auto all = state.memory[i];
    std::erase(all, padding);
    all.insert(all.end(), seen.begin(), seen.end());
    for (std::int32_t v = 0; v < vocabulary_size; ++v) logits.push_back(logit(all, v));
  }
  return logits;
}

}  // namespace engine
