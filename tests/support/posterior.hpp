// SPDX-License-Identifier: Apache-2.0
/// \file
/// Outputs of a table under a potential: the distribution that a ParticleSample estimates, by enumeration.
#pragma once

#include <sluice/core/noise.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/particle_sample.hpp>

#include <support/brute_force.hpp>
#include <support/table_model.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace sluice::test {

/// Accepts some outputs, by a hash of a few states; not all states can be completed.
struct HashedAutomaton {
  std::uint64_t salt = 1;
  std::int32_t states = 4;

  using State = std::int32_t;  // -1: dead
  State initial(Sentence const&) const { return 0; }
  State next(State state, Token token) const {
    if (state < 0) return -1;
    auto const x = derive(derive(salt, static_cast<std::uint64_t>(state)), static_cast<std::uint64_t>(token));
    if (token == eos) return state;
    return x % 3 == 0 ? -1 : static_cast<State>((x >> 8) % static_cast<std::uint64_t>(states));
  }
  std::int32_t progress(State) const { return 0; }
  std::int32_t total() const { return 0; }
  void wanted(State, std::vector<Token>&) const {}
  bool complete(State state) const { return state >= 0 && state % 2 == 1; }
  bool dead(State state) const { return state < 0; }
};

/// A factor of its own for every output, and a forecast that is nearly unrelated; sometimes impossible.
struct HashedPotential {
  std::uint64_t salt = 1;

  using State = std::uint64_t;  // a hash of the tokens; 0: impossible
  static double number(std::uint64_t x) { return static_cast<double>(x % 4096) / 1024 - 2; }
  State initial(Sentence const&) const { return derive(salt, 7); }
  State next(State state, Token token) const {
    if (state == 0) return 0;
    auto const x = derive(state, static_cast<std::uint64_t>(token));
    return x % 5 == 0 ? 0 : x;
  }
  double log_prefix(State state) const {
    return state == 0 ? -std::numeric_limits<double>::infinity() : number(state >> 8) / 2;
  }
  double log_final(State state, bool finished) const {
    if (state == 0 || state % 7 == 0) return -std::numeric_limits<double>::infinity();
    return number(state >> 32) - (finished ? 0 : 0.5);
  }
};

using Outputs = std::map<std::vector<Token>, double>;

/// Every output's probability times potential. \param universe  whose outputs may be cut at the maximum
template <Potential P>
Outputs joint(Table const& table, std::uint64_t seed, Universe universe, P const& potential) {
  universe.must_finish = false, universe.masked_before_softmax = true;
  auto const vocabulary = TableModel<>(table).vocabulary();
  Sentence const sentence{.vocabulary = &vocabulary};
  Outputs outputs;
  auto prefix_log_prob = log_prob(table, seed, universe.prompt, universe.prefix);
  for (auto const& one : all_sequences(table, seed, universe)) {
    auto state = potential.initial(sentence);
    auto possible = true;
    for (std::size_t i = 0; i < one.tokens.size(); ++i) {
      state = potential.next(state, one.tokens[i]);
      if (i + 1 < one.tokens.size()) possible = possible && potential.log_prefix(state) > -1e300;
    }
    auto const value = potential.log_final(state, one.finished);
    if (possible && value > -1e300) outputs[one.tokens] = std::exp(one.log_prob - prefix_log_prob + value);
  }
  return outputs;
}

inline double sum(Outputs const& outputs) {
  double all = 0;
  for (auto const& [tokens, value] : outputs) all += value;
  return all;
}

/// Half the sum of absolute differences of two distributions.
inline double total_variation(Outputs const& a, Outputs const& b) {
  double all = 0;
  for (auto const& [tokens, value] : a) {
    auto const other = b.find(tokens);
    all += std::abs(value - (other == b.end() ? 0 : other->second));
  }
  for (auto const& [tokens, value] : b)
    if (!a.contains(tokens)) all += value;
  return all / 2;
}

inline Outputs normalised(Outputs outputs) {
  auto const all = sum(outputs);
  for (auto& [tokens, value] : outputs) value /= all;
  return outputs;
}

}  // namespace sluice::test
