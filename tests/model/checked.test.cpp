// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/model/any_model.hpp>
#include <sluice/model/checked.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/suspect_model.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Checker = Checked<SuspectModel>;
using AnySuspect = AnyModel<std::uint64_t>;

std::vector<Request<std::uint64_t, BeamSearch>> some_requests() {
  std::vector<Request<std::uint64_t, BeamSearch>> requests;
  for (std::uint64_t i = 0; i < 4; ++i) requests.push_back({.source = 100 + i, .prompt = {bos, 3, 5}});
  return requests;
}

/// All that is said while requests are decoded.
std::string found(SuspectModel suspect, CheckOptions const& options, Intake const& intake = {}) {
  Checker model(suspect, options);
  AnySuspect any(&model);  // so that a decoder is compiled once
  auto const results =
      decode(any, some_requests(), BeamSearch{.width = 3, .length = {.max = 9}}, Batched{.size = 2}, {}, intake);
  auto const failed = std::ranges::any_of(results, [](Result const& one) { return one.failure == Failure::model; });
  CHECK(failed == !model.violations().empty());
  return model.report();
}
bool says(std::string const& text, std::string const& what) {
  INFO(text);
  INFO(what);
  CHECK(text.find(what) != std::string::npos);
  return text.find(what) != std::string::npos;
}

constexpr CheckOptions always{.every = 1, .tolerance = 0}, never{.every = 0};

/// Rows as a caller may plan them, and worse than searches do: over all that the abilities allow.
template <class M>
void random_steps(M& model, Abilities able, std::uint64_t seed, std::int32_t vocabulary, std::int32_t longest) {
  constexpr Slot slots = 6;
  std::mt19937_64 random(seed);
  auto const below = [&](std::size_t n) { return random() % n; };
  std::array<std::uint64_t, 3> const sources{seed, seed + 1, seed + 2};
  std::vector<std::int32_t> held(slots, -1);  // tokens; -1: free
  for (int step = 0; step < 40; ++step) {
    for (Slot slot = 0; slot < slots; ++slot) {
      auto& length = held[static_cast<std::size_t>(slot)];
      if (length >= 0 && (below(8) == 0 || length + 3 >= longest)) {
        model.release(std::span<Slot const>(&slot, 1));
        length = -1;
      } else if (length < 0 && below(3) == 0) {
        auto const* const source = &sources[below(sources.size())];
        model.start(std::span<std::uint64_t const* const>(&source, 1), std::span<Slot const>(&slot, 1));
        length = 0;
      }
    }
    std::vector<Slot> read, others;
    for (Slot slot = 0; slot < slots; ++slot)
      (held[static_cast<std::size_t>(slot)] >= 0 && below(3) != 0 ? read : others).push_back(slot);
    if (read.empty()) continue;
    std::deque<std::vector<Token>> fed;
    std::vector<Row> rows;
    auto const common = held[static_cast<std::size_t>(read[below(read.size())])];
    auto const block = able.blocks ? 1 + below(3) : 1;
    auto const add = [&](Slot from, Slot to) {
      auto length = held[static_cast<std::size_t>(from)];
      if (!able.ragged) {
        if (length < common || (length > common && !able.roll_back)) return;
        length = common;
      } else if (able.roll_back && below(3) == 0) {
        length = static_cast<std::int32_t>(below(static_cast<std::size_t>(length) + 1));
      }
      auto& tokens = fed.emplace_back(able.ragged && able.blocks ? 1 + below(3) : block);
      for (auto& token : tokens) token = static_cast<Token>(below(static_cast<std::size_t>(vocabulary)));
      rows.push_back({from, to, length, tokens, static_cast<std::int32_t>(1 + below(tokens.size()))});
    };
    for (auto const slot : read) add(slot, slot);
    for (auto const slot : others)
      if (below(2) == 0) add(read[below(read.size())], slot);
    std::ranges::sort(rows, {}, &Row::to);
    if (rows.empty()) continue;
    static_cast<void>(model.step(std::span<Row const>(rows)));
    for (auto const& row : rows)
      held[static_cast<std::size_t>(row.to)] = row.length + static_cast<std::int32_t>(row.tokens.size());
  }
  for (Slot slot = 0; slot < slots; ++slot)
    if (held[static_cast<std::size_t>(slot)] >= 0) model.release(std::span<Slot const>(&slot, 1));
}

}  // namespace

static_assert(Model<Checked<TableModel<>>> && detail::KnownAbilities<Checked<TableModel<everything>>>);
static_assert(sluice::abilities<Checked<TableModel<everything>>>() == everything);
static_assert(!detail::KnownAbilities<Checker> && EncodingModel<Checker> && !ProposingModel<Checker>);
static_assert(!EncodingModel<Checked<TableModel<>>>);
static_assert(ProposingModel<Checked<Speculated<TableModel<>, PromptLookup>>>);

TEST_CASE("Checked names the clause that a model breaks", "[checked]") {
  struct Case {
    Mistake mistake;
    Abilities claimed;
    std::string clause;
  };
  Abilities const blocks{.ragged = true, .blocks = true}, rolls{.roll_back = true};
  for (auto const& [mistake, claimed, clause] : std::vector<Case>{
           {Mistake::fork_shares, plain, "clause 4: a fork does not hold what its parent held"},
           {Mistake::fork_shares, everything, "clause 4: a fork shares memory with its parent: slot 98 after "},
           {Mistake::fork_moves, plain, "clause 4: a fork changed its parent"},
           {Mistake::one_pass, plain, "clause 4: a fork does not hold what its parent held"},
           {Mistake::nothing_cut, rolls, "clause 5: after a roll-back a fork"},
           {Mistake::start_keeps_tokens, plain, "release then start left something behind"},
           {Mistake::start_clears_others, plain, "a start or a release changed another slot"},
           {Mistake::cuts_idle_slots, plain, "clause 10: a step changed a slot that no row names"},
           {Mistake::slot_counts, plain, "clause 11: a line depends on its slot"},
           {Mistake::neighbours_count, plain, "clause 11: a line depends on its batch"},
           {Mistake::block_is_a_bag, blocks, "clause 11: a block gives other lines than its tokens one by one"},
           {Mistake::one_line_a_row, blocks, "clause 9: the model was asked for 3 lines and gave 1"},
           {Mistake::vocabulary_grows, plain, "vocabulary: vocabulary() has changed"},
           {Mistake::limits_change, plain, "limits: limits() have changed"},
       }) {
    CAPTURE(clause);
    CHECK(says(found(SuspectModel(mistake, claimed), always), clause));
  }
}

TEST_CASE("Checked sees in the batch what two slots alone do not show", "[checked]") {
  auto const text = found(SuspectModel(Mistake::many_rows_count), always);
  CHECK(says(text, "clause 11: a line depends on its batch: slot "));
  CHECK(says(text, " after 4 tokens in a step of 6 rows, compared with alone: token 12 differs by 0.03"));
  auto const ahead = found(SuspectModel(Mistake::encode_differs), always, {.encode_ahead = 2});
  CHECK(says(ahead, "start: what was encoded ahead is another sentence"));
  auto const forked = found(SuspectModel(Mistake::second_fork_counts), {.every = 1, .rows = 9, .tolerance = 0});
  CHECK(says(forked, "a slot does not hold what was fed to it (clauses 4, 5, 10 and 11): slot "));
  CHECK(says(forked, "; the slot came of a fork of slot "));
}

TEST_CASE("Checked tolerates what it is told to, and compares as often as it is told to", "[checked]") {
  SuspectModel const suspect(Mistake::many_rows_count);
  CHECK(found(suspect, {.every = 1, .tolerance = 0.04}).empty());
  CHECK_FALSE(found(suspect, {.every = 1, .tolerance = 0.001}).empty());
  CHECK_FALSE(found(suspect, {.every = 3, .rows = 9}).empty());
  CHECK(found(suspect, {.every = 100}).empty());  // the first step has two rows
  CHECK(found(suspect, never).empty());
  CHECK(found(SuspectModel(Mistake::slot_counts), never).empty());
}

TEST_CASE("Checked refuses options and models that it cannot serve", "[checked]") {
  SuspectModel suspect(Mistake::none);
  CHECK_THROWS_AS(Checker(suspect, {.every = -1}), std::invalid_argument);
  CHECK_THROWS_AS(Checker(suspect, {.rows = 0}), std::invalid_argument);
  CHECK_THROWS_AS(Checker(suspect, {.tolerance = -0.5}), std::invalid_argument);
  CHECK(Checker(suspect).limits().slot_count == 98);
  CHECK(Checker(suspect, never).limits().slot_count == 100);
  TableModel<> small({}, {.limits = {.slot_count = 2}});
  CHECK_THROWS_AS(Checked(small), std::invalid_argument);
  CHECK(Checked(small, never).limits().slot_count == 2);
  TableModel<> endless;
  CHECK(Checked(endless).limits().slot_count == Limits::unlimited);
}

TEST_CASE("Checked refuses every call that breaks the contract, and names the clause", "[checked]") {
  std::uint64_t const source = 7;
  auto const* const pointer = &source;
  std::vector<Token> const one{bos}, two{bos, 3}, outside{8}, long_one(6, 3);
  auto const start = [&](auto& model, std::vector<Slot> const& slots) {
    std::vector const sources(slots.size(), pointer);
    model.start(std::span(sources), std::span(slots));
  };
  auto const step = [](auto& model, std::vector<Row> const& rows) { model.step(std::span(rows)); };
  struct Case {
    std::string clause;
    std::vector<Row> rows;
  };
  auto const refuses = [&](auto& model, std::vector<Case> const& cases) {
    for (auto const& [clause, rows] : cases) {
      CAPTURE(clause);
      auto const before = model.violations().size();
      CHECK_THROWS_AS(step(model, rows), std::logic_error);
      REQUIRE(model.violations().size() == before + 1);
      CHECK(says(model.violations().back(), ": " + clause + ": "));
    }
  };

  TableModel<everything> table({}, {.limits = {.slot_count = 9, .length = 5}});
  Checked model(table, never);
  start(model, {0, 1});
  refuses(model, {{"step", {}},
                  {"clause 1", {{1, 1, 0, one}, {0, 0, 0, one}}},
                  {"clause 1", {{0, 0, 0, one}, {1, 0, 0, one}}},
                  {"clause 2", {{2, 2, 0, one}}},
                  {"clause 2", {{-1, 0, 0, one}}},
                  {"clause 3", {{0, 9, 0, one}}},
                  {"clause 3", {{1, 0, 0, one}, {0, 2, 0, one}}},
                  {"clause 5", {{0, 0, 1, one}}},
                  {"clause 5", {{0, 0, -1, one}}},
                  {"clause 6", {{0, 0, 0, {}}}},
                  {"clause 6", {{0, 0, 0, outside}}},
                  {"clause 7", {{0, 0, 0, one, 2}}},
                  {"clause 7", {{0, 0, 0, one, 0}}},
                  {"limits", {{0, 0, 0, long_one}}}});
  CHECK(says(model.violations()[1], "row 1 {from 0, to 0, length 0, 1 tokens, 1 lines}"));
  std::vector<Slot> const free{5}, none{};
  CHECK_THROWS_AS(model.release(std::span(free)), std::logic_error);
  CHECK_THROWS_AS(start(model, {1}), std::logic_error);
  CHECK_THROWS_AS(start(model, {3, 3}), std::logic_error);
  CHECK_THROWS_AS(start(model, {9}), std::logic_error);
  CHECK_THROWS_AS(start(model, {}), std::logic_error);
  std::vector<std::uint64_t const*> const null{nullptr};
  std::vector<Slot> const third{3}, both{0, 1};
  CHECK_THROWS_AS(model.start(std::span(null), std::span(third)), std::logic_error);
  CHECK_THROWS_AS(model.start(std::span(null), std::span(both)), std::logic_error);
  auto const violations = model.violations().size();
  CHECK(violations == 21);
  step(model, {{0, 0, 0, two, 2}, {1, 1, 0, one}});  // none of that has reached the model
  model.release(std::span(both));
  CHECK(model.violations().size() == violations);
  CHECK(says(model.report(), "is occupied"));

  TableModel<everything> humble;
  CheckedModel<TableModel<everything>> claims_nothing(humble, plain, {.first_child_in_place = false});
  Checked modest(claims_nothing, never);
  start(modest, {0, 1});
  refuses(modest, {{"clause 6", {{0, 0, 0, two}}}});
  step(modest, {{0, 0, 0, one}});
  refuses(modest, {{"clause 5", {{0, 0, 0, one}}}, {"clause 8", {{0, 0, 1, one}, {1, 1, 0, one}}}});
  CHECK(claims_nothing.violations().empty());
  CHECK(says(modest.report(), "slot 1 was never released"));
}

TEST_CASE("Checked looks at drafts, and passes them on", "[checked]") {
  TableModel<everything> table;
  Speculated guessing(table, PromptLookup());
  Checked model(guessing, never);
  std::uint64_t const source = 7;
  auto const* const pointer = &source;
  std::vector<Slot> const slots{2};
  std::vector<Token> const text{bos, 3, 4, 5, 3, 4}, outside{8};
  std::vector<Row> const rows{{2, 2, 0, text}};
  model.start(std::span(&pointer, 1), std::span(slots));
  model.step(std::span(rows));
  std::vector<Token> guesses;
  for (auto const& bad : std::vector<Draft>{{.slot = 1, .length = 6, .count = 1, .tokens = &guesses},
                                            {.slot = 2, .length = 7, .count = 1, .tokens = &guesses},
                                            {.slot = 2, .length = -1, .count = 1, .tokens = &guesses},
                                            {.slot = 2, .length = 6, .count = 1},
                                            {.slot = 2, .length = 6, .pending = outside, .tokens = &guesses}}) {
    CHECK_THROWS_AS(model.propose(std::span<Draft const>(&bad, 1)), std::logic_error);
    CHECK(says(model.violations().back(), ": propose: "));
  }
  CHECK(model.violations().size() == 5);
  CHECK(guesses.empty());
  Draft const good{.slot = 2, .length = 6, .count = 2, .tokens = &guesses};
  model.propose(std::span<Draft const>(&good, 1));
  CHECK(guesses == std::vector<Token>{5, 3});
}

TEST_CASE("Checked never accuses a good model, whatever rows come", "[checked]") {
  for_all_abilities([]<Abilities A>() {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      auto const length = seed % 3 == 0 ? 9 : Limits::unlimited;
      TableModel<everything> const table(
          {.size = 11}, {.limits = {.slot_count = seed % 2 == 0 ? 8 : Limits::unlimited, .length = length}});
      CheckedModel<TableModel<everything>> good(table, A, {.first_child_in_place = false});
      Checked model(good, {.every = 1 + static_cast<std::int32_t>(seed % 2), .rows = 2, .tolerance = 0, .seed = seed});
      random_steps(model, A, seed, 11, std::min(length, 12));
      CHECK(model.report() == "");
      CHECK(good.report() == "");  // the comparisons themselves keep to the contract
      CHECK(good.counters().steps > 400);
    }
  });
}

TEST_CASE("what is decoded is the same with Checked and without", "[checked]") {
  for_all_abilities([]<Abilities A>() {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SuspectModel bare(Mistake::none, A), wrapped(Mistake::none, A);
      Checker checked(wrapped, {.every = 2, .rows = 2, .tolerance = 0, .seed = seed});
      AnySuspect one(&bare), other(&checked);
      CHECK(other.abilities() == A);
      auto const search = BeamSearch{.width = 4, .length = {.max = 9}};
      auto requests = some_requests();
      for (std::uint64_t i = 0; i < requests.size(); ++i) {
        requests[i].source = 10 * seed + i;
        if (i % 2 == 1) requests[i].prefix = {4, 6};
      }
      for (auto const& intake : {Intake{}, Intake{.encode_ahead = 3}}) {
        auto const expected = decode(one, requests, search, Batched{.size = 3}, {}, intake);
        auto const results = decode(other, requests, search, Batched{.size = 3}, {}, intake);
        REQUIRE(results.size() == expected.size());
        for (std::size_t i = 0; i < results.size(); ++i) CHECK(identical(results[i], expected[i]));
        CHECK(checked.report() == "");
      }
    }
  });
}

TEST_CASE("Checked goes wherever a model goes", "[checked]") {
  TableModel<everything> a(Table{.size = 9}), b(Table{.size = 9, .scale = 3});
  Checked first(a, always), second(b, always);
  EnsembleOptions const both{};
  Ensemble pair(both, first, second);
  Checked ensemble(pair, {.every = 1});
  Server server(ensemble, BeamSearch{.width = 2, .length = {.max = 5}});
  auto future = server.submit({.source = 3});
  CHECK(future.get().ok());
  server.close();
  CHECK(ensemble.violations().empty());
  CHECK(first.violations().empty());
  CHECK(second.violations().empty());
}

namespace {

/// Hidden vectors: the last token twice, and how many there are; slot 2 forgets one.
struct Counter {
  using Source = int;
  static constexpr Abilities abilities{.ragged = true};
  bool wrong = false;
  std::vector<std::vector<Token>> held = std::vector<std::vector<Token>>(40);
  std::vector<float> answer{};

  Vocabulary vocabulary() const { return {.size = 5, .bos = 0}; }
  Limits limits() const { return {.slot_count = 40}; }
  void start(std::span<int const* const>, std::span<Slot const> slots) {
    for (auto const slot : slots) held[static_cast<std::size_t>(slot)].clear();
  }
  Hidden<float> step(std::span<Row const> rows) {
    answer.clear();
    for (auto const& row : rows) held[static_cast<std::size_t>(row.to)] = held[static_cast<std::size_t>(row.from)];
    for (auto const& row : rows) {
      auto& tokens = held[static_cast<std::size_t>(row.to)];
      tokens.push_back(row.tokens[0]);
      auto const count = tokens.size() - (wrong && row.to == 2 && tokens.size() > 2 ? 1 : 0);
      answer.insert(answer.end(), {static_cast<float>(row.tokens[0]), static_cast<float>(count)});
    }
    return hidden(answer.data(), std::ssize(rows), 2);
  }
};

/// An answer that nobody can read.
struct Opaque : Counter {
  struct Nothing {};
  Nothing step(std::span<Row const> rows) {
    static_cast<void>(Counter::step(rows));
    return {};
  }
};

template <class M>
void three_steps(M& model) {
  int const source = 1;
  std::vector<int const*> const sources(3, &source);
  std::vector<Slot> const slots{0, 1, 2};
  std::vector<Token> const token{3};
  model.start(std::span(sources), std::span(slots));
  for (std::int32_t length = 0; length < 3; ++length) {
    std::vector<Row> const rows{{0, 0, length, token}, {1, 1, length, token}, {2, 2, length, token}};
    static_cast<void>(model.step(std::span(rows)));
  }
  model.release(std::span(slots));
}

}  // namespace

TEST_CASE("Checked says first which row has lines of a wrong width, or a score that is no number", "[checked]") {
  /// Answers {last token, 1, 0, 0, 0}, until a row brings token `bad`.
  struct Spoilt : Counter {
    float number = 0;
    std::ptrdiff_t width = 5;
    Scores<float> step(std::span<Row const> rows) {
      answer.clear();
      for (auto const& row : rows)
        for (std::ptrdiff_t v = 0; v < width; ++v)
          answer.push_back(row.tokens.back() == 4 && v == 2 ? number
                                                            : static_cast<float>(v == 0 ? row.tokens.back() : 0));
      return scores(answer.data(), std::ssize(rows), width);
    }
  };
  auto const said = [](Spoilt model, std::int32_t every) {
    Checked checked(model, {.every = every, .tolerance = 0});
    int const source = 1;
    std::vector<int const*> const sources(2, &source);
    std::vector<Slot> const slots{0, 1};
    std::vector<Token> const one{3}, bad{4};
    checked.start(std::span(sources), std::span(slots));
    std::vector<Row> const rows{{0, 0, 0, one}, {1, 1, 0, one}}, next{{0, 0, 1, one}, {1, 1, 1, bad}};
    try {
      static_cast<void>(checked.step(std::span(rows)));
      static_cast<void>(checked.step(std::span(next)));
    } catch (std::logic_error const&) {
      return checked.violations().at(0);
    }
    return std::string();
  };
  auto const infinity = std::numeric_limits<float>::infinity();
  CHECK(said({}, 1).empty());
  Spoilt impossible, nan, above, narrow;
  impossible.number = -infinity, nan.number = std::nanf(""), above.number = infinity, narrow.width = 4;
  CHECK(said(impossible, 1).empty());
  auto const row = "row 1 {from 1, to 1, length 1, 1 tokens, 1 lines}: after token 4, the score of token 2 is ";
  CHECK(says(said(nan, 100), std::string("step 1: the answer: ") + row + "NaN"));
  CHECK(says(said(above, 100), std::string("step 1: the answer: ") + row + "infinity"));
  CHECK(said(nan, 0).empty());
  CHECK(says(said(narrow, 0),
             "step 0: clause 9: row 0 {from 0, to 0, length 0, 1 tokens, 1 lines}: its line has 4 scores, and the "
             "vocabulary 5 tokens"));
  CHECK(says(said(narrow, 1), "step 0: clause 9: alone in a spare slot, row 0 {"));
}

TEST_CASE("Checked compares hidden vectors, and lets pass answers that it cannot read", "[checked]") {
  Counter good, bad{.wrong = true};
  Opaque opaque;
  opaque.wrong = true;
  CheckOptions const all{.every = 1, .rows = 20, .tolerance = 0};
  Checked fine(good, all), caught(bad, all);
  Checked unread(opaque, all);
  three_steps(fine);
  CHECK(fine.report() == "");
  CHECK_THROWS_AS(three_steps(caught), std::logic_error);
  CHECK(says(caught.violations().at(0), "slot 2 after 3 tokens in a step of 3 rows, compared with alone: number 1"));
  three_steps(unread);
  CHECK(unread.report() == "");
  CHECK(unread.limits().slot_count == 40);
}
