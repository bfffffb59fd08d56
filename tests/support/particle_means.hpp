// SPDX-License-Identifier: Apache-2.0
/// \file
/// What particles estimate, on the average of many seeds, against all outputs of a table.
#pragma once

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/posterior.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace sluice::test {

/// Of all finished outputs, those that `accepts` does, with their probabilities.
template <class Accepts>
Outputs accepted(Table const& table, std::uint64_t source, std::int32_t most, Accepts const& accepts) {
  Outputs outputs;
  for (auto const& one : all_sequences(table, source, {.maximum = most, .must_finish = false}))
    if (one.finished && accepts(one.tokens)) outputs[one.tokens] = std::exp(one.log_prob);
  return outputs;
}

/// Checks Z and every output's part of it: the mean over many seeds, five standard deviations at most.
template <class S>
void check_means(Table const& table, std::uint64_t source, S const& search, Outputs const& exact) {
  constexpr std::size_t count = 800;
  std::vector<TableRequest<S>> requests(count);
  for (std::size_t i = 0; i < count; ++i) requests[i].source = source, requests[i].seed = 300 + i;
  std::map<std::vector<Token>, std::pair<double, double>> sums;
  double total = 0, squares = 0;
  for (auto const& result : run(table, std::move(requests), search)) {
    auto const z = std::exp(result.log_z);
    total += z / count, squares += z * z / count;
    for (auto const& h : result.hypotheses) {
      CHECK(h.finished);
      REQUIRE(exact.contains(h.tokens));
      auto& [mean, square] = sums[h.tokens];
      mean += z * h.weight / count, square += z * z * h.weight * h.weight / count;
    }
  }
  auto const check = [&](double expected, double mean, double square) {
    auto const deviation = std::sqrt(std::max(0.0, square - mean * mean) / count);
    if (std::abs(mean - expected) > 5 * deviation + 1e-5 + expected / count) CHECK(mean == expected);
  };
  check(sum(exact), total, squares);
  for (auto const& [tokens, value] : exact)
    if (value * count > 30 * sum(exact)) check(value, sums[tokens].first, sums[tokens].second);
}

}  // namespace sluice::test
