// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::uint64_t language_seed = 99;

/// A table that needs no source: a language model.
template <Abilities A = Abilities{}>
struct LanguageTable {
  using Source = std::monostate;
  static constexpr Abilities abilities = A;
  TableModel<A> table;

  Vocabulary vocabulary() const { return table.vocabulary(); }
  Limits limits() const { return table.limits(); }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (auto const* source : sources)
      if (source == nullptr) throw std::logic_error("no source");
    std::vector<std::uint64_t const*> const seeds(slots.size(), &language_seed);
    table.start(seeds, slots);
  }
  Scores<float> step(std::span<Row const> rows) { return table.step(rows); }
};

/// A source for both.
struct Pair {
  std::uint64_t text = 0;
  std::uint64_t domain = 0;
};
struct PairTable {
  using Source = Pair;
  TableModel<> table;
  Vocabulary vocabulary() const { return table.vocabulary(); }
  void start(std::span<Pair const* const> sources, std::span<Slot const> slots) {
    std::vector<std::uint64_t const*> seeds;
    for (auto const* source : sources) seeds.push_back(&source->text);
    table.start(seeds, slots);
  }
  Scores<float> step(std::span<Row const> rows) { return table.step(rows); }
};

constexpr Abilities ragged{.ragged = true};
using Tables = Fused<TableModel<everything>, LanguageTable<ragged>>;
static_assert(detail::ScoringModel<Tables> && ReleasingModel<Tables> && sluice::abilities<Tables>() == ragged);

std::vector<double> interpolated(Table const& table, Table const& language, double weight, std::uint64_t seed,
                                 std::span<Token const> context, std::uint64_t other = language_seed) {
  std::vector<double> a(static_cast<std::size_t>(table.size)), b(a.size());
  table.log_probs(seed, context, a), language.log_probs(other, context, b);
  for (std::size_t v = 0; v < a.size(); ++v)
    a[v] = a[v] > -infinity && b[v] > -infinity ? a[v] + weight * b[v] : -infinity;
  return a;
}

template <class M, class L, class F>
void check_against_table(Fused<M, L, F>& model, Table const& table, Table const& language, double weight,
                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Token> tokens{bos};
  for (auto n = random() % 5; n > 0; --n) tokens.push_back(3);
  auto const line = line_after(model, seed, tokens);
  REQUIRE(difference(line, interpolated(table, language, weight, seed, std::span(tokens).subspan(1)), 3e-6) == -1);
}

}  // namespace

TEST_CASE("an interpolated line is log p_M + weight log p_L computed in double", "[interpolate]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 4 + static_cast<std::int32_t>(random() % 60);
    Table const table{.size = size}, language{.size = size, .scale = 12};
    constexpr std::array weights{0.3, 1.0, -0.4, 0.0, 2.5};
    auto const weight = weights[seed % weights.size()];
    INFO("seed " << seed << ", V = " << size << ", weight " << weight);
    TableModel<> model(table, {.kind = seed % 3 == 0 ? Kind::log_probs : Kind::logits});
    LanguageTable<> other{TableModel<>(language, {.kind = seed % 4 == 0 ? Kind::log_probs : Kind::logits})};
    Fused fused(model, other, FusedOptions{.weight = weight});
    check_against_table(fused, table, language, weight, seed);
  }
}

TEST_CASE("with weight 0 the language model is never run and changes nothing", "[interpolate]") {
  Table const table{.size = 20};
  TableModel<> alone(table), model(table);
  SlotChecker<LanguageTable<>> language{LanguageTable<>{TableModel<>({.size = 20, .scale = 3})}};
  Fused fused(model, language, FusedOptions{.weight = 0});
  std::vector<std::uint64_t> const sources{1, 2, 3, 4};
  BeamSearch const search{.width = 3, .n_best = 3, .length = {.max = 8}};
  auto const expected = decode(alone, sources, search), results = decode(fused, sources, search);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    REQUIRE(results[s].hypotheses.size() == expected[s].hypotheses.size());
    for (std::size_t i = 0; i < expected[s].hypotheses.size(); ++i) {
      CHECK(results[s].hypotheses[i].tokens == expected[s].hypotheses[i].tokens);
      CHECK(std::abs(results[s].hypotheses[i].score - expected[s].hypotheses[i].score) <= 1e-5);
    }
  }
  CHECK(language.counters().starts + language.counters().steps + language.counters().released == 0);
}

TEST_CASE("beam search and greedy decode a fused model within the contract of slots", "[interpolate]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    auto const size = 5 + static_cast<std::int32_t>(random() % 20);
    auto const table = random_table(random, size), language_table = random_table(random, size);
    auto const weight = seed % 2 == 0 ? 0.4 : -0.3;
    INFO("seed " << seed << ", weight " << weight);
    CheckedTable<plain> model{TableModel<everything>(table)};
    SlotChecker<LanguageTable<ragged>> language{LanguageTable<ragged>{TableModel<ragged>(language_table)}};
    using Both = Fused<decltype(model), decltype(language)>;
    SlotChecker<Both> fused(Both(model, language, {.weight = weight}));
    std::vector<std::uint64_t> const sources{seed, seed + 1, seed + 2};
    auto const inspect = [&](std::vector<Result> const& results) {
      CHECK(fused.report() == "");
      CHECK(model.report() == "");
      CHECK(language.report() == "");
      for (std::size_t s = 0; s < sources.size(); ++s) {
        REQUIRE(results[s].ok());
        for (auto const& h : results[s].hypotheses)
          for (std::size_t t = 0; t < h.tokens.size(); ++t) {
            auto const expected = interpolated(table, language_table, weight, sources[s], std::span(h.tokens).first(t));
            auto const x = expected[static_cast<std::size_t>(h.tokens[t])];
            if (!(std::abs(static_cast<double>(h.log_probs[t]) - x) <= 2e-5))
              CHECK(static_cast<double>(h.log_probs[t]) == x);
          }
      }
    };
    inspect(decode(fused, sources, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 8}}, Batched{.size = 2}));
    inspect(decode(fused, sources, Greedy{.length = {.max = 8}}));
  }
}

TEST_CASE("two fused tables give the same bits in any batch", "[interpolate]") {
  for (std::int32_t const size : {5, 37, 1100}) {
    std::vector<std::uint64_t> sources(30);
    for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = 11 * i;
    auto const run = [&](std::size_t batch) {
      TableModel<> model({.size = size});
      LanguageTable<> language{TableModel<>({.size = size, .scale = 5})};
      Fused fused(model, language, FusedOptions{.weight = 0.25});
      return decode(fused, sources, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 7}}, Batched{.size = batch});
    };
    auto const alone = run(1), some = run(7), all = run(64);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      CHECK(identical(alone[i], some[i]));
      CHECK(identical(alone[i], all[i]));
    }
  }
}

TEST_CASE("a language model may have a source inside the model's", "[interpolate]") {
  Table const table{.size = 15}, language_table{.size = 15, .scale = 3};
  PairTable model{TableModel<>(table)};
  TableModel<> language(language_table);
  std::vector<Pair> const sources{{1, 10}, {1, 11}};
  Fused fused(model, language, FusedOptions{.weight = 0.5}, &Pair::domain);
  auto const by_function = [](Pair const& pair) -> std::uint64_t const& { return pair.domain; };
  Fused again(model, language, FusedOptions{.weight = 0.5}, by_function);
  Greedy const search{.length = {.max = 6}};
  auto const results = decode(fused, sources, search), same = decode(again, sources, search);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    auto const& h = results[s].hypotheses.at(0);
    for (std::size_t t = 0; t < h.tokens.size(); ++t) {
      auto const line =
          interpolated(table, language_table, 0.5, sources[s].text, std::span(h.tokens).first(t), sources[s].domain);
      CHECK(std::abs(static_cast<double>(h.log_probs[t]) - line[static_cast<std::size_t>(h.tokens[t])]) <= 1e-5);
    }
    CHECK(identical(results[s], same[s]));
  }

  TableModel<> a(table), b(language_table);
  Fused shared(a, b, FusedOptions{.weight = 1}, std::identity{});
  CHECK(difference(line_after(shared, 4, {bos}), interpolated(table, language_table, 1, 4, {}, 4), 1e-6) == -1);
}

TEST_CASE("what is impossible or no number in one of the two stays so", "[interpolate]") {
  auto const inf = std::numeric_limits<float>::infinity();
  FixedModel<float> model{{0, 1, -inf, 2}}, language{{1, -inf, 1, 1}}, nothing{{-inf, -inf, -inf, -inf}},
      broken{{0, std::nanf(""), 0, 0}}, infinite{{0, 0, inf, 0}};
  auto const line = [](auto& a, auto& b, double weight) {
    Fused fused(a, b, FusedOptions{.weight = weight}, std::identity{});
    return line_after(fused, 0, {0});
  };
  auto const p = normalised(model.line), q = normalised(language.line);
  std::vector<double> const all_nan(4, no_number), all_impossible(4, -infinity);
  for (auto const weight : {0.5, -0.5, 3.0}) {
    INFO("weight " << weight);
    CHECK(difference(line(model, language, weight), {p[0] + weight * q[0], -infinity, -infinity, p[3] + weight * q[3]},
                     1e-6) == -1);
    CHECK(difference(line(model, nothing, weight), all_impossible, 0) == -1);
    CHECK(difference(line(nothing, model, weight), all_impossible, 0) == -1);
    CHECK(difference(line(model, broken, weight), all_nan, 0) == -1);
    CHECK(difference(line(broken, model, weight), all_nan, 0) == -1);
    CHECK(difference(line(infinite, model, weight), all_nan, 0) == -1);
    CHECK(difference(line(nothing, broken, weight), all_nan, 0) == -1);
  }
  CHECK(difference(line(model, broken, 0), p, 1e-6) == -1);
  CHECK(difference(line(broken, model, 0), all_nan, 0) == -1);
}

TEST_CASE("a language model of another vocabulary is refused, and a weight that is no number", "[interpolate]") {
  TableModel<> model({.size = 8});
  LanguageTable<> larger{TableModel<>({.size = 9})}, fitting{TableModel<>({.size = 8})};
  CHECK(thrown([&] { Fused fused(model, larger, FusedOptions{.weight = 0.1}); }) ==
        "sluice: Fused: language model: vocabulary.size = 9: must be that of the model, 8");
  CHECK_THROWS_AS(Fused(model, larger, FusedOptions{.weight = 0}), std::invalid_argument);
  CHECK(thrown([&] { Fused fused(model, fitting, FusedOptions{.weight = no_number}); }).find("Fused: weight") !=
        std::string::npos);
  CHECK_THROWS_AS(Fused(model, fitting, FusedOptions{.weight = infinity}), std::invalid_argument);
}

TEST_CASE("if the language model cannot start, the model holds nothing", "[interpolate]") {
  Table const table{.size = 8};
  SlotChecker<TableModel<>> model{TableModel<>(table)};
  FailingTable<> language(table, 13);
  Fused fused(model, language, FusedOptions{.weight = 0.5}, std::identity{});
  auto const results =
      decode(fused, std::vector<std::uint64_t>{13, 1, 2}, BeamSearch{.width = 2, .length = {.max = 5}});
  CHECK(results[0].failure == Failure::source);
  CHECK(results[1].ok());
  CHECK(results[2].ok());
  CHECK(model.report() == "");
}

TEST_CASE("a fused model holds no more than the smaller of the two", "[interpolate]") {
  TableModel<> model({}, {.limits = {.slot_count = 7, .length = 90}, .length_modulus = 5});
  LanguageTable<> language{TableModel<>({}, {.limits = {.slot_count = 9, .length = 30}})};
  Fused fused(model, language, FusedOptions{.weight = 0.5});
  CHECK(fused.limits().slot_count == 7);
  CHECK(fused.limits().length == 30);
  CHECK(fused.source_length(9) == model.source_length(9));
}
