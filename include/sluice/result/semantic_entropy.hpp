// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many different meanings a model's outputs have.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

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
