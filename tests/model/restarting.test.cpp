// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/model/detail/slot_tokens.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/restarting.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/combining.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

template <Abilities A>
constexpr Abilities forward_only{.ragged = A.ragged, .blocks = A.blocks, .roll_back = false};
template <Abilities A>
using Forward = SlotChecker<TableModel<everything>, forward_only<A>>;

static_assert(sluice::abilities<Restarting<TableModel<>>>() == Abilities{.roll_back = true});
static_assert(sluice::abilities<Restarting<Forward<everything>>>() == everything);
static_assert(ReleasingModel<Restarting<TableModel<>>> && !ProposingModel<Restarting<TableModel<>>>);
static_assert(detail::ScoringModel<Restarting<TableModel<>>>);
static_assert(detail::ScoringModel<Ensemble<Restarting<TableModel<>>, TableModel<everything>>>);

/// Row sequences that the contract allows, at random.
class RandomRows {
 public:
  RandomRows(std::uint64_t seed, Abilities abilities, Slot slots)
      : random_(seed), abilities_(abilities), slots_(slots) {}

  std::map<Slot, std::vector<Token>> held;

  /// Slots that are free, at most `count`.
  std::vector<Slot> free(std::size_t count) {
    std::vector<Slot> found;
    for (Slot slot = 0; slot < slots_ && found.size() < count; ++slot)
      if (!held.contains(slot) && random_() % 2 == 0) found.push_back(slot);
    return found;
  }

  /// A step; the tokens live until the next call.
  std::vector<Row> step() {
    std::vector<Row> rows;
    tokens_.clear();
    std::vector<Slot> parents;
    for (auto const& [slot, tokens] : held)
      if (random_() % 3 != 0) parents.push_back(slot);
    if (parents.empty() && !held.empty()) parents.push_back(held.begin()->first);
    if (parents.empty()) return rows;
    std::vector<Slot> kept, targets;
    for (auto const slot : parents)
      if (random_() % 5 != 0) kept.push_back(slot);  // the others are read, if at all, and stay as they are
    for (Slot slot = 0; slot < slots_; ++slot)
      if (std::ranges::find(parents, slot) == parents.end() && random_() % 3 == 0) targets.push_back(slot);

    auto common = held.at(parents[0]).size();
    for (auto const slot : parents) common = std::min(common, held.at(slot).size());
    auto const length = random_() % 2 == 0 ? common : random_() % (common + 1);
    auto const count = 1 + random_() % 3;
    auto const add = [&](Slot from, Slot to) {
      auto const size = held.at(from).size();
      auto const n = !abilities_.blocks ? 1 : abilities_.ragged ? 1 + random_() % 3 : count;
      auto const at = !abilities_.ragged ? length : random_() % 2 == 0 ? size : random_() % (size + 1);
      auto& tokens = tokens_[to];
      for (std::size_t i = 0; i < n; ++i) tokens.push_back(3 + static_cast<Token>(random_() % 5));
      rows.push_back({from, to, static_cast<std::int32_t>(at), tokens, 1 + static_cast<std::int32_t>(random_() % n)});
    };
    for (auto const slot : kept) add(slot, slot);
    for (auto const slot : targets) add(parents[random_() % parents.size()], slot);
    std::ranges::sort(rows, {}, &Row::to);
    auto const before = held;
    for (auto const& row : rows) {
      auto& tokens = held[row.to];
      tokens = before.at(row.from);
      tokens.resize(static_cast<std::size_t>(row.length));
      tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    }
    return rows;
  }

  std::uint64_t number() { return random_(); }

 private:
  std::mt19937_64 random_;
  Abilities abilities_;
  Slot slots_;
  std::map<Slot, std::vector<Token>> tokens_;
};

template <class M>
void start(M& model, std::initializer_list<Slot> slots) {
  static std::uint64_t const source = 7;
  std::vector<std::uint64_t const*> const sources(slots.size(), &source);
  model.start(sources, std::vector<Slot>(slots));
}

std::vector<Token> const tokens{bos, 3, 4, 5, 6, 7, 3, 4};
std::span<Token const> piece(std::size_t first, std::size_t count = 1) {
  return std::span(tokens).subspan(first, count);
}

template <class M>
auto step(M& model, std::vector<Row> const& rows) {
  return model.step(std::span<Row const>(rows));
}

}  // namespace

TEST_CASE("a restarting model obeys any rows as a model that can roll back does", "[restarting]") {
  for_all_abilities([]<Abilities A>() {
    if constexpr (!A.roll_back) {
      std::uint64_t restarts = 0;
      for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("ragged " << A.ragged << ", blocks " << A.blocks << ", seed " << seed);
        Table const table{.size = 8};
        SlotChecker<TableModel<everything>> truth(TableModel<everything>{table}, {.first_child_in_place = false});
        Forward<A> inner(TableModel<everything>{table}, {.first_child_in_place = false});
        Restarting model(inner);
        constexpr Slot slots = 8;
        RandomRows random(seed, A, slots);
        std::array<std::uint64_t, 3> const sources{seed, seed + 1000, seed + 2000};

        for (int round = 0; round < 40; ++round) {
          if (random.number() % 4 == 0) {
            auto const fresh = random.free(3);
            std::vector<std::uint64_t const*> chosen;
            for (auto const slot : fresh) chosen.push_back(&sources[random.number() % 3]), random.held[slot].clear();
            if (!fresh.empty()) truth.start(chosen, fresh), model.start(chosen, fresh);
          }
          if (random.number() % 6 == 0 && !random.held.empty()) {
            std::vector<Slot> const gone{random.held.rbegin()->first};
            random.held.erase(gone[0]);
            truth.release(gone), model.release(gone);
          }
          auto const rows = random.step();
          if (rows.empty()) continue;
          auto const expected = step(truth, rows), answer = step(model, rows);
          REQUIRE(answer.rows == expected.rows);
          for (std::ptrdiff_t i = 0; i < answer.rows; ++i) REQUIRE(std::ranges::equal(answer[i], expected[i]));
          CHECK(inner.held() == truth.held());
        }
        std::vector<Slot> rest;
        for (auto const& [slot, ignored] : random.held) rest.push_back(slot);
        if (!rest.empty()) model.release(rest);
        CHECK(inner.report() == "");
        CHECK(truth.violations().empty());
        restarts += model.restarts().slot_count;
      }
      CHECK(restarts > 1000);
    }
  });
}

TEST_CASE("restarts are as few calls as the model allows, and counted", "[restarting]") {
  Table const table{.size = 8};
  // Slot 0 holds 4 tokens and goes on after 2, slot 1 holds 4 and goes on after 1 or 2, slot 2 goes on.
  auto const run = [&]<Abilities A>(std::int32_t second) {
    Forward<A> inner(TableModel<everything>{table});
    Restarting model(inner);
    start(model, {0, 1, 2});
    for (std::int32_t i = 0; i < 4; ++i) {
      auto const t = piece(static_cast<std::size_t>(i));
      if (i < 2 || A.ragged) step(model, {{0, 0, i, t}, {1, 1, i, t}, {2, 2, i, t}});
      else step(model, {{0, 0, i, t}, {1, 1, i, t}});
    }
    CHECK(model.restarts().slot_count == 0);
    inner.reset_counters();
    if constexpr (A.ragged) step(model, {{0, 0, 2, piece(5)}, {1, 1, second, piece(5)}, {2, 2, 4, piece(5)}});
    else step(model, {{0, 0, 2, piece(5)}, {1, 1, second, piece(5)}, {2, 2, 2, piece(5)}});
    CHECK(model.restarts().slot_count == 2);
    CHECK(model.restarts().tokens == static_cast<std::uint64_t>(2 + second));
    CHECK(inner.counters().starts == 1);
    CHECK(inner.counters().tokens == 3 + 2 + static_cast<std::size_t>(second));
    return inner.counters().steps;
  };
  CHECK(run.operator()<everything>(1) == 1);
  CHECK(run.operator()<Abilities{.ragged = true}>(1) == 3);
  CHECK(run.operator()<Abilities{.blocks = true}>(2) == 2);
  CHECK(run.operator()<plain>(2) == 3);
}

TEST_CASE("a fork sees what its parent held before the parent is cut in the same step", "[restarting]") {
  TableModel<everything> truth;
  Forward<everything> inner;
  Restarting model(inner);
  start(truth, {0}), start(model, {0});
  step(truth, {{0, 0, 0, piece(0, 4)}}), step(model, {{0, 0, 0, piece(0, 4)}});
  std::vector<Row> const rows{{0, 0, 1, piece(5)}, {0, 1, 4, piece(4)}, {0, 2, 2, piece(6)}, {0, 3, 0, piece(0, 2), 2}};
  auto const expected = step(truth, rows), answer = step(model, rows);
  REQUIRE(answer.rows == 5);
  for (std::ptrdiff_t i = 0; i < answer.rows; ++i) CHECK(std::ranges::equal(answer[i], expected[i]));
  CHECK(model.restarts().slot_count == 4);
}

TEST_CASE("a restarting model decodes as the model does, without restarts", "[restarting]") {
  Table const table{.size = 14, .eos_slope = 0.3};
  TableModel<> alone(table);
  Forward<plain> inner(TableModel<everything>{table});
  Restarting model(inner);
  std::vector<std::uint64_t> const sources{1, 2, 3, 4, 5};
  auto const compare = [&](auto const& search) {
    auto const expected = decode(alone, sources, search), results = decode(model, sources, search, Batched{.size = 2});
    for (std::size_t i = 0; i < sources.size(); ++i) CHECK(identical(results[i], expected[i]));
  };
  compare(BeamSearch{.width = 4, .n_best = 4, .length = {.max = 9}});
  compare(Greedy{.length = {.max = 9}});
  CHECK(inner.report() == "");
  CHECK(model.restarts().slot_count == 0);
}

TEST_CASE("if the source cannot be started again, the slot can still be released", "[restarting]") {
  struct Once : TableModel<> {
    using TableModel<>::TableModel;
    using Source = std::uint64_t;
    bool first = true;
    void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
      if (!std::exchange(first, false)) throw std::runtime_error("out of memory");
      TableModel<>::start(sources, slots);
    }
  };
  SlotChecker<Once> inner;
  Restarting model(inner);
  start(model, {0, 1});
  step(model, {{0, 0, 0, piece(0)}, {1, 1, 0, piece(0)}});
  CHECK_THROWS_AS(step(model, {{0, 0, 0, piece(0)}, {0, 2, 0, piece(1)}}), std::runtime_error);
  std::vector<Slot> const slots{0, 1, 2};
  model.release(slots);
  CHECK(inner.report() == "");
}

TEST_CASE("a restarting model allocates nothing once warm", "[restarting]") {
  TableModel<Abilities{.ragged = true}> inner;
  inner.reserve(4, 64, 8);
  Restarting model(inner);
  start(model, {0, 1});
  std::size_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 2) before = allocations();
    for (std::int32_t i = 0; i < 8; ++i) {
      auto const t = piece(static_cast<std::size_t>(i));
      std::array<Row, 2> const rows{{{0, 0, i, t}, {1, 1, i, t}}};
      model.step(rows);
    }
    std::array<Row, 3> const back{{{0, 0, 5, piece(1)}, {1, 1, 3, piece(2)}, {0, 2, 8, piece(2)}}};
    model.step(back);
  }
  CHECK(allocations() == before);
  CHECK(model.restarts().slot_count >= 40);
}

TEST_CASE("slot tokens follow forks, cuts and appends in the order of the contract", "[slot_tokens]") {
  detail::SlotTokens held;
  CHECK(held[5].empty());
  held.clear(0);
  CHECK(held.length(0) == 0);
  auto const is = [&](Slot slot, std::vector<Token> const& expected) {
    return std::ranges::equal(held[slot], expected);
  };
  held.apply(std::vector<Row>{{0, 0, 0, piece(0, 4)}});
  held.apply(std::vector<Row>{{0, 0, 1, piece(5)}, {0, 7, 3, piece(6)}, {0, 9, 4, piece(1, 2)}});
  CHECK(is(0, {bos, 7}));
  CHECK(is(7, {bos, 3, 4, 3}));
  CHECK(is(9, {bos, 3, 4, 5, 3, 4}));
  CHECK(held.length(8) == 0);
  held.clear(7);
  CHECK(is(7, {}));
}
