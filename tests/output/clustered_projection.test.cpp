// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/fenced.hpp>
#include <support/hidden_model.hpp>
#include <support/line_reference.hpp>
#include <support/output_layer.hpp>
#include <support/random_query.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Union = ClusteredOptions::Union;
constexpr float none = -std::numeric_limits<float>::infinity();

static_assert(Expander<ClusteredProjection, Hidden<float>>);
static_assert(!Expander<ClusteredProjection, Scores<float>>);

std::vector<Token> every(std::ptrdiff_t size) {
  std::vector<Token> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string complaint(auto&& make) {
  try {
    make();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("clustered_projection is a softmax over the active tokens", "[clustered_projection]") {
  for (auto const unite : {Union::sentence, Union::batch})
    for (std::uint64_t seed = 1; seed <= times(60u); ++seed) {
      OutputLayer layer(seed, 30 + static_cast<std::ptrdiff_t>(seed) * (seed % 10 == 0 ? 40 : 5),
                        1 + static_cast<std::ptrdiff_t>(seed % 19), 1 + seed % 3);
      ClusteredOptions const options{.always = {2, 5},
                                     .unite = unite,
                                     .full_above = seed % 4 == 0 ? 1.0 : 0.3 + 0.1 * static_cast<double>(seed % 5)};
      auto projection = layer.clustered(options);
      auto dense = layer.dense();
      ClusteredStatistics counted;
      for (int round = 0; round < 3; ++round) {
        Step const step(layer, 1 + below(layer.random, 9), unite == Union::sentence || round == 0,
                        static_cast<std::int32_t>(layer.clusters.size()));
        auto const all = step.vectors(layer.d, 0, step.queries.size());
        auto const got = projection.expand(all, step.queries, step.groups);
        auto const full = dense.expand(all, step.queries, {});
        REQUIRE(got.size() == step.queries.size());
        counted.lines += step.queries.size();
        auto const check_lines = [&](std::size_t first, std::size_t count) {
          if (count == 0) return;
          auto const queries = std::span(step.queries).subspan(first, count);
          auto const active =
              layer.active(step.h, first, queries, std::span(step.directions_of).subspan(first, count), options);
          ++counted.unions;
          if (active) counted.active += active->size();
          else ++counted.full;
          for (auto i = first; i < first + count; ++i) {
            INFO("seed " << seed << ", batch " << (unite == Union::batch) << ", round " << round << ", line " << i
                         << ", active " << (active ? std::ssize(*active) : -1) << " of " << layer.size);
            if (!active) {
              CHECK(same_line(got[i], full[i]));
              continue;
            }
            auto const expected =
                expected_line<double>(layer.logits(layer.row(step.h, i), active), Kind::logits, step.queries[i]);
            check_line(got[i], expected, step.queries[i], 2e-5);
            for (auto const& c : got[i].best) CHECK(active->contains(c.token));
          }
        };
        std::size_t first = 0;
        if (unite == Union::batch) check_lines(0, step.queries.size());
        else
          for (auto const& group : step.groups) {
            check_lines(first, static_cast<std::size_t>(group.lines));
            first += static_cast<std::size_t>(group.lines);
          }
      }
      auto const& seen = projection.statistics();
      CHECK(seen.lines == counted.lines);
      CHECK(seen.unions == counted.unions);
      CHECK(seen.full == counted.full);
      CHECK(seen.active == counted.active);
      CHECK(seen.audited == 0);
    }
}

TEST_CASE("a sentence's answers do not depend on its neighbours, bit for bit", "[clustered_projection]") {
  for (std::uint64_t seed = 1; seed <= times(40u); ++seed) {
    auto const large = seed % 8 == 0;  // more active tokens than a product makes at once
    OutputLayer layer(seed, large ? 9000 : 400, large ? 4 : 1 + static_cast<std::ptrdiff_t>(seed % 40), 3,
                      large ? 900 : 1 + seed);
    ClusteredOptions const options{.always = {2}};
    auto const precision = static_cast<Precision>(seed % 3);
    auto together = layer.clustered(options, precision), apart = layer.clustered(options, precision);
    Step step(layer, large ? 40 : seed % 5 == 0 ? 80 : 8, true, 3);
    for (auto& group : step.groups) group.keep = static_cast<std::int32_t>(below(layer.random, 9));
    auto const all = kept(together.expand(step.vectors(layer.d, 0, step.queries.size()), step.queries, step.groups));
    for (std::size_t g = 0, first = 0; g < step.groups.size();) {
      std::size_t const groups = std::min(1 + below(layer.random, 3), step.groups.size() - g);
      std::size_t count = 0;
      for (std::size_t j = 0; j < groups; ++j) count += static_cast<std::size_t>(step.groups[g + j].lines);
      auto const some = apart.expand(step.vectors(layer.d, first, count), std::span(step.queries).subspan(first, count),
                                     std::span(step.groups).subspan(g, groups));
      REQUIRE(some.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        INFO("seed " << seed << ", line " << first + i);
        CHECK(same_line(some[i], all[first + i].view()));
      }
      first += count, g += groups;
    }
  }
}

TEST_CASE("clustered_projection without groups takes every line for a sentence", "[clustered_projection]") {
  OutputLayer layer(3, 300, 12);
  auto projection = layer.clustered({.always = {2}});
  Step const step(layer, 20);
  auto const all = step.vectors(layer.d, 0, step.queries.size());
  std::vector<Group> const ones(step.queries.size(), Group{.lines = 1});
  auto const a = kept(projection.expand(all, step.queries, {}));
  auto const b = projection.expand(all, step.queries, ones);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(same_line(a[i].view(), b[i]));
}

TEST_CASE("Union::batch is one sentence of all lines", "[clustered_projection]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    OutputLayer layer(seed, 500, 9);
    auto batch = layer.clustered({.always = {2}, .unite = Union::batch}), sentence = layer.clustered({.always = {2}});
    Step const step(layer, 6, false);
    auto const all = step.vectors(layer.d, 0, step.queries.size());
    Group const one{.lines = static_cast<std::int32_t>(step.queries.size())};
    auto const a = batch.expand(all, step.queries, step.groups);
    auto const b = sentence.expand(all, step.queries, std::span(&one, 1));
    for (std::size_t i = 0; i < step.queries.size(); ++i) CHECK(same_line(a[i], b[i]));
  }
}

TEST_CASE("logits of active tokens are dense_projection's, bit for bit", "[clustered_projection]") {
  for (std::uint64_t seed = 1; seed <= times(30u); ++seed) {
    OutputLayer layer(seed, 2500, 1 + static_cast<std::ptrdiff_t>(seed) * 3, 1, seed % 3 == 0 ? 700 : 30);
    auto const precision = static_cast<Precision>(seed % 3);
    auto projection = layer.clustered({.always = {2}, .full_above = 0.9}, precision);
    auto dense = layer.dense(precision);
    auto const rows = 1 + below(layer.random, 20);
    auto const h = layer.vectors(rows);
    std::vector<Query> const queries(rows, Query{.best = 3000, .normalise = false});
    std::vector<Query> few = queries;
    for (auto& q : few) q.best = 1, q.mass = 0, q.within = 1e-30f;  // all that are active
    auto const view = hidden(h.data(), static_cast<std::ptrdiff_t>(rows), layer.d);
    auto const full = dense.expand(view, queries, {});
    auto const got = projection.expand(view, few, {});
    CHECK(projection.statistics().full < rows);
    for (std::size_t i = 0; i < rows; ++i) {
      std::set<Token> listed;
      for (auto const& c : got[i].best) listed.insert(c.token);
      std::vector<Candidate> expected;
      for (auto const& c : full[i].best)
        if (listed.contains(c.token)) expected.push_back(c);
      CHECK(std::equal(expected.begin(), expected.end(), got[i].best.begin(), got[i].best.end()));
    }
  }
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (std::ptrdiff_t const d : {20, 64}) {
      OutputLayer layer(5, 1500, d);  // all tokens, but as active ones
      auto projection = layer.clustered({.always = every(layer.size), .full_above = 1}, precision);
      auto dense = layer.dense(precision);
      Step const step(layer, 30, false);
      auto const view = step.vectors(layer.d, 0, step.queries.size());
      auto const got = projection.expand(view, step.queries, step.groups);
      auto const full = dense.expand(view, step.queries, step.groups);
      for (std::size_t i = 0; i < step.queries.size(); ++i) CHECK(same_line(got[i], full[i]));
      CHECK(projection.statistics().full < projection.statistics().unions);
    }
}

TEST_CASE("a mask before the softmax is answered as dense_projection answers it", "[clustered_projection]") {
  auto worst = 0.0;
  for (std::uint64_t seed = 1; seed <= times(60u); ++seed) {
    OutputLayer layer(seed, 90 + static_cast<std::ptrdiff_t>(seed % 7) * 700, 10);
    auto projection = layer.clustered({.always = {2}});
    auto dense = layer.dense();
    TokenSet only;
    auto const size = static_cast<std::size_t>(layer.size);
    for (auto k = 1 + below(layer.random, size / 2 - 1); k > 0; --k)
      only.insert(static_cast<Token>(below(layer.random, size)));
    std::vector<std::unique_ptr<RandomQuery>> made;
    std::vector<Query> queries;
    for (int i = 0; i < 4; ++i) {
      made.push_back(std::make_unique<RandomQuery>(layer.random, size, QueryFields{.only = false, .after = false}));
      queries.push_back(made.back()->query);
      queries.back().only = &only;
    }
    auto const h = layer.vectors(4);
    Group const group{.lines = 4};
    auto const view = hidden(h.data(), 4, layer.d);
    auto const got = projection.expand(view, queries, std::span(&group, 1));
    auto const full = dense.expand(view, queries, std::span(&group, 1));
    CHECK(projection.statistics().full == 0);
    for (std::size_t i = 0; i < 4; ++i) {
      INFO("seed " << seed << ", line " << i << ", V = " << size);
      auto const difference = [&](float a, float b) {
        if (a != b) worst = std::max(worst, std::abs(static_cast<double>(a) - static_cast<double>(b)));
      };
      REQUIRE(got[i].best.size() == full[i].best.size());
      for (std::size_t j = 0; j < got[i].best.size(); ++j) {
        CHECK(got[i].best[j].token == full[i].best[j].token);
        difference(got[i].best[j].log_prob, full[i].best[j].log_prob);
      }
      if (!queries[i].normalise) CHECK(same_line(got[i], full[i]));
      difference(got[i].log_sum_exp, full[i].log_sum_exp), difference(got[i].entropy, full[i].entropy);
      REQUIRE(got[i].probes.size() == full[i].probes.size());
      for (std::size_t j = 0; j < queries[i].probes.size(); ++j) {
        difference(got[i].probes[j], full[i].probes[j]);
        if (!only.contains(queries[i].probes[j])) CHECK(got[i].probes[j] == none);
      }
    }
  }
  CHECK(worst < 4e-6);  // sums of the same numbers in another order
}

TEST_CASE("a mask that allows nothing leaves nothing", "[clustered_projection]") {
  OutputLayer layer(4, 100, 6);
  auto projection = layer.clustered({.always = {2}});
  TokenSet nothing, outside;
  outside.insert(5000);
  std::vector<Token> const probes{3, 3, 99};
  auto const h = layer.vectors(1);
  for (auto const* only : {&nothing, &outside})
    for (auto query : {Query{}, Query{.mass = 0.5f}, Query{.within = 0.1f}, Query{.typical = 0.2f}, Query{.noise = 3},
                       Query{.entropy = true}, Query{.best = 0}, Query{.normalise = false}}) {
      query.only = only, query.probes = probes;
      auto const line = projection.expand(hidden(h.data(), 1, layer.d), std::span(&query, 1), {})[0];
      CHECK(line.valid);
      CHECK(line.best.empty());
      CHECK(std::vector(line.probes.begin(), line.probes.end()) == std::vector<float>(3, none));
    }
}

TEST_CASE("clustered_projection reads no weight beyond its own", "[clustered_projection]") {
  for (auto const at_end : {true, false})
    for (std::ptrdiff_t const d : {1, 3, 17, 64}) {
      OutputLayer layer(7, 333, d);
      std::vector<float> packed;
      for (std::ptrdiff_t v = 0; v < layer.size; ++v)
        packed.insert(packed.end(), layer.view()[v].begin(), layer.view()[v].end());
      auto const h = layer.vectors(5);
      Fenced<float> const w(packed, at_end), b(layer.bias, at_end), x(h, at_end);
      ClusteredProjection projection({w.data(), layer.size, d, d}, {b.data(), layer.bias.size()}, layer.clusters,
                                     {.always = {0, 332}});
      auto reference = layer.clustered({.always = {0, 332}});
      std::vector<Query> const queries(5, Query{.best = 1});
      auto const got = projection.expand(hidden(x.data(), 5, d), queries, {});
      auto const expected = reference.expand(hidden(h.data(), 5, d), queries, {});
      for (std::size_t i = 0; i < 5; ++i) CHECK(same_line(got[i], expected[i]));
    }
}

TEST_CASE("an audit counts how often the best token is the full projection's", "[clustered_projection]") {
  for (auto const unite : {Union::sentence, Union::batch})
    for (std::int32_t const audit : {1, 2, 5}) {
      OutputLayer layer(static_cast<std::uint64_t>(audit), 300, 8, 1, 60);
      auto projection = layer.clustered({.always = {2}, .unite = unite, .audit = audit});
      auto reference = layer.clustered({.always = {2}, .unite = unite});
      auto dense = layer.dense();
      std::uint64_t audited = 0, agreed = 0, lines = 0;
      auto bias = 0.0;
      for (int round = 0; round < 12; ++round) {
        Step const step(layer, 5);
        auto const view = step.vectors(layer.d, 0, step.queries.size());
        auto const got = projection.expand(view, step.queries, step.groups);
        auto const expected = reference.expand(view, step.queries, step.groups);
        auto const full = dense.expand(view, step.queries, {});
        lines += step.queries.size();
        for (std::size_t i = 0; i < step.queries.size(); ++i) {
          CHECK(same_line(got[i], expected[i]));
          if (round % audit != 0 || got[i].best.empty() || full[i].best.empty()) continue;
          ++audited;
          if (got[i].best[0].token != full[i].best[0].token) continue;
          ++agreed;
          bias += static_cast<double>(got[i].best[0].log_prob) - static_cast<double>(full[i].best[0].log_prob);
        }
      }
      auto const& seen = projection.statistics();
      CHECK(seen.lines == lines);
      CHECK(seen.unions == reference.statistics().unions);
      CHECK(seen.audited == audited);
      CHECK(seen.agreed == agreed);
      CHECK(agreed > 0);
      CHECK_THAT(seen.bias, WithinAbs(bias, 1e-9));
    }
  ClusteredStatistics some{.lines = 9, .unions = 4, .full = 1, .active = 60};
  CHECK_THAT(some.active_share(100), WithinAbs(0.4, 1e-12));
  CHECK(ClusteredStatistics().active_share(100) == 0);
  some += some;
  CHECK((some.lines == 18 && some.unions == 8 && some.full == 2 && some.active == 120));
}

TEST_CASE("clustered_projection refuses what does not fit, by name and value", "[clustered_projection]") {
  OutputLayer layer(6, 50, 4, 2);
  auto const with = [&](auto&& change) {
    return complaint([&] {
      auto clusters = layer.clusters;
      ClusteredOptions options;
      auto full = layer.dense().weights();
      std::span<float const> bias = layer.bias;
      change(clusters, options, full, bias);
      ClusteredProjection const made(layer.view(), bias, clusters, options, full);
    });
  };
  auto const names = [](std::string const& text, std::string const& start) {
    INFO(text << " should begin with " << start);
    CHECK(text.starts_with("sluice: " + start));
  };
  CHECK(with([](auto&, auto&, auto&, auto&) {}) == "none");
  CHECK(with([](auto& c, auto&, auto&, auto&) { c.clear(); }) == "none");
  names(with([](auto& c, auto&, auto&, auto&) { c[1].vocabulary_size = 51; }),
        "ClusteredProjection: clusters.vocabulary_size = 51");
  names(with([](auto& c, auto&, auto&, auto&) {
          c[1].hidden_size = 2, c[1].centroids.resize(c[1].centroids.size() / 2);
        }),
        "ClusteredProjection: clusters.hidden_size = 2");
  names(with([](auto& c, auto&, auto&, auto&) { c[0].begin[0] = 1; }), "clusters.begin[0] = 1");
  names(with([](auto&, auto& o, auto&, auto&) { o.always = {3, 50}; }), "ClusteredProjection: always = 50");
  names(with([](auto&, auto& o, auto&, auto&) { o.always = {-1}; }), "ClusteredProjection: always = -1");
  names(with([](auto&, auto& o, auto&, auto&) { o.full_above = 1.5; }), "ClusteredProjection: full_above = 1.5");
  names(with([](auto&, auto& o, auto&, auto&) { o.full_above = -0.5; }), "ClusteredProjection: full_above = -0.5");
  names(with([](auto&, auto& o, auto&, auto&) { o.full_above = std::nan(""); }),
        "ClusteredProjection: full_above = nan");
  names(with([](auto&, auto& o, auto&, auto&) { o.audit = -2; }), "ClusteredProjection: audit = -2");
  names(with([](auto&, auto&, auto&, auto& b) { b = b.first(49); }), "projection: bias.size() = 49");
  names(with([](auto&, auto&, auto& f, auto& b) { f.reset(), b = b.first(49); }), "");
  OutputLayer other(6, 51, 4), deeper(6, 50, 5);
  names(with([&](auto&, auto&, auto& f, auto&) { f = other.dense().weights(); }), "projection: full.outputs() = 51");
  names(with([&](auto&, auto&, auto& f, auto&) { f = deeper.dense().weights(); }), "projection: full.inputs() = 5");
  auto projection = layer.clustered({});
  std::vector<float> const h(10);
  std::vector<Query> const queries(2);
  names(complaint([&] { projection.expand(hidden(h.data(), 2, 5), queries, {}); }),
        "ClusteredProjection: hidden.columns = 5");
}

TEST_CASE("clustered_projection allocates nothing once warm", "[clustered_projection]") {
  for (auto const& [unite, precision] : {std::pair{Union::sentence, Precision::float32},
                                         {Union::batch, Precision::float32},
                                         {Union::sentence, Precision::bfloat16},
                                         {Union::batch, Precision::int8}}) {
    OutputLayer layer(9, 900, 16, 2);
    auto projection = layer.clustered({.always = {2}, .unite = unite, .audit = 2}, precision);
    Step const step(layer, 30, true, 2);
    auto const view = step.vectors(layer.d, 0, step.queries.size());
    for (int i = 0; i < 2; ++i) projection.expand(view, step.queries, step.groups);
    auto const before = allocations();
    for (int i = 0; i < 3; ++i) projection.expand(view, step.queries, step.groups);
    projection.expand(view, {}, {});
    CHECK(allocations() == before);
  }
}

TEST_CASE("decoding through a clustered_projection does not depend on batch or schedule", "[clustered_projection]") {
  constexpr Abilities ragged{.ragged = true};
  auto const decode_all = [](auto const& search, auto model, auto const& schedule, OutputLayer const& layer) {
    using S = std::remove_cvref_t<decltype(search)>;
    std::vector<Request<std::uint64_t, S>> requests;
    for (std::uint64_t i = 0; i < 17; ++i)
      requests.push_back({.source = i,
                          .prefix = i % 5 == 1 ? std::vector<Token>{7, 8} : std::vector<Token>{},
                          .direction = static_cast<std::int32_t>(i % 3)});
    return decode(model, requests, search, schedule, layer.clustered({.always = {eos}, .full_above = 0.7}));
  };
  auto const check = [&](auto const& search) {
    OutputLayer const layer(31, 90, 8, 2);
    HiddenModel<> const model(90, 8);
    HiddenModel<ragged> const able(90, 8);
    auto const expected = decode_all(search, model, Batched{.size = 1}, layer);
    auto const equal = [&](std::vector<Result> const& results) {
      REQUIRE(results.size() == expected.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        INFO("sentence " << i);
        REQUIRE(expected[i].ok());
        CHECK(identical(results[i], expected[i]));
      }
    };
    for (std::size_t const size : {3u, 8u, 64u}) equal(decode_all(search, model, Batched{.size = size}, layer));
    for (std::size_t const size : {1u, 3u, 8u}) {
      equal(decode_all(search, model, Streaming{.size = size, .refill_below = 1}, layer));
      equal(decode_all(search, able, Streaming{.size = size, .refill_below = 0.5}, layer));
    }
  };
  check(Greedy{.length = {.max = 15}});
  check(BeamSearch{.width = 4, .n_best = 4, .length = {.max = 15}});
  check(BeamSearch{.width = 3, .n_best = 2, .length = {.min = 3, .max = 15}, .stage = Stage::before_softmax});
  check(Sample{.samples = 3, .length = {.max = 15}});
  check(Sample{.top_k = 5, .length = {.max = 15}});
}
