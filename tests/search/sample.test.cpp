// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/chi_squared.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Search<Sample>);
using SampleRequest = TableRequest<Sample>;
using Probabilities = std::vector<double>;

/// The distribution to draw from, computed plainly: one cut after another, renormalised after each.
Probabilities expected(Table const& table, std::uint64_t seed, Sample const& search) {
  Probabilities p(static_cast<std::size_t>(table.size));
  table.logits(seed, {}, p);
  for (auto& x : p) x = std::exp(x / static_cast<double>(search.temperature));
  auto const normalise = [&] {
    double sum = 0;
    for (auto x : p) sum += x;
    for (auto& x : p) x /= sum;
  };
  auto const ranked = [&](auto const& before) {
    std::vector<std::size_t> order;
    for (std::size_t v = 0; v < p.size(); ++v)
      if (p[v] > 0) order.push_back(v);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return before(a, b) || (!before(b, a) && a < b); });
    return order;
  };
  auto const keep = [&](std::vector<std::size_t> const& order, double mass) {
    double held = 0;
    for (auto v : order) {
      auto const full = held >= mass;
      held += p[v];
      if (full) p[v] = 0;
    }
    normalise();
  };
  auto const more_probable = [&](auto a, auto b) { return p[a] > p[b]; };
  normalise();
  if (search.top_k > 0) {
    auto const order = ranked(more_probable);
    for (auto i = static_cast<std::size_t>(search.top_k); i < order.size(); ++i) p[order[i]] = 0;
    normalise();
  }
  if (search.top_p < 1) keep(ranked(more_probable), static_cast<double>(search.top_p));
  if (search.min_p > 0) {
    auto const bar = *std::max_element(p.begin(), p.end()) * static_cast<double>(search.min_p);
    for (auto& x : p) x = x >= bar ? x : 0;
    normalise();
  }
  if (search.typical < 1) {
    double entropy = 0;
    for (auto x : p) entropy -= x > 0 ? x * std::log(x) : 0;
    auto const far = [&](std::size_t v) { return std::abs(-std::log(p[v]) - entropy); };
    keep(ranked([&](auto a, auto b) { return far(a) < far(b); }), static_cast<double>(search.typical));
  }
  return p;
}

/// Tables that draw every token from the same line and never end.
Table constant_table(double scale = 4) { return {.size = 13, .scale = scale, .order = 0, .has_eos = false}; }

std::vector<std::int64_t> token_counts(Table const& table, std::uint64_t seed, Sample search, std::int32_t samples,
                                       std::int32_t length) {
  search.samples = samples, search.length.max = length;
  TableModel<plain> model(table);
  std::vector<SampleRequest> const requests{{.source = seed, .seed = 4711 + seed}};
  auto const results = decode(model, requests, search);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(table.size));
  REQUIRE(results.at(0).hypotheses.size() == static_cast<std::size_t>(samples));
  for (auto const& h : results[0].hypotheses) {
    REQUIRE(h.tokens.size() == static_cast<std::size_t>(length));
    for (auto token : h.tokens) ++counts[static_cast<std::size_t>(token)];
  }
  return counts;
}

std::vector<Sample> const& truncations() {
  static std::vector<Sample> const all{
      {},
      {.temperature = 0.5f},
      {.temperature = 3},
      {.top_k = 4},
      {.top_p = 0.8f},
      {.min_p = 0.15f},
      {.typical = 0.7f},
      {.temperature = 1.7f, .top_k = 6, .top_p = 0.85f},
      {.top_k = 9, .top_p = 0.95f, .min_p = 0.1f},
      {.temperature = 2, .top_p = 0.9f, .min_p = 0.2f},
      {.temperature = 1.5f, .top_k = 8, .typical = 0.6f},
      {.temperature = 1.5f, .min_p = 0.05f, .typical = 0.8f},
      {.temperature = 2, .top_k = 10, .top_p = 0.95f, .min_p = 0.05f, .typical = 0.75f},
  };
  return all;
}

std::string describe(Sample const& s) {
  auto text = "temperature " + std::to_string(s.temperature) + ", top_k " + std::to_string(s.top_k);
  text += ", top_p " + std::to_string(s.top_p) + ", min_p " + std::to_string(s.min_p);
  return text + ", typical " + std::to_string(s.typical) + ", samples " + std::to_string(s.samples);
}

}  // namespace

TEST_CASE("sample draws tokens from the model's distribution, cut as asked", "[sample]") {
  for (auto const& search : truncations()) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      auto const p = expected(constant_table(), seed, search);
      auto const possible = static_cast<std::size_t>(std::count_if(p.begin(), p.end(), [](double x) { return x > 0; }));
      INFO(describe(search) << ", seed " << seed << ", " << possible << " tokens");
      if (search.top_k == 4) CHECK(possible == 4);
      // Consecutive tokens in one text, and samples side by side after the prompt: draws by the expander, and draws
      // from one list.
      check_distribution(token_counts(constant_table(), seed, search, 100, 400), p);
      check_distribution(token_counts(constant_table(), seed, search, 40000, 1), p);
    }
  }
}

TEST_CASE("sample follows the distribution for a million draws", "[sample]") {
  auto const table = constant_table(7);
  check_distribution(token_counts(table, 3, {}, 1000, 1000), expected(table, 3, {}), 8);
}

TEST_CASE("sample draws whole outputs with their probabilities", "[sample]") {
  for (auto const& [minimum, maximum] : {std::pair{0, 4}, std::pair{2, 3}, std::pair{0, 1}}) {
    Table const table{.size = 6, .scale = 3, .eos_bias = 1, .eos_slope = 0.2};
    auto const universe =
        Universe{.minimum = minimum, .maximum = maximum, .must_finish = false, .masked_before_softmax = true};
    auto const sequences = all_sequences(table, 5, universe);
    std::map<std::vector<Token>, std::size_t> number;
    Probabilities p;
    for (auto const& s : sequences) number[s.tokens] = p.size(), p.push_back(std::exp(s.log_prob));

    std::vector<SampleRequest> requests;
    for (std::uint64_t i = 0; i < 400; ++i) requests.push_back({.source = 5, .seed = 1000 + i});
    TableModel<plain> model(table);
    Sample const search{.samples = 200, .length = {.min = minimum, .max = maximum}};
    std::vector<std::int64_t> counts(p.size());
    for (auto const& result : decode(model, requests, search))
      for (auto const& h : result.hypotheses) {
        auto const found = number.find(h.tokens);
        REQUIRE(found != number.end());
        ++counts[found->second];
        auto const& truth = sequences[found->second];
        if (std::abs(h.log_prob - truth.log_prob) > 1e-4 || h.score != h.log_prob) CHECK(h.log_prob == truth.log_prob);
        if (h.finished != truth.finished) CHECK(h.finished == truth.finished);
      }
    INFO("lengths " << minimum << " to " << maximum << ", " << p.size() << " outputs");
    check_distribution(counts, p, maximum > 1 ? 20 : 3);
  }
}

TEST_CASE("sample gives the same text in any batch, order and set of abilities", "[sample]") {
  std::mt19937_64 random(1);
  Table const table{.size = 20, .scale = 4, .eos_bias = 1, .eos_slope = 0.2};
  std::vector<SampleRequest> requests;
  std::vector<Result> alone;
  for (std::uint64_t i = 0; i < 40; ++i) {
    SampleRequest request{.source = 100 + i % 7, .seed = 7 * i};
    if (i % 3 == 1) request.prompt = {bos, static_cast<Token>(3 + i % 5), 4};
    if (i % 4 == 1) request.prefix = {5, static_cast<Token>(3 + i % 7)};
    request.search = truncations()[i % truncations().size()];
    request.search->samples = static_cast<std::int32_t>(1 + i % 4), request.search->distinct = i % 5 == 1;
    request.search->length = {.min = static_cast<std::int32_t>(i % 3), .max = static_cast<std::int32_t>(3 + i % 9)};
    requests.push_back(request);
    alone.push_back(run<plain>(table, std::vector{request}, Sample{}).at(0));
    REQUIRE(alone.back().ok());
  }
  for_pairs_of_abilities([&]<Abilities A>() {
    for (std::size_t const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", roll_back " << A.roll_back << ", batch " << batch);
      auto const results = run<A>(table, requests, Sample{}, Batched{batch});
      for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], alone[i]));
    }
    std::vector<std::size_t> order(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<SampleRequest> shuffled;
    for (auto i : order) shuffled.push_back(requests[i]);
    auto const results = run<A>(table, shuffled, Sample{}, Batched{9});
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(identical(results[i], alone[order[i]]));
  });
}

TEST_CASE("sample i is the same however many there are, and goes on from its own beginning", "[sample]") {
  Table const table{.size = 12, .scale = 4, .eos_bias = 0, .eos_slope = 0.1};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto search = truncations()[seed % truncations().size()];
    search.length.max = 12;
    INFO("seed " << seed << ", " << describe(search));
    auto const with = [&](std::int32_t samples, std::vector<Token> const& prefix) {
      search.samples = samples;
      return run(table, std::vector<SampleRequest>{{.source = seed, .prefix = prefix, .seed = 9 * seed}}, search)
          .at(0)
          .hypotheses;
    };
    auto const one = with(1, {}), five = with(5, {});
    REQUIRE(five.size() == 5);
    CHECK(five[0].tokens == one.at(0).tokens);
    auto const& tokens = one[0].tokens;
    auto const part = static_cast<std::ptrdiff_t>(tokens.size() / 2);
    CHECK(with(1, {tokens.begin(), tokens.begin() + part}).at(0).tokens == tokens);
  }
}

TEST_CASE("samples are independent: of one sentence, of neighbouring seeds, of neighbouring tokens", "[sample]") {
  auto const table = constant_table(2);
  auto const p = expected(table, 1, {});
  auto const n = p.size();
  Probabilities pairs(n * n);
  for (std::size_t i = 0; i < n * n; ++i) pairs[i] = p[i / n] * p[i % n];
  std::vector<std::int64_t> side_by_side(n * n), seeds(n * n), tokens(n * n);

  std::vector<SampleRequest> requests;
  for (std::uint64_t i = 0; i < 40000; ++i) requests.push_back({.source = 1, .seed = i});
  TableModel<plain> model(table);
  auto const results = decode(model, requests, Sample{.samples = 3, .length = {.max = 2}});
  auto const pair = [&](Token a, Token b) { return static_cast<std::size_t>(a) * n + static_cast<std::size_t>(b); };
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto const& h = results[i].hypotheses;
    ++side_by_side[pair(h[1].tokens[0], h[2].tokens[0])];
    ++tokens[pair(h[0].tokens[0], h[0].tokens[1])];
    if (i % 2 == 1) ++seeds[pair(results[i - 1].hypotheses[0].tokens[0], h[0].tokens[0])];
  }
  check_distribution(side_by_side, pairs, 50);
  check_distribution(tokens, pairs, 50);
  check_distribution(seeds, pairs, 50);
}

TEST_CASE("sample keeps different outputs only, best first, where that is asked", "[sample]") {
  Table const table{.size = 6, .scale = 4, .eos_bias = 2};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Sample search{.samples = 20, .length = {.max = 3}};
    auto const all = run_one(table, seed, search);
    search.distinct = true;
    auto const some = run_one(table, seed, search);
    INFO("seed " << seed);
    check_result(some, table, seed);
    std::set<std::vector<Token>> before, after;
    for (auto const& h : all.hypotheses) before.insert(h.tokens);
    for (auto const& h : some.hypotheses) after.insert(h.tokens);
    CHECK(all.hypotheses.size() == 20);
    CHECK(some.hypotheses.size() == after.size());
    CHECK(after == before);
  }
}

TEST_CASE("sample is greedy where only the best token is left", "[sample]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 12);
    INFO("seed " << seed);
    LengthLimits const length{.max = 9};
    auto const best = run_one(table, seed, Greedy{.length = length}).hypotheses.at(0);
    for (auto const& search :
         {Sample{.top_k = 1, .length = length}, Sample{.top_p = 1e-6f, .samples = 2, .length = length},
          Sample{.min_p = 1, .length = length}, Sample{.top_k = 5, .top_p = 1e-6f, .length = length}}) {
      auto const h = run_one(table, seed, search).hypotheses.at(0);
      CHECK(h.tokens == best.tokens);
      CHECK(h.finished == best.finished);
      CHECK_THAT(h.log_prob, WithinAbs(best.log_prob, 1e-4));
    }
    auto clear = true;  // no two tokens are nearly equal on the greedy path
    std::vector<double> line(12);
    for (std::size_t t = 0; t < best.tokens.size(); ++t) {
      table.logits(seed, std::span(best.tokens).first(t), line);
      std::sort(line.begin(), line.end());
      clear = clear && line[11] - line[10] > 0.01;
    }
    if (clear)
      CHECK(run_one(table, seed, Sample{.temperature = 1e-4f, .length = length}).hypotheses.at(0).tokens ==
            best.tokens);
  }
}

TEST_CASE("sample never draws what is forbidden, and draws the rest as if it were not there", "[sample]") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    auto const table = Table{.size = 9, .scale = 3, .eos_bias = 0, .eos_slope = 0.2};
    auto search = truncations()[seed % truncations().size()];
    search.length = {.min = static_cast<std::int32_t>(seed % 4), .max = 8}, search.samples = 3;
    INFO("seed " << seed << ", " << describe(search));
    auto const usual = run_one(table, seed, search);
    for (auto const kind : {Kind::logits, Kind::log_probs}) {
      // The model favours pad and bos; only Vocabulary::never excludes them.
      auto const forbidden = run_one(table, seed, search, {.kind = kind, .impossible = false});
      for (std::size_t i = 0; i < 3; ++i) {
        auto const &h = forbidden.hypotheses.at(i), &expected = usual.hypotheses.at(i);
        CHECK(h.tokens == expected.tokens);
        CHECK_THAT(h.log_prob, WithinAbs(expected.log_prob, 1e-4));
        CHECK(h.tokens.size() > static_cast<std::size_t>(search.length.min));  // and eos
      }
    }
  }
  Table const only_eos{.size = 3};  // and eos comes too early
  auto const result = run_one(only_eos, 1, Sample{.samples = 3, .length = {.min = 2, .max = 4}});
  CHECK(result.failure == Failure::no_token_left);
  CHECK(result.hypotheses.empty());
  CHECK(run_one(only_eos, 1, Sample{.samples = 2}).hypotheses.at(1).tokens == std::vector<Token>{eos});
}

TEST_CASE("a sample's log-probability is that of a forced score, tempered", "[sample]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 12);
    auto search = truncations()[seed % truncations().size()];
    search.samples = 2, search.length.max = 10;
    INFO("seed " << seed << ", " << describe(search));
    std::vector<Token> const prefix = seed % 3 == 0 ? std::vector<Token>{4, 3} : std::vector<Token>{};
    auto const result = run(table, std::vector<SampleRequest>{{.source = seed, .prefix = prefix}}, search).at(0);
    for (auto const& h : result.hypotheses) {
      REQUIRE(std::equal(prefix.begin(), prefix.end(), h.tokens.begin()));
      std::vector<double> line(12);
      double sum = 0;
      for (std::size_t t = 0; t < h.tokens.size(); ++t) {
        table.logits(seed, std::span(h.tokens).first(t), line);
        double all = 0;
        auto const temperature = static_cast<double>(search.temperature);
        for (auto x : line) all += std::exp(x / temperature);
        auto const x = line[static_cast<std::size_t>(h.tokens[t])] / temperature - std::log(all);
        CHECK_THAT(static_cast<double>(h.log_probs[t]), WithinAbs(x, 3e-5));
        sum += x;
      }
      CHECK_THAT(h.log_prob, WithinAbs(sum, 1e-3));
      CHECK(h.score == h.log_prob);
      if (search.temperature != 1.0f) continue;
      auto const forced =
          run(table, std::vector<TableRequest<ForcedScore>>{{.source = seed, .prefix = h.tokens}}, ForcedScore{}).at(0);
      CHECK_THAT(h.log_prob, WithinAbs(forced.hypotheses.at(0).log_prob, 1e-4));
    }
  }
}

TEST_CASE("samples share the prompt, and give their slots back when they end", "[sample]") {
  Table const table{.size = 8, .scale = 2, .eos_bias = 0, .eos_slope = 0.3};
  Counters counters;
  auto const results = run<plain>(table, std::vector<SampleRequest>{{.source = 3, .prompt = {bos, 3, 4, 5}}},
                                  Sample{.samples = 8, .length = {.max = 20}}, Batched{}, {}, &counters);
  std::size_t rows = 4, ended_at_once = 0;
  for (auto const& h : results[0].hypotheses) {
    rows += h.tokens.size() - 1, ended_at_once += h.tokens.size() == 1;
    CHECK(h.finished);
  }
  CHECK(counters.rows == rows);
  CHECK(counters.forks == 8 - ended_at_once - 1);
  CHECK(counters.most_slots == 8 - ended_at_once);
}

TEST_CASE("a sample's slot is free one step after it has ended", "[sample]") {
  Table const table{.size = 8, .scale = 2, .eos_bias = 0, .eos_slope = 0.3};
  Sample const search{.samples = 8, .length = {.max = 20}};
  auto const hypotheses = run_one(table, 3, search).hypotheses;
  CheckedTable<> model{TableModel<everything>(table)};
  Decoder decoder(model, search);
  decoder.submit({.source = 3});
  decoder.step();
  for (std::size_t length = 2; decoder.running() > 0; ++length) {
    auto const alive = std::ranges::count_if(hypotheses, [&](auto const& h) { return h.tokens.size() >= length; });
    decoder.step();
    if (decoder.running() > 0) CHECK(model.held() == static_cast<std::size_t>(alive));
  }
  CHECK(model.report() == "");
}

TEST_CASE("sample with lengths at the edge", "[sample]") {
  Table const table{.size = 8};
  auto const none = run_one(table, 1, Sample{.samples = 3, .length = {.max = 0}});
  REQUIRE(none.hypotheses.size() == 3);
  CHECK(none.hypotheses[2].tokens.empty());
  CHECK(run_one(table, 1, Sample{.samples = 3, .distinct = true, .length = {.max = 0}}).hypotheses.size() == 1);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const one = run_one(table, seed, Sample{.samples = 3, .length = {.max = 1}});
    REQUIRE(one.hypotheses.size() == 3);
    for (auto const& h : one.hypotheses) {
      REQUIRE(h.tokens.size() == 1);
      CHECK(h.finished == (h.tokens[0] == eos));
    }
  }
  auto const endless = run_one(constant_table(), 1, Sample{.length = {.max = 5}});
  CHECK(endless.hypotheses.at(0).finished);
}

TEST_CASE("sample shows what there is when it is cancelled", "[sample]") {
  TableModel<plain> model(constant_table());
  Sample const search{.samples = 2, .length = {.max = 9}};
  Decoder decoder(model, search);
  std::vector<SampleRequest> const requests{{.source = 1, .prompt = {bos, 3, 4}, .seed = 5}};
  auto const whole = decode(model, requests, search).at(0);
  for (int steps = 0; steps < 9; ++steps) {
    auto const id = decoder.submit(requests[0]);
    for (int i = 0; i < steps; ++i) decoder.step();
    REQUIRE(decoder.cancel(id));
    Result result;
    REQUIRE(decoder.poll(result));
    CHECK(result.failure == Failure::cancelled);
    CHECK(result.hypotheses.size() == (steps < 3 ? 0u : 2u));
    for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
      auto const& h = result.hypotheses[i];
      CHECK(h.tokens.size() == static_cast<std::size_t>(steps - 2));
      CHECK_FALSE(h.finished);
      CHECK(std::equal(h.tokens.begin(), h.tokens.end(), whole.hypotheses[i].tokens.begin()));
    }
  }
}

TEST_CASE("sample refuses options that make no sense", "[sample]") {
  TableModel<> model;
  std::vector<std::uint64_t> const sources{1};
  auto const refused = [&](Sample const& search, std::string const& name) {
    try {
      decode(model, sources, search);
    } catch (std::invalid_argument const& error) {
      return std::string(error.what()).find(name) != std::string::npos;
    }
    return false;
  };
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused({.temperature = 0}, "temperature"));
  CHECK(refused({.temperature = nan}, "temperature"));
  CHECK(refused({.top_k = -1}, "top_k"));
  CHECK(refused({.top_p = 0}, "top_p"));
  CHECK(refused({.top_p = 1.5f}, "top_p"));
  CHECK(refused({.min_p = nan}, "min_p"));
  CHECK(refused({.min_p = 1.1f}, "min_p"));
  CHECK(refused({.typical = 0}, "typical"));
  CHECK(refused({.samples = 0}, "samples"));
  CHECK(refused({.length = {.max = -1}}, "length.max"));
  CHECK_FALSE(refused({}, ""));
}
