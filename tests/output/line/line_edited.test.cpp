// SPDX-License-Identifier: Apache-2.0
// Sorted edits against the same edits without the promise, which change a copy of the line. Mutants that these tests
// notice: a rise of 0, late edits that are not applied in gather(), equal scores told apart by their place in a list.
#include <sluice/core/query.hpp>
#include <sluice/output/detail/line/line_edited.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr auto lowest = -std::numeric_limits<float>::infinity();

struct Case {
  std::vector<float> line;
  std::vector<Edit> edits;
  std::vector<Token> probes;
  Query query;

  explicit Case(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto const below = [&](std::uint64_t n) { return random() % n; };
    auto const coarse = below(2) == 0;
    line.resize(1 + below(4000));
    for (auto& x : line) {
      auto const part = static_cast<float>(below(1u << 20)) / (1u << 20);
      x = coarse ? static_cast<float>(below(12)) : below(20) == 0 ? lowest : -1.2f * std::log(part + 1e-4f);
    }
    auto const boost = [&] {
      return coarse ? static_cast<float>(below(5)) - 2 : static_cast<float>(below(1000)) / 250 - 1;
    };
    std::set<Token> first, second;
    for (auto n = below(300); n > 0; --n) first.insert(static_cast<Token>(below(line.size())));
    for (auto n = below(3) == 0 ? below(40) : 0; n > 0; --n)
      if (auto const token = static_cast<Token>(below(line.size())); !first.contains(token)) second.insert(token);
    auto most = lowest;
    for (auto const token : first) edits.push_back({token, boost()}), most = std::max(most, edits.back().add);
    for (auto const token : second) edits.push_back({token, boost() + 3});
    query.sorted = {static_cast<std::int32_t>(first.size()), static_cast<std::int32_t>(second.size()), most};
    for (auto n = below(4); n > 0; --n)
      edits.push_back({static_cast<Token>(below(line.size())), below(2) == 0 ? lowest : 2.5f, 1.5f});
    if (!edits.empty() && below(2) == 0) edits.push_back({edits[below(edits.size())].token, lowest});
    for (auto n = below(4); n > 0; --n) probes.push_back(static_cast<Token>(below(line.size())));
    if (!edits.empty()) probes.push_back(edits[below(edits.size())].token);
    query.best = static_cast<std::int32_t>(below(30)), query.normalise = below(4) != 0;
    query.stage = Stage::after_softmax, query.probes = probes, query.edits = edits;
  }
};

}  // namespace

TEST_CASE("sorted edits give the list that edits of a copy give, bit for bit", "[line]") {
  LogSoftmaxTopK expander;
  detail::LineScan scan;
  detail::LineEdited edited;
  std::size_t found = 0, asked = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Case const c(seed);
    auto plain = c.query;
    plain.sorted = {};
    INFO("seed " << seed << ", V = " << c.line.size() << ", best " << c.query.best << ", " << c.edits.size()
                 << " edits, sorted " << c.query.sorted.count << " and " << c.query.sorted.second);
    auto const answer = [&](Query const& query) {
      auto const told = expander.expand(scores(c.line.data(), 1, std::ssize(c.line)), {&query, 1}, {});
      auto const line = told[0];
      std::vector<double> all{line.valid ? 1.0 : 0.0, line.impossible ? 1.0 : 0.0,
                              static_cast<double>(line.log_sum_exp)};
      for (auto const& one : line.best) all.push_back(one.token), all.push_back(static_cast<double>(one.log_prob));
      for (auto const x : line.probes) all.push_back(static_cast<double>(x));
      return all;
    };
    REQUIRE(answer(c.query) == answer(plain));
    if (!detail::LineEdited::suffices(c.query)) continue;
    scan.begin(detail::LineEdited::wanted(c.query), false), scan.run(c.line);
    ++asked, found += edited.choose(c.line, scan.best(), {}, c.query) ? 1 : 0;
  }
  CHECK(asked > 3000);
  CHECK(found > asked / 2);
}
