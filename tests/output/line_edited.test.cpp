// SPDX-License-Identifier: Apache-2.0
// Sorted edits against the same edits without the promise, which change a copy of the line, and shared edits against the same ones in
// each query. Mutants that these tests notice: a rise of 0, late edits that are not applied in gather(), equal scores told apart
// by their place in a list; an own edit that is added to what is shared, a tail of the line that is not raised, a probe that is not.
#include <sluice/core/query.hpp>
#include <sluice/decode/detail/own_edits.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/detail/line/line_edited.hpp>
#include <sluice/output/log_softmax_top_k.hpp>

#include <support/catch.hpp>
#include <support/times.hpp>

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
    line.resize(1 + below(6000));
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

std::vector<double> numbers(Line const& line) {
  std::vector<double> all{line.valid ? 1.0 : 0.0, line.impossible ? 1.0 : 0.0, static_cast<double>(line.log_sum_exp)};
  for (auto const& one : line.best) all.push_back(one.token), all.push_back(static_cast<double>(one.log_prob));
  for (auto const x : line.probes) all.push_back(static_cast<double>(x));
  return all;
}

}  // namespace

TEST_CASE("sorted edits give the list that edits of a copy give, bit for bit", "[line]") {
  LogSoftmaxTopK expander;
  detail::LineScan scan;
  detail::LineEdited edited;
  std::size_t found = 0, asked = 0;
  for (std::uint64_t seed = 0; seed < times(4000u); ++seed) {
    Case const c(seed);
    auto plain = c.query;
    plain.sorted = {};
    INFO("seed " << seed << ", V = " << c.line.size() << ", best " << c.query.best << ", " << c.edits.size()
                 << " edits, sorted " << c.query.sorted.count << " and " << c.query.sorted.second);
    auto const answer = [&](Query const& query) {
      return numbers(expander.expand(scores(c.line.data(), 1, std::ssize(c.line)), {&query, 1}, {})[0]);
    };
    REQUIRE(answer(c.query) == answer(plain));
    if (!detail::LineEdited::suffices(c.query)) continue;
    scan.begin(detail::LineEdited::wanted(c.query), false), scan.run(c.line);
    ++asked, found += edited.choose(c.line, scan.best(), {}, c.query) ? 1 : 0;
  }
  CHECK(asked > times(3000u));
  CHECK(found > asked / 2);
}

TEST_CASE("shared edits give the list that they give as a query's own, bit for bit", "[line]") {
  LogSoftmaxTopK expander;
  detail::OwnEdits copied;
  for (std::uint64_t seed = 0; seed < times(4000u); ++seed) {
    Case c(seed);
    auto const count = static_cast<std::size_t>(c.query.sorted.count);
    auto const all = std::span<Edit const>(c.edits);
    detail::SharedEdits const shared({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)});
    auto& query = c.query;
    query.edits = all.subspan(count), query.sorted.count = 0, query.shared = &shared;
    if (seed % 4 == 0) query.sorted = {};
    REQUIRE(query.plain());
    auto const plain = copied.of({&query, 1}, false);
    REQUIRE(plain[0].shared == nullptr);
    REQUIRE(copied.of({&query, 1}, true).data() == &query);
    INFO("seed " << seed << ", V = " << c.line.size() << ", best " << query.best << ", " << count << " shared edits of "
                 << c.edits.size());
    auto const line = scores(c.line.data(), 1, std::ssize(c.line));
    auto const expected = numbers(expander.expand(line, plain, {})[0]);
    REQUIRE(numbers(expander.expand(line, {&query, 1}, {})[0]) == expected);

    // A projection from one number, 1, has these scores.
    DenseProjection projection({c.line.data(), std::ssize(c.line), 1, 1});
    float const one = 1;
    auto const hidden = sluice::hidden(&one, 1, 1);
    if (std::find(c.line.begin(), c.line.end(), lowest) != c.line.end()) continue;  // a product has no infinity
    REQUIRE(numbers(projection.expand(hidden, {&query, 1}, {})[0]) == expected);
  }
}
