// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>
#include <support/slot_checker.hpp>
#include <support/table_model.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::uint64_t const source = 7;
std::vector<Token> const one{bos}, two{bos, 3}, outside{8};

template <class Checker>
void start(Checker& model, std::vector<Slot> const& slots) {
  std::vector<std::uint64_t const*> const sources(slots.size(), &source);
  model.start(std::span(sources), std::span(slots));
}
template <class Checker>
void release(Checker& model, std::vector<Slot> const& slots) {
  model.release(std::span(slots));
}
template <class Checker>
auto step(Checker& model, std::vector<Row> const& rows) {
  return model.step(std::span(rows));
}

template <class Checker, class Call>
bool refused(Checker& model, Call call, std::string const& because) {
  auto const before = model.violations().size();
  try {
    call();
  } catch (std::logic_error const& error) {
    INFO(error.what());
    CHECK(std::string(error.what()).find(because) != std::string::npos);
    return model.violations().size() == before + 1;
  }
  return false;
}

constexpr Abilities all{.ragged = true, .blocks = true, .roll_back = true};

}  // namespace

static_assert(Model<TableModel<>>);
static_assert(!ReleasingModel<TableModel<>>);
static_assert(ReleasingModel<SlotChecker<TableModel<>>>);
static_assert(!EncodingModel<SlotChecker<TableModel<>>>);
static_assert(!ProposingModel<SlotChecker<TableModel<>>>);
static_assert(sluice::abilities<SlotChecker<TableModel<all>, Abilities{.blocks = true}>>() ==
              Abilities{.blocks = true});

TEST_CASE("the slot checker passes what is allowed", "[slot_checker]") {
  SlotChecker<TableModel<all>> model;
  start(model, {4, 0});
  step(model, {{0, 0, 0, one}, {0, 1, 0, two}, {4, 4, 0, two, 2}});
  step(model, {{1, 1, 1, one}});
  release(model, {0});
  CHECK_FALSE(model.report().empty());
  release(model, {4, 1});
  CHECK(model.report().empty());
  auto const& counters = model.counters();
  CHECK(counters.steps == 2);
  CHECK(counters.rows == 4);
  CHECK(counters.forks == 1);
  CHECK(counters.lines == 5);
  CHECK(counters.tokens == 6);
  CHECK(counters.roll_backs == 1);
  CHECK(counters.most_slots == 3);
  CHECK(counters.longest == 2);
}

TEST_CASE("the slot checker refuses every breach of the contract", "[slot_checker]") {
  SlotChecker<TableModel<all>> model;
  start(model, {0, 1});
  CHECK(refused(
      model, [&] { start(model, {1}); }, "occupied"));
  CHECK(refused(
      model,
      [&] {
        start(model, {2, 2});
      },
      "two sources"));
  CHECK(refused(
      model, [&] { start(model, {}); }, "nothing"));
  CHECK(refused(
      model, [&] { start(model, {-1}); }, "no slot -1"));
  CHECK(refused(
      model, [&] { release(model, {5}); }, "free"));
  CHECK(refused(
      model, [&] { step(model, {}); }, "without rows"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{1, 1, 0, one}, {0, 0, 0, one}});
      },
      "ascend"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, one}, {1, 0, 0, one}});
      },
      "ascend"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{2, 2, 0, one}});
      },
      "free"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 1, one}});
      },
      "holds 0 tokens"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, -1, one}});
      },
      "holds 0 tokens"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, {}}});
      },
      "no tokens"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, one, 2}});
      },
      "lines"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, one, 0}});
      },
      "lines"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, outside}});
      },
      "vocabulary"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 2, 0, one}});
      },
      "in place"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{1, 0, 0, one}, {0, 2, 0, one}});
      },
      "reads slot"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{1, 0, 0, one}, {0, 1, 0, one}});
      },
      "reads slot"));
  release(model, {0, 1});
}

TEST_CASE("the slot checker refuses abilities that are not claimed", "[slot_checker]") {
  SlotChecker<TableModel<all>, Abilities{}> model;
  start(model, {0, 1});
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, two}});
      },
      "one token at a time"));
  step(model, {{0, 0, 0, one}});
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 0, one}});
      },
      "cannot roll back"));
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 1, one}, {1, 1, 0, one}});
      },
      "not ragged"));
  SlotChecker<TableModel<all>, Abilities{.blocks = true}> blocks;
  start(blocks, {0, 1});
  CHECK(refused(
      blocks,
      [&] {
        step(blocks, {{0, 0, 0, one}, {1, 1, 0, two}});
      },
      "not ragged"));
}

TEST_CASE("the slot checker knows limits", "[slot_checker]") {
  SlotChecker<TableModel<all>> model(TableModel<all>({}, {.limits = {.slot_count = 4, .length = 2}}), {.slots = 2});
  CHECK(refused(
      model, [&] { start(model, {4}); }, "no slot 4"));
  start(model, {0, 1});
  CHECK(refused(
      model, [&] { start(model, {2}); }, "3 slots are held, 2 are allowed"));
  release(model, {2});
  step(model, {{0, 0, 0, two}});
  CHECK(refused(
      model,
      [&] {
        step(model, {{0, 0, 2, one}});
      },
      "2 tokens at most"));
}
