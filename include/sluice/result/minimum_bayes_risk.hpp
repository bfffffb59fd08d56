// SPDX-License-Identifier: Apache-2.0
/// \file
/// Minimum Bayes risk: chooses the hypothesis with the best expected utility under the model's distribution.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// How hypotheses are weighted as references.
struct BayesRiskOptions {
  /// How much each reference counts.
  enum class Weights : std::uint8_t {
    uniform,      ///< equal weights: for samples, in which probable outputs are more frequent
    probability,  ///< w_i ~ exp(scale * log_prob_i), normalised to a sum of one: for lists of different hypotheses
  };
  Weights weights = Weights::uniform;
  double scale = 1;  ///< of `probability`; > 0; less than 1: flatter

  void check() const { require(scale > 0 && std::isfinite(scale), "scale", scale, "must be a number > 0"); }
};

/// The result of minimum_bayes_risk().
struct BayesRiskChoice {
  std::size_t best = 0;                  ///< index of the hypothesis with the largest expected utility; ties: the first
  std::vector<double> expected_utility;  ///< of every hypothesis
};

/// The weight of each hypothesis as a reference; the weights add up to one. Throws std::invalid_argument if a log_prob
/// with influence is not a number, or all are -infinity.
template <class = void>
std::vector<double> reference_weights(std::span<Hypothesis const> hypotheses, BayesRiskOptions const& options) {
  std::vector<double> w(hypotheses.size(), 1.0);
  if (options.weights == BayesRiskOptions::Weights::probability) {
    auto top = -std::numeric_limits<double>::infinity();
    for (auto const& h : hypotheses) {
      require(h.log_prob < std::numeric_limits<double>::infinity(), "log_prob", h.log_prob, "is no log-probability");
      top = (std::max)(top, h.log_prob);
    }
    require(top > -std::numeric_limits<double>::infinity(), "log_prob", top, "is that of every hypothesis");
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::exp(options.scale * (hypotheses[i].log_prob - top));
  }
  auto const sum = std::accumulate(w.begin(), w.end(), 0.0);
  for (auto& x : w) x /= sum;
  return w;
}

/// Minimum Bayes risk decoding: for every hypothesis, the expected utility with the same hypotheses as references
/// (Kumar and Byrne 2004; with samples, Eikema and Aziz 2020),
///
///     E(h) = sum_i w_i utility(h, h_i)
///
/// \param hypotheses  an n-best list, or samples as drawn, with repetitions; not empty
/// \param utility     (candidate, reference) -> a number, higher is better; takes two results of `view`. Called n^2
///                 times
/// \param view        called once per hypothesis: gives its text or its n-grams, for example; by default its tokens
/// \throws std::invalid_argument  without hypotheses; see also reference_weights()
template <class Utility, class View = std::vector<Token> Hypothesis::*>
BayesRiskChoice minimum_bayes_risk(std::span<Hypothesis const> hypotheses, Utility&& utility,
                                   BayesRiskOptions const& options = {}, View view = &Hypothesis::tokens) {
  using Seen = std::remove_cvref_t<std::invoke_result_t<View&, Hypothesis const&>>;
  static_assert(std::is_invocable_r_v<double, Utility&, Seen const&, Seen const&>,
                "sluice: the utility must take (candidate, reference) as the view makes them, and return a number");
  options.check();
  require(!hypotheses.empty(), "hypotheses", "none", "there must be one to choose");
  auto const w = reference_weights(hypotheses, options);
  std::vector<Seen> seen;
  seen.reserve(hypotheses.size());
  for (auto const& h : hypotheses) seen.push_back(std::invoke(view, h));
  BayesRiskChoice choice;
  for (auto const& candidate : seen) {
    double expected = 0;
    for (std::size_t i = 0; i < seen.size(); ++i)
      expected += w[i] * static_cast<double>(std::invoke(utility, candidate, std::as_const(seen[i])));
    choice.expected_utility.push_back(expected);
  }
  auto const& all = choice.expected_utility;
  choice.best = static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin());
  return choice;
}

/// A utility that needs no text: chrF (Popovic 2015) over tokens instead of characters. The F-score of the mean
/// precision and the mean recall of n-grams up to `order`, over the orders for which both sequences have n-grams; in
/// [0, 1]. Two empty sequences: 1. O(order * n log n).
struct TokenNgramF {
  std::size_t order = 4;  ///< >= 1
  double beta = 1;        ///< recall counts beta times as much as precision

  template <class = void>
  double operator()(std::span<Token const> candidate, std::span<Token const> reference) const {
    if (candidate.empty() && reference.empty()) return 1;
    auto const orders = (std::min)({order, candidate.size(), reference.size()});
    double precision = 0, recall = 0;
    for (std::size_t n = 1; n <= orders; ++n) {
      auto const common = static_cast<double>(shared(candidate, reference, n));
      precision += common / static_cast<double>(candidate.size() - n + 1);
      recall += common / static_cast<double>(reference.size() - n + 1);
    }
    if (precision + recall <= 0) return 0;
    auto const factor = beta * beta;
    return (1 + factor) * precision * recall / ((factor * precision + recall) * static_cast<double>(orders));
  }

 private:
  /// The number of n-grams in common, each counted as often as in the sequence that has fewer of it.
  template <class = void>
  static std::size_t shared(std::span<Token const> a, std::span<Token const> b, std::size_t n) {
    auto const before = [](std::span<Token const> x, std::span<Token const> y) {
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    };
    auto const ngrams = [&](std::span<Token const> tokens) {
      std::vector<std::span<Token const>> all;
      for (std::size_t i = 0; i + n <= tokens.size(); ++i) all.push_back(tokens.subspan(i, n));
      std::sort(all.begin(), all.end(), before);
      return all;
    };
    auto const x = ngrams(a), y = ngrams(b);
    std::size_t count = 0;
    for (auto i = x.begin(), j = y.begin(); i != x.end() && j != y.end();) {
      if (before(*i, *j)) ++i;
      else if (before(*j, *i)) ++j;
      else ++count, ++i, ++j;
    }
    return count;
  }
};

}  // namespace sluice::inline v0
