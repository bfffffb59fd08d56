// SPDX-License-Identifier: Apache-2.0
// Constraints and options that a constrained search refuses, and similar ones that it accepts.
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

template <class S>
std::string complaint(S const& search) {
  try {
    search.check();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return {};
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("demands are refused where they take more tokens than there is room, and nowhere else",
          "[constrained_refusals]") {
  std::size_t refused = 0, served = 0, exact = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = Table{.size = 7, .scale = 3, .has_eos = seed % 5 != 0};
    auto const lists =
        random_lists(random, {.last = 6, .edges = seed % 2 == 0 && table.has_eos, .all = 2, .ordered = 1, .any = 1});
    ConstrainedBeamSearch<> search{.beam = {.width = 3}, .constraints = Constraints(lists)};
    search.beam.at_maximum = static_cast<AtMaximum>(random() % 5);
    search.beam.length.max = between(random, 1, 8);
    std::vector<Token> prefix;
    for (auto n = between(random, 0, 2); n > 0 && std::ssize(prefix) + 1 < search.beam.length.max; --n)
      prefix.push_back(between(random, 3, 6));
    auto const vocabulary = TableModel<>(table).vocabulary();
    auto named = false;  // eos is required
    for (auto const& list : {lists.all, lists.ordered})
      for (auto const& phrase : list) named |= phrase.back() == eos;
    for (auto const& item : lists.any)
      for (auto const& phrase : item) named |= phrase.back() == eos;
    std::optional<std::int32_t> takes;
    try {
      auto state = search.constraints.initial({.vocabulary = &vocabulary});
      for (auto const token : prefix) state = search.constraints.next(state, token);
      takes = search.constraints.remaining(state);
    } catch (std::invalid_argument const&) {
      continue;
    }
    auto const at = search.beam.at_maximum;
    auto const apart = table.has_eos && !named && naive_count(lists) > 0 && at != AtMaximum::truncate &&
                       at != AtMaximum::best_unfinished;
    auto const room = search.beam.length.max - static_cast<std::int32_t>(prefix.size());
    INFO("seed " << seed << ", takes " << *takes << ", room " << room << ", " << text(lists));
    auto const result =
        run(table, std::vector<TableRequest<ConstrainedBeamSearch<>>>{{.source = seed, .prefix = prefix}}, search)
            .at(0);
    auto const expected = *takes > 0 && *takes + (apart ? 1 : 0) > room;
    CHECK((result.failure == Failure::bad_request) == expected);
    ++(expected ? refused : served), exact += *takes > 0 && *takes + (apart ? 1 : 0) == room;
    if (!expected) continue;
    CHECK(has(result.message, "constraints = " + std::to_string(*takes) + " tokens"));
    CHECK(has(result.message, "leaves " + std::to_string(room)));
    CHECK(has(result.message, "the end included") == apart);
  }
  CHECK((refused > 100 && served > 300 && exact > 50));
}

TEST_CASE("a refusal names demands, long ones as far as 200 characters", "[constrained_refusals]") {
  std::size_t cut = 0, whole = 0;
  for (std::size_t shorter = 80; shorter < 100; ++shorter)
    for (std::size_t longer = 0; longer < 2; ++longer) {
      Phrase phrase(shorter, 3);
      phrase.resize(shorter + longer, 10);
      ConstrainedBeamSearch<> const search{.beam = {.length = {.max = 9}},
                                           .constraints = Constraints({.all = {phrase}})};
      auto words = search.constraints.text();
      if (words.size() < 199 || words.size() > 202) continue;
      ++(words.size() > 200 ? cut : whole);
      if (words.size() > 200) words = words.substr(0, 200) + " ...";
      CHECK(has(run_one(Table{.size = 12}, 1, search).message, " tokens and more (" + words + ")"));
    }
  CHECK((cut == 2 && whole == 2));
}

TEST_CASE("banks that are equal need a place each", "[constrained_refusals]") {
  for (std::int32_t width = 1; width <= 4; ++width) {
    ConstrainedBeamSearch<Phrases> const search{
        .beam = {.width = width}, .constraints = Phrases(std::vector<Phrase>{{3, 4}}), .banks = Banks::equal};
    auto const result = run_one(Table{}, 1, search);
    CHECK((result.failure == Failure::bad_request) == (width < 3));
    if (width < 3) CHECK(has(result.message, "width = " + std::to_string(width)));
    if (width < 3) CHECK(has(result.message, "each of 3 equal banks"));
  }
}

TEST_CASE("options of a constrained search that make no sense are refused by name", "[constrained_refusals]") {
  using Search = ConstrainedBeamSearch<>;
  CHECK((Search{}.prune_finished == 20 && Search{}.banks == Banks::even && Search{}.replace_impossible));
  CHECK(complaint(Search{.prune_finished = 0}).empty());
  CHECK(has(complaint(Search{.prune_finished = -1}), "prune_finished = -1"));
  CHECK(has(complaint(Search{.prune_finished = std::nan("")}), "prune_finished"));
  CHECK(has(complaint(Search{.beam = {.width = 0}}), "width = 0"));
  for (auto const finished : {FinishedHypotheses::set_aside, FinishedHypotheses::shrink,
                              FinishedHypotheses::leave_first, FinishedHypotheses::stay}) {
    auto const text = complaint(Search{.beam = {.finished = finished}, .banks = Banks::fairseq});
    CHECK(has(text, "banks = fairseq") == (finished != FinishedHypotheses::set_aside));
    CHECK(complaint(Search{.beam = {.finished = finished}, .banks = Banks::paper}).empty());
  }
  CHECK((complaint(presets::sockeye_constrained(4)).empty() && complaint(presets::fairseq_constrained(4)).empty()));
  CHECK(presets::fairseq_constrained(4, Phrases({{3}})).slot_count() == 4);
}
