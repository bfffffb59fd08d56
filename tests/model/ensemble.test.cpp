// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Ragged = TableModel<Abilities{.ragged = true, .roll_back = true}>;
using Blocks = TableModel<Abilities{.ragged = true, .blocks = true}, double>;
using Two = Ensemble<Ragged, Blocks>;

static_assert(Model<Two> && ReleasingModel<Two> && detail::ScoringModel<Two>);
static_assert(sluice::abilities<Two>() == Abilities{.ragged = true});
static_assert(sluice::abilities<Ensemble<TableModel<everything>>>() == everything);
static_assert(detail::ScoringModel<EnsembleOf<TableModel<>>>);
static_assert(detail::ScoringModel<AnyModel<std::uint64_t>>);

struct HiddenModel {
  using Source = std::uint64_t;
  Vocabulary vocabulary() const { return {}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Hidden<float> step(std::span<Row const>) { return {}; }
};
static_assert(Model<HiddenModel> && !detail::ScoringModel<HiddenModel>);

constexpr std::array averages{Average::probabilities, Average::log_probs, Average::normalised_log_probs};

/// The average of log-probabilities, in double.
std::vector<double> averaged(std::vector<std::vector<double>> const& lines, std::vector<double> weights,
                             Average average) {
  double total = 0;
  for (auto w : weights) total += w;
  std::vector<double> result(lines[0].size());
  for (std::size_t v = 0; v < result.size(); ++v) {
    long double sum = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto const w = static_cast<long double>(weights[i] / total);
      auto const x = static_cast<long double>(lines[i][v]);
      if (w > 0) sum += w * (average == Average::probabilities ? std::exp(x) : x);
    }
    result[v] = static_cast<double>(average == Average::probabilities ? std::log(sum) : sum);
  }
  return result;
}

std::vector<Token> random_tokens(std::mt19937_64& random, std::int32_t size) {
  std::vector<Token> tokens{bos};
  for (auto n = random() % 6; n > 0; --n)
    tokens.push_back(3 + static_cast<Token>(random() % static_cast<std::uint64_t>(size - 3)));
  return tokens;
}

/// A bare line of an ensemble of fixed lines.
std::vector<double> mixed(std::vector<FixedModel<float>> models, EnsembleOptions const& options) {
  std::vector<FixedModel<float>*> pointers;
  for (auto& model : models) pointers.push_back(&model);
  EnsembleOf<FixedModel<float>> ensemble(pointers, options);
  return line_after(ensemble, 0, {0});
}

}  // namespace

TEST_CASE("an ensemble of a model with itself is the model", "[ensemble]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, 4 + static_cast<std::int32_t>(random() % 40));
    table.order = -1;  // else two orders of the same tokens would be alike but for rounding
    auto const average = averages[seed % 3];
    INFO("seed " << seed << ", V = " << table.size);
    TableModel<> model(table), a(table), b(table), c(table);
    Ensemble ensemble({.average = average, .weights = {1, 3, 0.5}}, a, b, c);
    std::vector<std::uint64_t> const sources{seed, seed + 1000};
    auto const compare = [&](auto const& search) {
      auto const expected = decode(model, sources, search);
      auto const results = decode(ensemble, sources, search);
      for (std::size_t s = 0; s < sources.size(); ++s) {
        REQUIRE(results[s].ok());
        REQUIRE(results[s].hypotheses.size() == expected[s].hypotheses.size());
        for (std::size_t i = 0; i < expected[s].hypotheses.size(); ++i) {
          auto const& h = results[s].hypotheses[i];
          auto const& e = expected[s].hypotheses[i];
          REQUIRE(h.tokens == e.tokens);
          for (std::size_t t = 0; t < h.tokens.size(); ++t) CHECK(std::abs(h.log_probs[t] - e.log_probs[t]) <= 1e-5f);
        }
      }
    };
    compare(BeamSearch{.width = 3, .n_best = 3, .length = {.max = 12}});
    compare(Greedy{.length = {.max = 12}});
  }
}

TEST_CASE("an ensemble's lines are the average computed in double", "[ensemble]") {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 4 + static_cast<std::int32_t>(random() % 60);
    Table const one{.size = size, .scale = seed % 2 == 0 ? 5.0 : 60.0}, two{.size = size, .scale = 15, .eos_slope = 1};
    auto const average = averages[seed % 3];
    std::vector<double> const weights{static_cast<double>(1 + random() % 9),
                                      static_cast<double>(1 + random() % 9) / 16};
    INFO("seed " << seed << ", V = " << size << ", weights " << weights[0] << ", " << weights[1]);
    Ragged a(one, {.kind = seed % 5 == 0 ? Kind::log_probs : Kind::logits});
    Blocks b(two, {.kind = seed % 7 == 0 ? Kind::log_probs : Kind::logits});
    Ensemble ensemble({.average = average, .weights = weights}, a, b);
    auto const tokens = random_tokens(random, size);
    std::vector<std::vector<double>> lines(2, std::vector<double>(static_cast<std::size_t>(size)));
    one.log_probs(seed, std::span(tokens).subspan(1), lines[0]);
    two.log_probs(seed, std::span(tokens).subspan(1), lines[1]);
    auto const line = line_after(ensemble, seed, tokens);
    REQUIRE(difference(line, averaged(lines, weights, average), 3e-6) == -1);  // logits of 60 are rounded to 4e-6
  }
}

TEST_CASE("what an ensemble says is logarithms of probabilities, or logits where it must be normalised", "[ensemble]") {
  TableModel<> a, b({.scale = 3});
  std::uint64_t const source = 5;
  auto const* pointer = &source;
  Slot const slot = 0;
  Token const token = bos;
  Row const row{0, 0, 0, std::span(&token, 1)};
  for (auto const average : averages) {
    Ensemble ensemble({.average = average}, a, b);
    ensemble.start(std::span(&pointer, 1), std::span(&slot, 1));
    auto const answer = ensemble.step(std::span(&row, 1));
    CHECK(answer.kind == (average == Average::normalised_log_probs ? Kind::logits : Kind::log_probs));
    if (average != Average::probabilities) continue;
    double sum = 0;
    for (auto x : answer[0]) sum += std::exp(static_cast<double>(x));
    CHECK(std::abs(sum - 1) <= 1e-6);
  }
}

TEST_CASE("beam search and greedy decode an ensemble within the contract of slots", "[ensemble]") {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 5 + static_cast<std::int32_t>(random() % 20);
    auto const one = random_table(random, size), two = random_table(random, size);
    std::vector<double> const weights{1, 2};
    auto const average = averages[seed % 2];
    INFO("seed " << seed);
    CheckedTable<plain> a{TableModel<everything>(one)};
    CheckedTable<Abilities{.ragged = true}> b{TableModel<everything>(two, {.kind = Kind::log_probs})};
    using Pair = Ensemble<decltype(a), decltype(b)>;
    SlotChecker<Pair> ensemble(Pair({.average = average, .weights = weights}, a, b));
    std::vector<std::uint64_t> const sources{seed, seed + 1, seed + 2, seed + 3, seed + 4};
    auto const inspect = [&](std::vector<Result> const& results) {
      CHECK(ensemble.report() == "");
      CHECK(a.report() == "");
      CHECK(b.report() == "");
      CHECK(a.counters().rows == b.counters().rows);
      for (std::size_t s = 0; s < sources.size(); ++s) {
        REQUIRE(results[s].ok());
        for (auto const& h : results[s].hypotheses) {
          std::vector<std::vector<double>> lines(2, std::vector<double>(static_cast<std::size_t>(size)));
          for (std::size_t t = 0; t < h.tokens.size(); ++t) {
            auto const context = std::span(h.tokens).first(t);
            one.log_probs(sources[s], context, lines[0]), two.log_probs(sources[s], context, lines[1]);
            auto const expected = averaged(lines, weights, average)[static_cast<std::size_t>(h.tokens[t])];
            if (!(std::abs(static_cast<double>(h.log_probs[t]) - expected) <= 2e-5))
              CHECK(static_cast<double>(h.log_probs[t]) == expected);
          }
        }
      }
    };
    inspect(decode(ensemble, sources, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 10}}, Batched{.size = 2}));
    inspect(decode(ensemble, sources, Greedy{.length = {.max = 10}}, Batched{.size = 3}));
  }
}

TEST_CASE("an ensemble gives the same bits in any batch", "[ensemble]") {
  for (auto const average : averages) {
    for (std::int32_t const size : {5, 16, 37, 1100}) {
      INFO("V = " << size);
      Table const one{.size = size, .scale = 12, .eos_slope = 0.7}, two{.size = size, .scale = 4, .eos_bias = -2};
      std::vector<std::uint64_t> sources(40);
      for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = 7 * i;
      BeamSearch const search{.width = 4, .n_best = 4, .length = {.max = 8}};
      auto const run = [&](std::size_t batch, auto const& order) {
        TableModel<> a(one), b(two);
        Ensemble ensemble({.average = average, .weights = {0.3, 0.7}}, a, b);
        return decode(ensemble, order, search, Batched{.size = batch});
      };
      auto const alone = run(1, sources);
      auto const together = run(64, sources);
      std::vector<std::uint64_t> const reversed(sources.rbegin(), sources.rend());
      auto const backwards = run(7, reversed);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        CHECK(identical(alone[i], together[i]));
        CHECK(identical(alone[i], backwards[sources.size() - 1 - i]));
      }
    }
  }
}

TEST_CASE("a line of nothing and a line that is not a number", "[ensemble]") {
  auto const inf = std::numeric_limits<float>::infinity();
  auto const not_a_number = std::numeric_limits<float>::quiet_NaN();
  FixedModel<float> const plain_line{{1, 2, -inf, -300}}, nothing{{-inf, -inf, -inf, -inf}},
      broken{{1, not_a_number, 0, 0}}, infinite{{1, inf, 0, 0}},
      log_probs{{std::log(0.5f), -inf, std::log(0.5f), -inf}, Kind::log_probs},
      broken_log_probs{{0, -inf, -inf, not_a_number}, Kind::log_probs};
  std::vector<double> const all_nan(4, no_number), all_impossible(4, -infinity);
  auto const p = normalised(plain_line.line);
  auto const half = std::log(0.5);

  for (auto const average : averages) {
    auto const mix = [&](std::vector<FixedModel<float>> const& models, std::vector<double> const& weights = {}) {
      return mixed(models, {.average = average, .weights = weights});
    };
    CHECK(difference(mix({nothing, nothing}), all_impossible, 0) == -1);
    for (auto const& bad : {broken, infinite, broken_log_probs}) {
      CHECK(difference(mix({plain_line, bad}), all_nan, 0) == -1);
      CHECK(difference(mix({bad, plain_line}), all_nan, 0) == -1);
      CHECK(difference(mix({bad, plain_line, nothing}), all_nan, 0) == -1);
      CHECK(difference(mix({plain_line, bad, plain_line}), all_nan, 0) == -1);
      CHECK(difference(mix({nothing, bad}), all_nan, 0) == -1);
      CHECK(difference(mix({plain_line, bad}, {1, 0}), p, 1e-6) == -1);  // nobody asked it
    }
    CHECK(difference(mix({plain_line, log_probs}, {0.25, 0.75}),
                     averaged({p, normalised(log_probs.line)}, {0.25, 0.75}, average), 1e-6) == -1);
    if (average == Average::probabilities) {
      CHECK(difference(mix({plain_line, nothing}), {p[0] + half, p[1] + half, -infinity, p[3] + half}, 1e-6) == -1);
      CHECK(difference(mix({nothing, plain_line}), {p[0] + half, p[1] + half, -infinity, p[3] + half}, 1e-6) == -1);
    } else {
      CHECK(difference(mix({plain_line, nothing}), all_impossible, 0) == -1);
      CHECK(difference(mix({nothing, plain_line}), all_impossible, 0) == -1);
    }
  }
}

TEST_CASE("a NaN in one model fails the sentence, not the others", "[ensemble]") {
  struct Broken : TableModel<> {
    using TableModel<>::TableModel;
    std::vector<float> copy;
    Scores<float> step(std::span<Row const> rows) {
      auto const answer = TableModel<>::step(rows);
      copy.assign(answer.data, answer.data + answer.rows * answer.columns);
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].to == 1 && rows[i].length == 2)
          copy[i * static_cast<std::size_t>(answer.columns) + 3] = std::nanf("");
      return scores(copy.data(), answer.rows, answer.columns);
    }
  };
  Table const table{.size = 9, .eos_bias = -50};
  TableModel<> a(table);
  Broken b(table);
  Ensemble ensemble(a, b);
  auto const results = decode(ensemble, std::vector<std::uint64_t>{1, 2, 3}, Greedy{.length = {.max = 6}});
  CHECK(results[0].ok());
  CHECK(results[1].failure == Failure::not_a_number);
  CHECK(results[2].ok());
}

TEST_CASE("an ensemble refuses models of different vocabularies, and says what differs", "[ensemble]") {
  Table const table{.size = 8};
  TableModel<> a(table), larger({.size = 9}), other_eos({.size = 8, .second_eos = 5}), never(table, {.never = false});
  struct OtherBos : TableModel<> {
    Vocabulary vocabulary() const { return {.size = 8, .bos = 3, .eos = {eos}, .never = {pad, bos}}; }
  } other_bos;
  auto const message = [&](auto& model) { return thrown([&] { Ensemble ensemble(a, a, model); }); };
  CHECK(message(larger) == "sluice: Ensemble: model 2: vocabulary.size = 9: must be that of model 0, 8");
  CHECK(message(other_bos) == "sluice: Ensemble: model 2: vocabulary.bos = 3: must be that of model 0, 1");
  CHECK(message(other_eos) == "sluice: Ensemble: model 2: vocabulary.eos = [2 5]: must be that of model 0, [2]");
  CHECK(message(never) == "sluice: Ensemble: model 2: vocabulary.never = []: must be that of model 0, [0 1]");
  CHECK_THROWS_AS(Ensemble(a, larger), std::invalid_argument);
  struct OtherOrder : TableModel<> {
    Vocabulary vocabulary() const { return {.size = 8, .bos = bos, .eos = {eos}, .never = {bos, pad}}; }
  } other_order;
  CHECK(message(other_order) == "");
}

TEST_CASE("an ensemble refuses weights that make no sense", "[ensemble]") {
  TableModel<> a, b;
  auto const message = [&](std::vector<double> const& weights) {
    return thrown([&] { Ensemble ensemble({.weights = weights}, a, b); });
  };
  CHECK(message({}) == "");
  CHECK(message({0, 3}) == "");
  CHECK(message({1}) == "sluice: Ensemble: weights.size() = 1: must be 0 or the number of models, 2");
  CHECK(message({1, -1}).find("weight = -1.0") != std::string::npos);
  CHECK(message({1, no_number}).find("must be a number >= 0") != std::string::npos);
  CHECK(message({1, infinity}).find("must be a number >= 0") != std::string::npos);
  CHECK(message({0, 0}).find("sum of the weights") != std::string::npos);
  auto const huge = std::numeric_limits<double>::max();
  CHECK(message({huge, huge}).find("sum of the weights") != std::string::npos);
  CHECK(Ensemble({.weights = {1, 3}}, a, b).weights() == std::vector<double>{0.25, 0.75});
}

TEST_CASE("an ensemble whose number is known at run time", "[ensemble]") {
  Table const one{.size = 12}, two{.size = 12, .scale = 3};
  TableModel<> a(one), b(two), c(one), d(two);
  std::vector<TableModel<>*> const models{&c, &d};
  EnsembleOptions const options{.weights = {1, 2}};
  Ensemble fixed(options, a, b);
  EnsembleOf<TableModel<>> counted(models, options);
  std::vector<std::uint64_t> const sources{1, 2, 3};
  BeamSearch const search{.width = 3, .length = {.max = 8}};
  auto const expected = decode(fixed, sources, search), results = decode(counted, sources, search);
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(results[i], expected[i]));

  using Any = AnyModel<std::uint64_t>;
  Any first(TableModel<Abilities{.ragged = true}>{one}), second(&b);
  std::vector<Any*> const any{&first, &second};
  EnsembleOf<Any> mixed(any, options);
  auto const others = decode(mixed, sources, search);
  for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(others[i], expected[i]));

  CHECK(thrown([] { EnsembleOf<TableModel<>> none(std::span<TableModel<>* const>{}); }).find("must be at least 1") !=
        std::string::npos);
  std::vector<TableModel<>*> const null{&a, nullptr};
  CHECK(thrown([&] { EnsembleOf<TableModel<>> bad(null); }).find("nullptr") != std::string::npos);
}

TEST_CASE("if a model of an ensemble cannot start, the others hold nothing", "[ensemble]") {
  Table const table{.size = 8};
  SlotChecker<TableModel<>> a{TableModel<>(table)}, c{TableModel<>(table)};
  FailingTable<> b(table, 13);
  Ensemble ensemble(a, b, c);
  std::uint64_t const good = 1, bad = 13;
  std::array<std::uint64_t const*, 2> const sources{&good, &bad};
  std::array<Slot, 2> const slots{0, 4};
  CHECK_THROWS_AS(ensemble.start(sources, slots), std::runtime_error);
  CHECK(a.held() == 0);
  CHECK(c.held() == 0);
  CHECK(c.counters().starts == 0);

  auto const results =
      decode(ensemble, std::vector<std::uint64_t>{1, 13, 2}, BeamSearch{.width = 2, .length = {.max = 5}});
  CHECK(results[0].ok());
  CHECK(results[1].failure == Failure::source);
  CHECK(results[1].message == "cannot encode source 13");
  CHECK(results[2].ok());
  CHECK(a.report() == "");
  CHECK(c.report() == "");
}

TEST_CASE("an ensemble never runs a model of weight 0, and holds no more than the smallest", "[ensemble]") {
  TableModel<> a({.size = 8}, {.limits = {.slot_count = 7, .length = 90}, .length_modulus = 5});
  SlotChecker<TableModel<>> b{TableModel<>({.size = 8}, {.limits = {.slot_count = 9, .length = 30}})};
  Ensemble ensemble({.weights = {1, 0}}, a, b);
  auto const results = decode(ensemble, std::vector<std::uint64_t>{1, 2}, Greedy{.length = {.max = 5}});
  CHECK(results[0].ok());
  CHECK(b.counters().starts + b.counters().steps + b.counters().released == 0);
  CHECK(ensemble.limits().slot_count == 7);
  CHECK(ensemble.limits().length == 30);
  CHECK(ensemble.source_length(9) == a.source_length(9));
}

TEST_CASE("an ensemble says so when an answer has the wrong shape", "[ensemble]") {
  struct Short : TableModel<> {
    Scores<float> step(std::span<Row const> rows) {
      auto answer = TableModel<>::step(rows);
      --answer.columns;
      return answer;
    }
  } b;
  TableModel<> a;
  Ensemble ensemble(a, b);
  CHECK(thrown([&] { line_after(ensemble, 0, {bos}); }) == "sluice: asked for scores [1, 8], got [1, 7]");
}

TEST_CASE("an ensemble allocates nothing once warm", "[ensemble]") {
  Table const table{.size = 100};
  TableModel<everything> a(table);
  TableModel<everything, double> b(table);
  a.reserve(4, 64, 4), b.reserve(4, 64, 4);
  Ensemble ensemble(a, b);
  std::array<std::uint64_t, 3> const seeds{1, 2, 3};
  std::array<std::uint64_t const*, 3> const sources{&seeds[0], &seeds[1], &seeds[2]};
  std::array<Slot, 3> const slots{0, 1, 2};
  Token const token = 4;
  ensemble.start(sources, slots);
  std::size_t before = 0;
  for (std::int32_t length = 0; length < 50; ++length) {
    if (length == 1) before = allocations();
    std::array<Row, 3> const rows{{{0, 0, length, std::span(&token, 1)},
                                   {1, 1, length, std::span(&token, 1)},
                                   {2, 2, length, std::span(&token, 1)}}};
    ensemble.step(rows);
  }
  CHECK(allocations() == before);
}

TEST_CASE("an ensemble encodes ahead where all its models can", "[ensemble]") {
  using Encoding = EncodingTable<everything>;
  static_assert(EncodingModel<Ensemble<Encoding, Encoding>> && EncodingModel<EnsembleOf<Encoding>>);
  static_assert(!EncodingModel<EnsembleOf<TableModel<>>>);
  Table const one{.size = 9, .eos_bias = 0}, two{.size = 9, .scale = 4, .eos_bias = 1};
  auto const broken = [](std::uint64_t seed) {
    if (seed == 13) throw std::runtime_error("13 is broken");
  };
  Encoding a(one, {.again = true}), b(two, {.start = broken}), idle(two);
  Ensemble ensemble({.weights = {2, 1, 0}}, a, b, idle);
  std::vector<Encoding*> const pointers{&a, &b, &idle};
  EnsembleOf<Encoding> list(pointers, {.weights = {2, 1, 0}});
  std::vector<HeapSource> sources;
  for (std::uint64_t i = 0; i < 40; ++i) sources.emplace_back(i);
  BeamSearch const search{.width = 3, .length = {.max = 8}};
  auto const expected = decode(ensemble, sources, search, Batched{1});
  auto const check = [&](auto& model) {
    auto const results = decode(model, sources, search, Batched{7}, LogSoftmaxTopK(), {.encode_ahead = 10});
    for (std::size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i].failure == (i == 13 ? Failure::source : Failure::none));
      CHECK(identical(results[i], expected[i]));
    }
  };
  check(ensemble);
  check(list);
  CHECK(idle.counts().encodes == 0);
  CHECK(a.counts().encoded == 2 * sources.size());
}
