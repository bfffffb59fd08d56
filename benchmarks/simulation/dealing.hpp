// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shards dealt from one counter to many ranks, in virtual time.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>

#include "distributions.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace simulation {

/// Ranks, their speed, and the cost of asking. All times in seconds.
struct Dealing {
  double sentences = 1e9;
  std::size_t ranks = 1;
  double shard = 1000;      ///< sentences in one
  double rate = 100;        ///< sentences a second of a mean rank
  double variation = 0.57;  ///< of the time of one sentence: standard deviation / mean
  double spread = 0.05;     ///< of the ranks' speeds (log-normal)
  double latency = 2e-6;    ///< of a request, there and back
  double service = 2e-7;    ///< for which the counter is busy with one request
  double served_every = 0;  ///< the counter is looked at so seldom; 0: the network card adds by itself
  double overhead = 0.005;  ///< of a shard: its files
  std::uint64_t seed = 1;

  /// Throws std::invalid_argument naming the member and its value.
  void check() const {
    sluice::require(sentences >= 1 && sentences <= 1e15, "sentences", sentences, "must be from 1 to 1e15");
    sluice::require(ranks >= 1 && ranks <= 1000000, "ranks", ranks, "must be from 1 to 1000000");
    sluice::require(shard >= 1 && sentences / shard <= 2e8, "shard", shard, "must be 1 or more, in 2e8 shards at most");
    sluice::require(rate > 0 && std::isfinite(rate), "rate", rate, "must be more than 0");
    for (auto const& [name, value] : {std::pair{"variation", variation},
                                      {"spread", spread},
                                      {"latency", latency},
                                      {"service", service},
                                      {"served-every", served_every},
                                      {"overhead", overhead}})
      sluice::require(value >= 0 && std::isfinite(value), name, value, "must be 0 or more");
  }
};

/// Seconds; the last three are means over ranks, and their sum with `work` is `total`.
struct Dealt {
  double total = 0;     ///< until the last rank is done
  double work = 0;      ///< decoding
  double asking = 0;    ///< for the counter
  double overhead = 0;  ///< of the shards
  double idle = 0;      ///< at the end, until the last rank is done
};

namespace detail {

/// The ranks' speeds, with a harmonic mean: together they do ranks * rate sentences per second.
inline std::vector<double> speeds(Dealing const& d) {
  std::vector<double> speeds(d.ranks);
  double sum = 0;
  for (std::size_t i = 0; i < d.ranks; ++i)
    sum += speeds[i] = log_normal(1, d.spread, normal(sluice::derive(d.seed, i), 0));
  for (auto& speed : speeds) speed *= d.rate * static_cast<double>(d.ranks) / sum;
  return speeds;
}

/// The work of `count` sentences, in sentences of mean length: the sum of many is nearly normal.
inline double work(Dealing const& d, double count, std::size_t which) {
  auto const noise = normal(sluice::derive(d.seed + 1, which), 0) * d.variation / std::sqrt(count);
  return count * std::max(0.05, 1 + noise);
}

}  // namespace detail

/// A free rank asks for the next shard.
inline Dealt deal(Dealing const& d) {
  d.check();
  auto const speeds = detail::speeds(d);
  using Free = std::pair<double, std::size_t>;  // time, rank
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (std::size_t rank = 0; rank < d.ranks; ++rank) free.emplace(0, rank);
  Dealt sum;
  double counter = 0, left = d.sentences;  // when the counter is free again
  std::vector<double> ends(d.ranks);
  for (std::size_t shard = 0; !free.empty(); ++shard) {
    auto const [when, rank] = free.top();
    free.pop();
    auto arrives = when + d.latency / 2;
    if (d.served_every > 0) arrives = std::ceil(arrives / d.served_every) * d.served_every;
    counter = std::max(counter, arrives) + d.service;
    auto const told = counter + d.latency / 2;
    sum.asking += told - when;
    if (left <= 0) {
      ends[rank] = told, sum.total = std::max(sum.total, told);
      continue;
    }
    auto const count = std::min(left, d.shard);
    auto const seconds = detail::work(d, count, shard) / speeds[rank];
    left -= count, sum.work += seconds, sum.overhead += d.overhead;
    free.emplace(told + d.overhead + seconds, rank);
  }
  auto const ranks = static_cast<double>(d.ranks);
  for (auto const end : ends) sum.idle += (sum.total - end) / ranks;
  sum.work /= ranks, sum.asking /= ranks, sum.overhead /= ranks;
  return sum;
}

/// Every rank has its share from the start, as with `translate --shard i/n`.
inline Dealt divide(Dealing const& d) {
  d.check();
  Dealt sum;
  auto const ranks = static_cast<double>(d.ranks);
  std::vector<double> ends;
  auto const speeds = detail::speeds(d);
  for (std::size_t rank = 0; rank < d.ranks; ++rank)
    ends.push_back(d.overhead + detail::work(d, d.sentences / ranks, rank) / speeds[rank]);
  sum.total = *std::max_element(ends.begin(), ends.end());
  for (auto const end : ends) sum.idle += (sum.total - end) / ranks, sum.work += (end - d.overhead) / ranks;
  sum.overhead = d.overhead;
  return sum;
}

}  // namespace simulation
