// SPDX-License-Identifier: Apache-2.0
// The memory behind an Expansion, against vectors of vectors.
#include <sluice/output/line_lists.hpp>

#include <support/catch.hpp>
#include <support/random_query.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("lists hold what was put into them, line by line, beside those of others", "[line]") {
  struct Plain {
    std::vector<Candidate> best{};
    std::vector<float> probes{};
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::array<LineLists, 3> parts;
    std::vector<Plain> plain;
    for (auto& lists : parts) {
      if (seed % 2 == 0) lists.open(), lists.list(1, 2), lists.probe(3), lists.clear();
      for (auto n = below(random, 4); n > 0; --n) {
        auto& one = plain.emplace_back();
        lists.open().log_sum_exp = static_cast<float>(plain.size());
        for (auto k = below(random, 5); k > 0; --k) {
          one.best.push_back({static_cast<Token>(below(random, 99)), static_cast<float>(k)});
          lists.list(one.best.back().token, one.best.back().log_prob);
        }
        for (auto k = below(random, 3); k > 0; --k) lists.probe(one.probes.emplace_back(static_cast<float>(k)));
        CHECK(std::ranges::equal(lists.best(), one.best));
        if (below(random, 2) == 0) continue;
        one.best.resize(below(random, one.best.size() + 1));
        lists.shorten(one.best.size());
        CHECK(std::ranges::equal(lists.best(), one.best));
      }
    }
    parts[0].append(parts[1]), parts[0].append(parts[2]);
    auto const all = parts[0].answer({}, {});
    REQUIRE(all.size() == plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      CHECK(std::ranges::equal(all[i].best, plain[i].best));
      CHECK(std::ranges::equal(all[i].probes, plain[i].probes));
      CHECK(all[i].log_sum_exp == static_cast<float>(i + 1));
    }
  }
}

TEST_CASE("of a group's lists stays what is no worse than the best that are to be kept, unless there is noise",
          "[line]") {
  std::size_t cut = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    LineLists lists;
    std::vector<Query> queries;
    std::vector<Group> groups;
    std::vector<std::vector<Candidate>> expected;
    for (auto g = 1 + below(random, 3); g > 0; --g) {
      auto const lines = below(random, 4), first = queries.size();
      auto const keep = below(random, 6);
      auto noise = false;
      std::vector<double> totals;
      for (std::size_t i = 0; i < lines; ++i) {
        queries.push_back({.base = -static_cast<double>(below(random, 4)), .noise = below(random, 9) == 0 ? 1u : 0u});
        noise = noise || queries.back().noise != 0;
        lists.open();
        auto& list = expected.emplace_back();
        float log_prob = 0;
        for (auto n = below(random, 6); n > 0; --n) {
          list.push_back({static_cast<Token>(n), log_prob -= static_cast<float>(below(random, 3))});
          lists.list(list.back().token, log_prob);
          totals.push_back(queries.back().base + static_cast<double>(log_prob));
        }
      }
      groups.push_back({.lines = static_cast<std::int32_t>(lines), .keep = static_cast<std::int32_t>(keep)});
      if (keep == 0 || noise || totals.size() <= keep) continue;
      std::ranges::sort(totals, std::greater{});
      for (std::size_t i = first; i < queries.size(); ++i)
        cut += std::erase_if(expected[i], [&](Candidate c) {
          return queries[i].base + static_cast<double>(c.log_prob) < totals[keep - 1];
        });
    }
    auto const answer = lists.answer(queries, groups);
    INFO("seed " << seed);
    REQUIRE(answer.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::ranges::equal(answer[i].best, expected[i]));
  }
  CHECK(cut > 300);
}
