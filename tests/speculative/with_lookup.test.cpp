// SPDX-License-Identifier: Apache-2.0
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A model that is never looked at.
struct Unread {
  using Source = std::vector<Token>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  static Vocabulary vocabulary() { return {.size = 12, .bos = 1, .eos = {2}}; }
  void start(std::span<Source const* const>, std::span<Slot const>) {}
  Scores<float> step(std::span<Row const>) { return {}; }
};

}  // namespace

TEST_CASE("a fork has the source that it was forked from, and a warm one allocates nothing", "[with_lookup]") {
  Unread model;
  WithLookup lookup(model, {.longest = 1});
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

TEST_CASE("who says that it does not guess is not asked", "[with_lookup]") {
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
    WithLookup lookup(model);
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
