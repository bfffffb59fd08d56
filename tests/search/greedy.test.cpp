// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/random_query.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

static_assert(Search<Greedy>);
using GreedyRequest = TableRequest<Greedy>;

/// Plain greedy decoding, in float like the model's scores.
std::vector<Token> reference(Table const& table, std::uint64_t seed, std::int32_t min, std::int32_t max,
                             std::vector<Token> context = {}, std::vector<Token> const& prefix = {}) {
  std::vector<Token> tokens = prefix;
  context.insert(context.end(), prefix.begin(), prefix.end());
  std::vector<double> line(static_cast<std::size_t>(table.size));
  while (static_cast<std::int32_t>(tokens.size()) < max) {
    table.logits(seed, context, line);
    Token best = -1;
    for (Token v = 0; v < table.size; ++v) {
      if (!table.possible(v) || (table.ends(v) && static_cast<std::int32_t>(tokens.size()) < min)) continue;
      if (best < 0 || static_cast<float>(line[static_cast<std::size_t>(v)]) >
                          static_cast<float>(line[static_cast<std::size_t>(best)]))
        best = v;
    }
    if (best < 0) break;
    tokens.push_back(best), context.push_back(best);
    if (table.ends(best)) break;
  }
  return tokens;
}

/// A model whose scores are a few floats apart and depend on the last token, plus a token that is impossible.
class NearModel {
 public:
  using Source = std::uint64_t;
  NearModel(std::int32_t size, bool never) : vocabulary_{.size = size + (never ? 1 : 0), .bos = 0, .eos = {1}} {
    if (never) vocabulary_.never = {size};
  }
  Vocabulary const& vocabulary() const { return vocabulary_; }
  void start(std::span<Source const* const> sources, std::span<Slot const>) { seed_ = *sources[0]; }
  Scores<float> step(std::span<Row const> rows) {
    scores_.clear();
    for (auto const& row : rows) {
      auto const line =
          of(seed_, row.tokens.back(), vocabulary_.size - static_cast<std::int32_t>(vocabulary_.never.size()));
      scores_.insert(scores_.end(), line.begin(), line.end());
      if (!vocabulary_.never.empty()) scores_.push_back(-std::numeric_limits<float>::infinity());
    }
    return scores(scores_.data(), std::ssize(rows), vocabulary_.size);
  }
  static std::vector<float> of(std::uint64_t seed, Token last, std::int32_t size) {
    std::mt19937_64 random(hash_mix(seed + 1) + static_cast<std::uint64_t>(last));
    return near_ties(random, static_cast<std::size_t>(size));
  }

 private:
  Vocabulary vocabulary_;
  std::uint64_t seed_ = 0;
  std::vector<float> scores_;
};

}  // namespace

TEST_CASE("a token that never comes changes no other, however near their scores are", "[greedy]") {
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    auto const size = 3 + static_cast<std::int32_t>(seed % 40);
    NearModel without(size, false), with(size, true);
    INFO("seed " << seed << ", V = " << size);
    for (auto const min : {0, 4, 12}) {
      Greedy const greedy{.length = {.min = min, .max = 12}};
      auto const find = [&](auto& model, auto const& search) {
        using S = std::decay_t<decltype(search)>;
        return decode(model, std::vector<Request<std::uint64_t, S>>{{.source = seed}}, search).at(0);
      };
      auto const one = find(with, greedy);
      CHECK(same_outputs(one, find(without, greedy)));
      std::vector<Token> exact;  // scores are used unchanged
      for (Token last = 0; std::ssize(exact) < 12 && last != 1;) {
        auto line = NearModel::of(seed, last, size);
        if (std::ssize(exact) < min) line[1] = -std::numeric_limits<float>::infinity();
        exact.push_back(last = static_cast<Token>(std::ranges::max_element(line) - line.begin()));
      }
      CHECK(one.hypotheses.at(0).tokens == exact);
      BeamSearch const beam{.width = 4, .n_best = 4, .length = {.min = min, .max = 12}};
      CHECK(same_outputs(find(with, beam), find(without, beam)));
      auto narrow = beam;
      narrow.width = narrow.n_best = 1, narrow.at_maximum = AtMaximum::truncate;
      CHECK(find(with, narrow).hypotheses.at(0).tokens == exact);
    }
  }
}

TEST_CASE("greedy takes the best token until eos or the maximum", "[greedy]") {
  for (std::uint64_t seed = 0; seed < times(3000u); ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 4 + static_cast<std::int32_t>(random() % 30));
    if (seed % 5 == 0) table.levels = 3;
    if (seed % 7 == 0) table.has_eos = false;
    if (seed % 11 == 0) table.second_eos = 3;
    auto const max = 1 + static_cast<std::int32_t>(random() % 12);
    auto const min = std::min(static_cast<std::int32_t>(random() % 4), max);
    INFO("seed " << seed << ", V = " << table.size << ", min " << min << ", max " << max);
    if (table.size == 4 && table.second_eos == 3 && min > 0) continue;  // no token left
    auto const result = run_one(table, seed, Greedy{.length = {.min = min, .max = max}});
    check_result(result, table, seed);
    REQUIRE(result.hypotheses.size() == 1);
    auto const& h = result.hypotheses[0];
    CHECK(h.tokens == reference(table, seed, min, max));
    CHECK(h.score == h.log_prob);
    CHECK(h.finished == (table.endless() || table.ends(h.tokens.back())));
  }
}

TEST_CASE("greedy gives the same bits in any batch, order and set of abilities", "[greedy]") {
  std::mt19937_64 random(1);
  Table const table{.size = 20, .scale = 5, .eos_bias = 0, .eos_slope = 0.3};
  std::vector<GreedyRequest> requests;
  std::vector<Result> alone;
  for (std::uint64_t i = 0; i < 40; ++i) {
    GreedyRequest request{.source = 100 + i};
    if (i % 3 == 1) request.prompt = {bos, static_cast<Token>(3 + i % 5), 4};
    if (i % 4 == 1) request.prefix = {5, static_cast<Token>(3 + i % 7)};
    if (i % 9 == 1) request.search = Greedy{.length = {.min = 4, .max = static_cast<std::int32_t>(5 + i)}};
    requests.push_back(request);
    alone.push_back(run<plain>(table, {request}, Greedy{}).at(0));
    auto const prompt = request.prompt.empty() ? std::vector<Token>{}
                                               : std::vector<Token>(request.prompt.begin() + 1, request.prompt.end());
    check_result(alone.back(), table, request.source, prompt);
    auto const min = request.search ? 4 : 0, max = request.search ? static_cast<std::int32_t>(5 + i) : 256;
    CHECK(alone.back().hypotheses.at(0).tokens == reference(table, request.source, min, max, prompt, request.prefix));
  }
  for_all_abilities([&]<Abilities A>() {
    for (std::size_t const batch : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", roll_back " << A.roll_back << ", batch " << batch);
      auto const results = run<A>(table, requests, Greedy{}, Batched{batch});
      for (std::size_t i = 0; i < requests.size(); ++i) CHECK(identical(results[i], alone[i]));
    }
    std::vector<std::size_t> order(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<GreedyRequest> shuffled;
    for (auto i : order) shuffled.push_back(requests[i]);
    auto const results = run<A>(table, shuffled, Greedy{}, Batched{9});
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(identical(results[i], alone[order[i]]));
  });
}

TEST_CASE("greedy without scores finds the same tokens", "[greedy]") {
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 12);
    INFO("seed " << seed);
    Greedy with{.length = {.min = 2, .max = 9}};
    auto without = with;
    without.scores = false;
    std::vector<GreedyRequest> const requests{{.source = seed}, {.source = seed + 1, .prefix = {4}}};
    auto const a = run<everything>(table, requests, with), b = run<everything>(table, requests, without);
    for (std::size_t i = 0; i < 2; ++i) {
      auto const& h = b[i].hypotheses.at(0);
      CHECK(h.tokens == a[i].hypotheses.at(0).tokens);
      CHECK(h.finished == a[i].hypotheses.at(0).finished);
      REQUIRE(h.log_probs.size() == h.tokens.size());
      for (auto x : h.log_probs) CHECK(std::isnan(x));
      CHECK(std::isnan(h.log_prob));
      CHECK(std::isnan(h.score));
    }
  }
}

TEST_CASE("greedy never says what the vocabulary forbids", "[greedy]") {
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 9);
    INFO("seed " << seed);
    Greedy const search{.length = {.max = 12}};
    auto const expected = run_one(table, seed, search);
    for (auto const kind : {Kind::logits, Kind::log_probs}) {
      // The model favours pad and bos; only Vocabulary::never excludes them.
      auto const forbidden = run_one(table, seed, search, {.kind = kind, .impossible = false});
      CHECK(forbidden.hypotheses.at(0).tokens == expected.hypotheses.at(0).tokens);
      // Nothing is in Vocabulary::never, but the scores are -infinity.
      CHECK(run_one(table, seed, search, {.kind = kind, .never = false}).hypotheses.at(0).tokens ==
            expected.hypotheses.at(0).tokens);
    }
  }
}

TEST_CASE("greedy's score is a sum, or what its penalty makes of it", "[greedy]") {
  std::mt19937_64 random(5);
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    auto const table = random_table(random, 12);
    LengthLimits const length{.max = 9};
    auto const sum = run_one(table, seed, Greedy{.length = length}).hypotheses.at(0);
    auto const mean = run_one(table, seed, Greedy{.length = length, .penalty = {.alpha = 0.5}}).hypotheses.at(0);
    CHECK(sum.score == sum.log_prob);
    CHECK(mean.tokens == sum.tokens);
    CHECK_THAT(mean.score, WithinAbs(sum.log_prob / std::sqrt(static_cast<double>(sum.tokens.size())), 1e-12));
  }
}

TEST_CASE("CTranslate2's greedy divides by the length and forbids eos before the softmax", "[greedy]") {
  // include/ctranslate2/translation.h, TranslationOptions: length_penalty = 1, min_decoding_length = 1,
  // max_decoding_length = 256; src/decoding.cc, GreedySearch::search: apply_min_length, then LogSoftMax.
  auto const preset = presets::ctranslate2_greedy();
  CHECK(preset.length.min == 1);
  CHECK(preset.length.max == 256);
  std::mt19937_64 random(6);
  std::size_t different = 0;
  for (std::uint64_t seed = 0; seed < times(200u); ++seed) {
    auto const table = random_table(random, 12);
    auto search = preset;
    search.length.max = 9;
    auto const plain = run_one(table, seed, Greedy{.length = {.min = 1, .max = 9}}).hypotheses.at(0);
    auto const h = run_one(table, seed, search).hypotheses.at(0);
    CHECK(h.tokens == plain.tokens);
    CHECK_THAT(h.score, WithinAbs(h.log_prob / static_cast<double>(h.tokens.size()), 1e-12));
    CHECK(h.log_probs.at(0) >= plain.log_probs.at(0));
    different += h.log_probs.at(0) > plain.log_probs.at(0);
  }
  CHECK(different > times(150u));
  CHECK(presets::ctranslate2_greedy(0).penalty.score(-3, 5) == -3);
}

TEST_CASE("greedy keeps to lengths in factors of the source's", "[greedy]") {
  Table const never_ends{.size = 9, .eos_bias = -100, .eos_slope = 0};
  Table const ends{.size = 9, .eos_bias = 100};
  TableOptions const options{.length_modulus = 10};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const length = static_cast<std::int32_t>(1 + seed % 10);
    INFO("source length " << length);
    auto const up = [&](double factor) { return static_cast<std::size_t>(std::ceil(factor * length)); };
    Greedy const search{.length = {.min = 2, .max = 14, .min_factor = 0.5, .max_factor = 1.5, .extra = 1}};
    CHECK(run_one(never_ends, seed, search, options).hypotheses.at(0).tokens.size() ==
          std::min<std::size_t>(14, up(1.5) + 1));
    auto const shortest = std::max<std::size_t>(2, up(0.5));
    CHECK(run_one(ends, seed, search, options).hypotheses.at(0).tokens.size() == shortest + 1);  // and eos
  }
  auto const unknown = run_one(ends, 1, Greedy{.length = {.max_factor = 2}});
  CHECK(unknown.failure == Failure::bad_request);
  CHECK(unknown.message.find("source length") != std::string::npos);
}

TEST_CASE("greedy says when no token is left", "[greedy]") {
  Table const only_eos{.size = 3};  // and eos comes too early
  auto const result = run_one(only_eos, 1, Greedy{.length = {.min = 2, .max = 4}});
  CHECK(result.failure == Failure::no_token_left);
  CHECK(run_one(only_eos, 1, Greedy{}).hypotheses.at(0).tokens == std::vector<Token>{eos});
}

TEST_CASE("greedy refuses lengths that make no sense", "[greedy]") {
  TableModel<> model;
  std::vector<std::uint64_t> const sources{1};
  auto const refused = [&](LengthLimits const& length, std::string const& name, std::string const& value) {
    try {
      decode(model, sources, Greedy{.length = length});
    } catch (std::invalid_argument const& error) {
      INFO(error.what());
      return std::string(error.what()).find(name) != std::string::npos &&
             std::string(error.what()).find(value) != std::string::npos;
    }
    return false;
  };
  CHECK(refused({.min = -1}, "length.min", "-1"));
  CHECK(refused({.max = -2}, "length.max", "-2"));
  CHECK(refused({.min_factor = -0.5}, "length.min_factor", "-0.5"));
  CHECK(refused({.max_factor = std::numeric_limits<double>::infinity()}, "length.max_factor", "inf"));
  CHECK(refused({.extra = -3}, "length.extra", "-3"));
}

TEST_CASE("a forced score is what the table says", "[forced_score]") {
  for (std::uint64_t seed = 0; seed < times(300u); ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 12);
    INFO("seed " << seed);
    std::vector<Token> target;
    for (auto n = random() % 8; n > 0; --n) target.push_back(static_cast<Token>(3 + random() % 9));
    if (seed % 2 == 0) target.push_back(eos);
    std::vector<Token> const prompt = seed % 3 == 0 ? std::vector<Token>{bos, 4, 7} : std::vector<Token>{};
    std::vector<Token> const context = seed % 3 == 0 ? std::vector<Token>{4, 7} : std::vector<Token>{};
    std::vector<TableRequest<ForcedScore>> const requests{{.source = seed, .prompt = prompt, .prefix = target},
                                                          {.source = seed + 9, .prefix = {3}}};
    ForcedScore const search{.penalty = {.alpha = 0.5}};
    Counters counters;
    auto const results = run<everything>(table, requests, search, Batched{}, {}, &counters);
    CHECK(counters.steps == 1);
    check_result(results[0], table, seed, context);
    REQUIRE(results[0].hypotheses.size() == 1);
    auto const& h = results[0].hypotheses[0];
    CHECK(h.tokens == target);
    CHECK_THAT(h.log_prob, WithinAbs(log_prob(table, seed, context, target), 1e-4));
    CHECK_THAT(h.score,
               WithinAbs(h.log_prob / std::sqrt(static_cast<double>(std::max<std::size_t>(1, target.size()))), 1e-6));
    CHECK(h.finished == (seed % 2 == 0));
    for_pairs_of_abilities([&]<Abilities A>() {
      auto const again = run<A>(table, requests, search);
      for (std::size_t i = 0; i < 2; ++i) CHECK(identical(again[i], results[i]));
    });
  }
}

TEST_CASE("a forced score refuses a target that goes on after its end", "[forced_score]") {
  std::vector<TableRequest<ForcedScore>> const requests{{.source = 1, .prefix = {3, eos, 4}},
                                                        {.source = 1, .prefix = {3, eos}}};
  auto const results = run({}, requests, ForcedScore{});
  CHECK(results[0].failure == Failure::bad_request);
  CHECK(results[1].ok());
}

TEST_CASE("an unlimited length is the model's, and refused where the model names none", "[greedy][length]") {
  Table const table{.size = 6, .eos_bias = -99, .eos_slope = 0};
  Greedy const greedy{.length = {.max = LengthLimits::unlimited}};
  auto const full = run_one<everything>(table, 1, greedy, {.limits = {.length = 400}});
  REQUIRE(full.ok());
  CHECK(full.hypotheses.at(0).tokens.size() == 400);  // bos and all but the last are in the slot
  auto const refused = run_one<everything>(table, 1, greedy);
  CHECK(refused.failure == Failure::bad_request);
  CHECK(refused.message.find("length.max = unlimited") != std::string::npos);
}
