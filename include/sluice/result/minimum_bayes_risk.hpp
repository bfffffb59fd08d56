// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a model's outputs say together: the one with the best expected utility under its distribution (minimum Bayes risk), and how many
/// different meanings they have.
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

namespace detail {

/// The weight of each hypothesis as a reference; the weights add up to one. Throws std::invalid_argument if a log_prob
/// with influence is not a number, or all are -infinity.
SLUICE_LAZY std::vector<double> reference_weights(std::span<Hypothesis const> hypotheses,
                                                  BayesRiskOptions const& options) {
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

}  // namespace detail

/// Minimum Bayes risk decoding: for every hypothesis, the expected utility with the same hypotheses as references
/// (Kumar and Byrne 2004; with samples, Eikema and Aziz 2020),
///
///     E(h) = sum_i w_i utility(h, h_i)
///
/// \param hypotheses  an n-best list, or samples as drawn, with repetitions; not empty
/// \param utility     (candidate, reference) -> a number, higher is better; takes two results of `view`. Called n^2
///                 times
/// \param view        called once per hypothesis: gives its text or its n-grams, for example; by default its tokens
/// \throws std::invalid_argument  without hypotheses; if a log_prob with influence is not a number, or all are -infinity
template <class Utility, class View = std::vector<Token> Hypothesis::*>
BayesRiskChoice minimum_bayes_risk(std::span<Hypothesis const> hypotheses, Utility&& utility,
                                   BayesRiskOptions const& options = {}, View view = &Hypothesis::tokens) {
  using Seen = std::remove_cvref_t<std::invoke_result_t<View&, Hypothesis const&>>;
  static_assert(std::is_invocable_r_v<double, Utility&, Seen const&, Seen const&>,
                "sluice: the utility must take (candidate, reference) as the view makes them, and return a number");
  options.check();
  require(!hypotheses.empty(), "hypotheses", "none", "there must be one to choose");
  auto const w = detail::reference_weights(hypotheses, options);
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

  SLUICE_LAZY double operator()(std::span<Token const> candidate, std::span<Token const> reference) const {
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
  SLUICE_LAZY static std::size_t shared(std::span<Token const> a, std::span<Token const> b, std::size_t n) {
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

/// Groups outputs with the same meaning: each output joins the first group whose first member has the same meaning
/// (Kuhn, Gal and Farquhar 2023, "Semantic Uncertainty", algorithm 1). `same(a, b)` is called at most once for every
/// output and group; the paper uses entailment in both directions.
///
/// \param outputs  hypotheses, or anything made from them
/// \return [outputs]: the output's group; groups are numbered from 0 in the order of their first members
template <class Output, std::predicate<Output const&, Output const&> Same>
std::vector<std::int32_t> semantic_groups(std::vector<Output> const& outputs, Same&& same) {
  std::vector<std::int32_t> groups;
  std::vector<std::size_t> first;  // [group]
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::size_t group = 0;
    while (group < first.size() && !same(outputs[first[group]], outputs[i])) ++group;
    if (group == first.size()) first.push_back(i);
    groups.push_back(static_cast<std::int32_t>(group));
  }
  return groups;
}

/// The semantic entropy of some samples, in nats: 0 if all have the same meaning, at most the logarithm of the number
/// of groups.
struct SemanticEntropy {
  double weighted = 0;  ///< weights groups by the probabilities of their outputs, normalised to a sum of one
  double discrete = 0;  ///< weights groups by the number of their outputs, without probabilities
};

/// The two estimators of Farquhar, Kossen, Kuhn and Gal (2024, "Detecting hallucinations in large language models using
/// semantic entropy", Nature 630, Methods): -sum P(C) log P(C). P(C) is either the sum of p(output) over the outputs of
/// the group, divided by the same sum over all outputs, or the group's share of the samples. An output drawn several
/// times counts once in the weighted sum, and as often as it was drawn in the share.
///
/// \param samples   the samples drawn by Sample, see Hypothesis::log_prob
/// \param groups    [samples], from 0: from semantic_groups()
/// \param per_token whether p(output) is the geometric mean of its tokens' probabilities, so that long outputs do not
/// weigh less
/// \throws std::invalid_argument  if the lengths differ, a group is negative, or a log_prob is not a number
inline SemanticEntropy semantic_entropy(std::span<Hypothesis const> samples, std::span<std::int32_t const> groups,
                                        bool per_token = false) {
  require(groups.size() == samples.size(), "groups", groups.size(), "is not the number of samples");
  std::vector<double> log_probs;
  for (auto const& sample : samples) {
    require(!std::isnan(sample.log_prob), "log_prob", sample.log_prob, "is not a number (Greedy::scores?)");
    auto const tokens = static_cast<double>(std::max<std::size_t>(sample.tokens.size(), 1));
    log_probs.push_back(per_token ? sample.log_prob / tokens : sample.log_prob);
  }
  auto const top = log_probs.empty() ? 0 : *std::max_element(log_probs.begin(), log_probs.end());
  std::vector<double> weights, counts;  // [group]
  double total = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    require(groups[i] >= 0, "group", groups[i], "must not be negative");
    auto const group = static_cast<std::size_t>(groups[i]);
    if (weights.size() <= group) weights.resize(group + 1), counts.resize(group + 1);
    counts[group] += 1;
    auto const again = std::any_of(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](Hypothesis const& other) { return other.tokens == samples[i].tokens; });
    if (again) continue;
    auto const weight = std::exp(log_probs[i] - top);
    weights[group] += weight, total += weight;
  }
  auto const entropy = [](std::vector<double> const& sums, double all) {
    double sum = 0;
    for (auto const x : sums)
      if (x > 0) sum -= x / all * std::log(x / all);
    return sum;
  };
  return {entropy(weights, total), entropy(counts, static_cast<double>(samples.size()))};
}

}  // namespace sluice::inline v0
