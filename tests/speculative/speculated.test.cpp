// SPDX-License-Identifier: Apache-2.0
// A list of proposers: who is asked for what, and that outputs are greedy's, or Sample's, whatever the list.
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>
#include <sluice/speculative/speculated.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/slot_checker.hpp>
#include <support/table_model.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Abilities with_trees{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

/// A model that is never looked at.
struct Unread {
  using Source = std::vector<Token>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  static Vocabulary vocabulary() { return {.size = 12, .bos = 1, .eos = {2}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};

/// Guesses one token, for slots of which `who` is a multiple, and writes down for which it was asked.
struct Says {
  Token token;
  Slot who;
  std::vector<Slot>* asked;
  void propose(std::span<Draft const> drafts) {
    for (auto const& draft : drafts) {
      asked->push_back(draft.slot);
      if (draft.slot % who == 0) draft.tokens->push_back(token);
    }
  }
};

/// Writes down what it is told; throws when it is started, if it should.
struct Told {
  std::string* all;
  bool throws = false;
  void bind(Vocabulary const& vocabulary) { *all += "bind " + std::to_string(vocabulary.size) + "; "; }
  void start(std::span<Slot const> slots) {
    if (throws) throw std::runtime_error("not now");
    *all += "start " + std::to_string(slots.size()) + "; ";
  }
  void release(std::span<Slot const> slots) { *all += "release " + std::to_string(slots.size()) + "; "; }
  void observe(std::span<Row const> rows, Scores<float> const& answer) {
    *all += "observe " + std::to_string(rows.size()) + " " + std::to_string(answer.rows) + "; ";
  }
  void remember(Decoded const& decoded, SlotTexts const& texts) {
    *all += "remember " + std::to_string(decoded.output.size()) + " " +
            std::to_string(texts.source(decoded.slot).size()) + "; ";
  }
  Limits limits() const { return {.length = 7, .log_prob = 3}; }
  void propose(std::span<Draft const>) {}
};

/// Guesses at random, mostly wrong, sometimes nothing; trees where they are wanted.
class AtRandom {
 public:
  explicit AtRandom(std::uint64_t seed) : random_(seed) {}
  void propose(std::span<Draft const> drafts) {
    for (auto const& draft : drafts) {
      if (random_() % 3 == 0) continue;
      auto const branches = draft.tree != nullptr && draft.tree->leaves > 1;
      for (std::int32_t i = 0; i < draft.count; ++i) {
        draft.tokens->push_back(static_cast<Token>(random_() % 8));
        if (branches) draft.tree->parents.push_back(i % 2 == 0 ? i - 1 : (std::max)(i - 2, -1));
      }
    }
  }

 private:
  std::mt19937_64 random_;
};

std::size_t rounds(std::vector<Result> const& results) {
  std::size_t sum = 0;
  for (auto const& result : results) sum += result.hypotheses.at(0).blocks.size();
  return sum;
}

}  // namespace

TEST_CASE("the first proposer with a guess makes it, the model itself is the last", "[speculated]") {
  struct Speaks : Unread {
    std::vector<Slot> asked{};
    void propose(std::span<Draft const> drafts) { Says{9, 1, &asked}.propose(drafts); }
  };
  Speaks model;
  std::array<std::vector<Slot>, 2> asked;
  Speculated list{model, Says{5, 2, &asked[0]}, Says{6, 3, &asked[1]}};
  std::array<std::vector<Token>, 7> tokens;
  std::vector<Draft> drafts;
  for (Slot slot = 0; slot < 7; ++slot)
    drafts.push_back({.slot = slot, .count = 3, .tokens = &tokens[static_cast<std::size_t>(slot)]});
  for (int round = 0; round < 2; ++round) {
    for (auto& one : tokens) one.clear();
    for (auto& one : asked) one.clear();
    model.asked.clear();
    auto const before = allocations();
    list.propose(drafts);
    if (round > 0) CHECK(allocations() == before);
  }
  CHECK(asked[0] == std::vector<Slot>{0, 1, 2, 3, 4, 5, 6});
  CHECK(asked[1] == std::vector<Slot>{1, 3, 5});
  CHECK(model.asked == std::vector<Slot>{1, 5});
  std::array<std::vector<Token>, 7> const expected{{{5}, {9}, {5}, {6}, {5}, {9}, {5}}};
  CHECK(tokens == expected);
}

TEST_CASE("proposers are told what happens to the slots", "[speculated]") {
  Unread model;
  std::string first, second;
  Speculated list{model, Told{&first}, Told{&second}};
  CHECK(list.limits().length == 7);
  CHECK(list.limits().log_prob == 0);  // what a proposer scores is no output's
  std::vector<Token> const source{4, 5};
  std::array const sources{&source};
  std::array const slots{Slot{2}};
  std::array const begin{Token{1}};
  list.start(sources, slots);
  list.step(std::array{Row{2, 2, 0, begin, 1}, Row{2, 3, 0, begin, 1}});
  list.remember({.slot = 2, .prompt = begin, .output = source});
  list.release(slots);
  CHECK(first == "bind 12; start 1; observe 2 0; remember 2 2; release 1; ");
  CHECK(second == first);
  // If one cannot start, the slots are free again for all of them.
  std::string told, untold;
  Speculated broken{model, Told{&told}, Told{&untold, true}};
  CHECK_THROWS_WITH(broken.start(sources, slots), Equals("not now"));
  CHECK(told == "bind 12; start 1; release 1; ");
  CHECK(untold == "bind 12; release 1; ");
}

TEST_CASE("a list of proposers gives greedy's output and Sample's, bit for bit, in any order", "[speculated]") {
  std::mt19937_64 random(11);
  std::size_t alone = 0, together = 0;
  for (int round = 0; round < times(40); ++round) {
    Table const table{
        .size = 8, .scale = 6, .eos_bias = -6, .eos_slope = 0.3, .order = static_cast<std::int32_t>(1 + random() % 3)};
    auto other = table;
    other.levels = 3;  // right now and then
    std::vector<std::uint64_t> seeds(9);
    for (auto& seed : seeds) seed = random() % 5;  // some repeat
    LengthLimits const length{.max = 24};
    auto const claimed = random() % 2 == 0 ? with_trees : Abilities{.blocks = true, .roll_back = true};
    CheckedModel<TableModel<with_trees>> model(TableModel<with_trees>(table), claimed);
    TableChecker small(TableModel<everything>(other), everything);
    SuffixCache cache(1 << 13);
    auto const block = static_cast<std::int32_t>(2 + random() % 5),
               branches = static_cast<std::int32_t>(1 + random() % 3);
    auto const size = 1 + random() % 9;
    auto const check = [&](auto&& list, auto const& search, auto const& expected) {
      auto const batched = decode(list, seeds, search, Batched{.size = size});
      for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(batched[i], expected[i]));
      auto const streamed = decode(list, seeds, search, Streaming{.size = size});
      for (std::size_t i = 0; i < seeds.size(); ++i) CHECK(same_outputs(streamed[i], expected[i]));
      return rounds(batched);
    };
    auto const greedy = decode(model, seeds, Greedy{.length = length});
    Blockwise<> const exact{.block = block, .length = length, .branches = branches};
    alone += check(Speculated{model, PromptLookup()}, exact, greedy);
    together += check(Speculated{model, PromptLookup(), DraftModel(small)}, exact, greedy);
    check(Speculated{model, DraftModel(small), PromptLookup()}, exact, greedy);
    check(Speculated{model, SuffixDecoding(cache), AtRandom(random()), PromptLookup(), DraftModel(small)}, exact,
          greedy);
    acceptance::Sampling const rule{{.temperature = 0.8f}};
    auto const sampled = decode(model, seeds, Sample{.temperature = rule.sample.temperature, .length = length});
    Blockwise<acceptance::Sampling> const drawing{
        .block = block, .accept = rule, .length = length, .branches = branches};
    check(Speculated{model, AtRandom(random()), PromptLookup(), DraftModel(small, {}, rule)}, drawing, sampled);
    CHECK(model.report() == "");
    CHECK(small.report() == "");
  }
  CHECK(together < alone);  // the draft guesses where there was nothing to look up
}

TEST_CASE("a list is as fast as who guesses first", "[speculated]") {
  Table const table{.size = 12, .scale = 6, .eos_bias = -8, .eos_slope = 0.2};
  TableModel<everything> model(table), same(table);
  std::vector<std::uint64_t> const seeds{0, 1, 2, 3, 4, 5, 6, 7};
  Blockwise<> const search{.block = 5, .length = {.max = 30}};
  std::vector<Slot> asked;
  auto const of = [&](auto&& list) { return rounds(decode(list, seeds, search)); };
  auto const alone = of(Speculated{model, DraftModel(same)});
  CHECK(of(Speculated{model, DraftModel(same), Says{3, 1, &asked}}) == alone);
  CHECK(asked.empty());  // the draft always had a guess
  CHECK(of(Speculated{model, Says{3, 1, &asked}, DraftModel(same)}) > 2 * alone);
  // Only the sentence in slot 0 has wrong guesses, and takes a round for each of its 30 tokens at most.
  CHECK(of(Speculated{model, Says{3, 1000000, &asked}, DraftModel(same)}) < alone + 30);
}

TEST_CASE("a fork has the source that it was forked from, and a warm one allocates nothing", "[speculated]") {
  Unread model;
  Speculated lookup(model, PromptLookup({.longest = 1}));
  std::vector<Token> const first{4, 5, 6, 7}, second{4, 8};
  std::array const sources{&first, &second};
  std::array const slots{Slot{0}, Slot{1}};
  std::array const begin{Token{1}};
  auto const guess = [&](Slot slot) {
    std::array const pending{Token{4}};
    std::vector<Token> tokens;
    Draft const draft{.slot = slot, .length = 1, .pending = pending, .count = 3, .tokens = &tokens};
    lookup.propose(std::span(&draft, 1));
    return tokens;
  };
  std::size_t counted = 1;
  for (int round = 0; round < 2; ++round) {
    lookup.start(sources, slots);
    std::array const rows{Row{0, 0, 0, begin, 1}, Row{1, 1, 0, begin, 1}};
    lookup.step(rows);
    std::array const forks{Row{0, 2, 0, begin, 1}, Row{1, 5, 0, begin, 1}};
    auto const before = allocations();
    lookup.step(forks);
    counted = allocations() - before;
    CHECK(guess(2) == std::vector<Token>{5, 6, 7});
    CHECK(guess(5) == std::vector<Token>{8});
  }
  CHECK(counted == 0);
}

TEST_CASE("who says that it does not guess is not asked", "[speculated]") {
  struct Silent : Unread {
    bool speaks = false;
    bool proposes() const { return speaks; }
    void propose(std::span<Draft const> drafts) {
      for (auto const& draft : drafts) draft.tokens->push_back(9);
    }
  };
  auto const guesses = [](bool speaks) {
    Silent model;
    model.speaks = speaks;
    Speculated lookup(model, PromptLookup());
    Silent::Source const source{4, 5};
    std::array const sources{&source};
    std::array const slots{Slot{0}};
    std::array const pending{Token{1}, Token{7}};  // never seen before
    lookup.start(sources, slots);
    std::vector<Token> tokens;
    Draft const draft{.slot = 0, .pending = pending, .count = 3, .tokens = &tokens};
    lookup.propose(std::span(&draft, 1));
    return tokens;
  };
  CHECK(guesses(false).empty());
  CHECK(guesses(true) == std::vector<Token>{9});
}
