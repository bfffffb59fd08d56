// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random sentences' sorted lists, and the expected result of merging them.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::test {

/// Lists as LogSoftmaxTopK produces them, and groups of them. Lists fall at very different rates, so the best
/// candidates come from any part of any list, and totals are often equal.
struct MergeCase {
  MergeCase(std::uint64_t seed, std::size_t most_lines, std::size_t most_kept, std::size_t most_listed,
            std::size_t most_groups) {
    std::mt19937_64 random(seed);
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    k = static_cast<std::int32_t>(1 + below(most_listed));
    auto const coarse = below(2) == 0;
    auto const number = [&](double most) {
      auto const x = most * static_cast<double>(random() >> 11) * 0x1p-53;
      return coarse ? std::round(2 * x) / 2 : x;
    };
    auto const count = 1 + below(most_groups);
    for (std::size_t g = 0; g < count; ++g) {
      cuda::MergeGroup group;
      group.first = static_cast<std::int32_t>(lines.size());
      group.lines = static_cast<std::int32_t>(below(12) == 0 ? most_lines : below(most_lines + 1));
      group.keep = static_cast<std::int32_t>(below(8) == 0 ? most_kept : below(most_kept + 1));
      group.kept = static_cast<std::int32_t>(kept_size + below(3));
      kept_size = static_cast<std::size_t>(group.kept + (group.keep > 0 ? group.keep : group.lines * k));
      if (group.keep > 0) widest = std::max(widest, group.lines), longest = std::max(longest, group.keep);
      for (std::int32_t i = 0; i < group.lines; ++i) {
        lines.push_back({below(3) == 0 ? 0.0 : -number(4), static_cast<std::int32_t>(lines.size())});
        auto const listed = below(4) == 0 ? below(static_cast<std::size_t>(k) + 1) : static_cast<std::size_t>(k);
        results.push_back({static_cast<std::int32_t>(listed), 1, 0});
        auto log_prob = below(3) == 0 ? -0.0 : -number(3);
        auto const rate = std::vector<double>{0.01, 0.1, 1, 8}[below(4)];
        Token token = 0;
        for (std::int32_t j = 0; j < k; ++j) {  // entries after the end of the list are not candidates, however good
          auto const inside = j < static_cast<std::int32_t>(listed);
          best.push_back({token, inside ? static_cast<float>(log_prob) : 1e9f});
          log_prob -= below(3) == 0 ? 0 : number(2 * rate);
          token += 1 + static_cast<Token>(below(5));
        }
      }
      std::shuffle(lines.begin() + group.first, lines.end(), random);
      groups.push_back(group);
    }
    for (auto i = below(4); i > 0; --i) ends.push_back(static_cast<Token>(below(8)));
    kept.assign(kept_size + 2, untouched);
    totals.assign(kept.size(), -7);
    places.assign(kept.size(), -7777);
  }

  cuda::MergeLaunch launch() {
    cuda::MergeLaunch launch;
    launch.best = best.data(), launch.results = results.data(), launch.k = k;
    launch.groups = groups.data(), launch.group_count = static_cast<std::int32_t>(groups.size());
    launch.lines = lines.data(), launch.widest = widest, launch.longest = longest;
    launch.ends = ends.data(), launch.end_count = static_cast<std::int32_t>(ends.size());
    launch.kept = kept.data(), launch.totals = totals.data(), launch.places = places.data();
    return launch;
  }

  /// The expected state of this case after a correct launch.
  MergeCase merged() const {
    struct Found {
      double total;
      cuda::Kept kept;
      std::size_t found;  // line by line
    };
    auto result = *this;
    std::vector<Found> found;
    for (auto const& group : groups) {
      found.clear();
      for (std::int32_t line = 0; line < group.lines; ++line) {
        auto const& [base, row] = lines[static_cast<std::size_t>(group.first + line)];
        for (std::int32_t i = 0; i < results[static_cast<std::size_t>(row)].count; ++i) {
          auto const& x = best[static_cast<std::size_t>(row * k + i)];
          Found const one{base + static_cast<double>(x.log_prob), {line, x.token, x.log_prob}, found.size()};
          if (group.keep > 0) found.push_back(one);
          else result.put(static_cast<std::size_t>(group.kept + line * k + i), one.total, one.kept);
        }
      }
      std::sort(found.begin(), found.end(), [](Found const& a, Found const& b) {
        return a.total != b.total ? a.total > b.total : a.found < b.found;
      });
      std::int32_t live = 0, ended = 0;
      for (std::size_t i = 0; i < std::min(found.size(), static_cast<std::size_t>(group.keep)); ++i) {
        auto const at = static_cast<std::size_t>(group.kept) + i;
        result.put(at, found[i].total, found[i].kept);
        auto const end = std::find(ends.begin(), ends.end(), found[i].kept.token) != ends.end();
        result.places[at] = end ? -1 - ended++ : live++;
      }
    }
    return result;
  }

  /// Whether both have the same outcome, to the last bit.
  bool same(MergeCase const& other) const {
    auto const equal = [](cuda::Kept const& a, cuda::Kept const& b) {
      return a.parent == b.parent && a.token == b.token &&
             std::bit_cast<std::uint32_t>(a.log_prob) == std::bit_cast<std::uint32_t>(b.log_prob);
    };
    auto const equal_bits = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    };
    return std::equal(kept.begin(), kept.end(), other.kept.begin(), other.kept.end(), equal) &&
           std::equal(totals.begin(), totals.end(), other.totals.begin(), other.totals.end(), equal_bits) &&
           places == other.places;
  }

  static constexpr cuda::Kept untouched{-5, -6, -7};
  std::int32_t k = 1, widest = 0, longest = 0;
  std::size_t kept_size = 0;
  std::vector<Candidate> best;
  std::vector<cuda::LineResult> results;
  std::vector<cuda::MergeGroup> groups;
  std::vector<cuda::MergeLine> lines;
  std::vector<Token> ends;
  std::vector<cuda::Kept> kept;
  std::vector<double> totals;
  std::vector<std::int32_t> places;

 private:
  void put(std::size_t at, double total, cuda::Kept const& one) { kept[at] = one, totals[at] = total; }
};

}  // namespace sluice::test
