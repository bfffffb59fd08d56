// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Acceptance concept, and the exact rule. For other rules see sluice/search/blockwise/acceptance_rules.hpp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// The rule by which guesses are accepted. Each line of a block is the model's own answer for one position.
///
///  - `ask(query, seed, position, vocabulary_size)`: fills in the query for the line that decides about token
///    `position` of the output;
///  - `own(line, seed, position, scratch)`: the model's own choice there; a token of -1 if there is none;
///  - `accepts(line, own, guess)`: whether `guess` may stand in its place;
///  - `lossless`: whether every output is one that the model would have given without guesses;
///  - `draws`, optional: guesses must be drawn at random, and the output depends on them. Such a rule also has the members
///    `Scratch`, `drop_nonsense(tree, vocabulary)`, `name(guesses, tokens, tree, names)` and `choose(line, ...)` of
///    acceptance::Rejection, by which Blockwise chooses among drawn guesses.
template <class A>
concept Acceptance = requires(A const& rule, Query& query, Line const& line, Candidate own, Token guess,
                              std::uint64_t seed, std::int32_t position, std::vector<Candidate>& scratch) {
    rule.check();
    rule.ask(query, seed, position, position);
    { rule.own(line, seed, position, scratch) } -> std::same_as<Candidate>;
    { rule.accepts(line, own, guess) } -> std::same_as<bool>;
    { A::lossless } -> std::convertible_to<bool>;
  };
// clang-format on

/// The rules of the library by which Blockwise accepts guesses, and by which WithDraft makes them.
namespace acceptance {

/// The output is that of Greedy (Stern, Shazeer and Uszkoreit 2018, section 3).
struct Exact {
  bool scores = true;  ///< as of Greedy: false: no softmax; log-probabilities and score are then NaN

  static constexpr bool lossless = true;
  void check() const {}
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = 1, query.stage = Stage::after_softmax, query.normalise = scores;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    if (line.best.empty()) return {-1, 0};
    return {line.best[0].token, scores ? line.best[0].log_prob : std::numeric_limits<float>::quiet_NaN()};
  }
  bool accepts(Line const&, Candidate own, Token guess) const { return guess == own.token; }
};

}  // namespace acceptance

}  // namespace sluice::inline v0
