// SPDX-License-Identifier: Apache-2.0
/// \file
/// What models made of several models share: what the parts must have in common, and what they can do together.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

// clang-format off
/// A model that gives whole lines of scores, Scores<T>. Projected turns a model of hidden vectors into one.
template <class M>
concept ScoringModel = Model<M> && requires { typename Answer<M>::Value; } &&
  std::same_as<Answer<M>, Scores<typename Answer<M>::Value>>;
// clang-format on

/// The abilities that both have.
constexpr Abilities common(Abilities a, Abilities b) {
  return {.ragged = a.ragged && b.ragged, .blocks = a.blocks && b.blocks, .roll_back = a.roll_back && b.roll_back};
}

/// The limits that satisfy both.
constexpr Limits common(Limits a, Limits b) {
  return {.slot_count = (std::min)(a.slot_count, b.slot_count),
          .length = (std::min)(a.length, b.length),
          .tokens = (std::min)(a.tokens, b.tokens),
          .log_prob = (std::max)(a.log_prob, b.log_prob)};
}
/// The most that log_prob + weight * language may be.
constexpr double highest_sum(double log_prob, double weight, double language) {
  if (weight < 0) return std::numeric_limits<double>::infinity();  // a log-probability may be as low as it likes
  return weight == 0 ? log_prob : log_prob + weight * language;
}

/// Throws std::invalid_argument unless `b` is the same vocabulary as `a`. `name` and `other`, for the message, are the owners of
/// `b` and of `a`. The order of eos and never does not matter.
SLUICE_LAZY void check_same(Vocabulary const& a, Vocabulary const& b, std::string const& name,
                            std::string const& other) {
  auto const text = [](std::vector<Token> const& tokens) {
    std::string list = "[";
    for (auto const token : tokens) list.append(list.size() > 1 ? " " : "").append(std::to_string(token));
    return list.append("]");
  };
  auto const same = [](std::vector<Token> const& x, std::vector<Token> const& y) {
    return std::is_permutation(x.begin(), x.end(), y.begin(), y.end());
  };
  auto const rule = "must be that of " + other + ", ";
  require(b.size == a.size, name + ": vocabulary.size", b.size, rule + std::to_string(a.size));
  require(b.bos == a.bos, name + ": vocabulary.bos", b.bos, rule + std::to_string(a.bos));
  require(same(b.eos, a.eos), name + ": vocabulary.eos", text(b.eos), rule + text(a.eos));
  require(same(b.never, a.never), name + ": vocabulary.never", text(b.never), rule + text(a.never));
}

/// Passes the call on if the model takes it.
template <Model M>
void release(M& model, std::span<Slot const> slot_numbers) {
  if constexpr (ReleasingModel<M>) model.release(slot_numbers);
}

/// The number of lines that the rows ask for.
inline std::ptrdiff_t lines(std::span<Row const> rows) {
  std::ptrdiff_t count = 0;
  for (auto const& row : rows) count += row.lines;
  return count;
}

}  // namespace sluice::inline v0::detail
