// SPDX-License-Identifier: Apache-2.0
// Parts that searches share, against plain lists: the tree of tokens, a beam's slots, forbidden tokens, forced
// prefixes.
#include <sluice/search/detail/placement.hpp>
#include <sluice/search/history.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;

TEST_CASE("a history holds what lists of tokens hold", "[history]") {
  std::mt19937_64 random(1);
  History history;
  CHECK(history.length(History::root) == 0);
  Hypothesis told;
  std::vector<Token> tokens(3, 7);
  for (int round = 0; round < 300; ++round) {
    auto const before = static_cast<std::int32_t>(random() % 4);
    history.clear(before);
    CHECK(history.size() == 0);
    std::vector<std::pair<std::vector<Token>, std::vector<float>>> lists;  // [node]
    auto const any = [&] { return static_cast<History::Node>(random() % (lists.size() + 1)) - 1; };
    auto const list = [&](History::Node node) {
      return node == History::root ? decltype(lists)::value_type() : lists[static_cast<std::size_t>(node)];
    };
    for (auto count = random() % 12; count > 0; --count) {
      auto const parent = any();
      auto one = list(parent);
      one.first.push_back(static_cast<Token>(random() % 9)), one.second.push_back(static_cast<float>(random() % 9));
      auto const node = history.add(parent, one.first.back(), one.second.back());
      CHECK(node == static_cast<History::Node>(lists.size()));
      CHECK((history.parent(node) == parent && history.token(node) == one.first.back()));
      lists.push_back(one);
    }
    CHECK(history.size() == static_cast<std::int32_t>(lists.size()));
    for (auto node = History::root; node < history.size(); ++node) {
      auto const one = list(node);
      CHECK(history.length(node) == before + static_cast<std::int32_t>(one.first.size()));
      history.write(node, tokens), history.write(node, told);
      CHECK((tokens == one.first && told.tokens == one.first && told.log_probs == one.second));
    }
    // The common prefix of some nodes: the deepest node on the path to all of them.
    std::vector<History::Node> some;
    for (auto count = random() % 4; count > 0; --count) some.push_back(any());
    auto const ways = [&](History::Node node) {
      std::vector<History::Node> way{History::root};
      for (; node != History::root; node = history.parent(node)) way.insert(way.begin() + 1, node);
      return way;
    };
    std::vector<History::Node> shared = some.empty() ? ways(History::root) : ways(some[0]);
    for (auto const node : some) {
      auto const way = ways(node);
      shared.erase(std::mismatch(shared.begin(), shared.end(), way.begin(), way.end()).first, shared.end());
    }
    CHECK(history.common(some) == shared.back());
  }
}

TEST_CASE("the first child of a parent keeps its slot, the others take the lowest that are free", "[placement]") {
  struct Child {
    Slot from = 0, slot = -1;
    bool ended = false;
  };
  std::mt19937_64 random(2);
  std::vector<Slot> unused{9};
  for (int round = 0; round < 3000; ++round) {
    auto const slots = 1 + random() % 6;
    std::vector<std::int32_t> holder(slots, -1);
    std::vector<Slot> parents;
    for (std::size_t slot = 0; slot < slots; ++slot)
      if (random() % 3 > 0)
        holder[slot] = static_cast<std::int32_t>(random() % 9), parents.push_back(static_cast<Slot>(slot));
    std::vector<Child> next;
    for (auto count = parents.empty() ? 0 : random() % (slots + 3); count > 0; --count)
      next.push_back({.from = parents[random() % parents.size()], .ended = next.size() >= slots || random() % 4 == 0});
    detail::place(std::span(next), holder, unused);

    std::vector<std::int32_t> expected(slots, -1);
    std::vector<Slot> given(next.size(), -1);
    for (std::size_t i = 0; i < next.size(); ++i) {
      auto const from = static_cast<std::size_t>(next[i].from);
      if (!next[i].ended && expected[from] == -1)
        expected[from] = static_cast<std::int32_t>(i), given[i] = next[i].from;
    }
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i].ended || given[i] >= 0) continue;
      auto const lowest = std::find(expected.begin(), expected.end(), -1) - expected.begin();
      expected[static_cast<std::size_t>(lowest)] = static_cast<std::int32_t>(i), given[i] = static_cast<Slot>(lowest);
    }
    CHECK(holder == expected);
    for (std::size_t i = 0; i < next.size(); ++i) CHECK(next[i].slot == given[i]);
    std::erase_if(parents, [&](Slot slot) { return expected[static_cast<std::size_t>(slot)] >= 0; });
    CHECK(unused == parents);
  }
}

TEST_CASE("what may not be chosen: what is never generated, and an end that comes too early", "[bans]") {
  std::mt19937_64 random(3);
  Bans bans;
  CHECK((bans.edits(false).empty() && bans.edits(true).empty()));
  for (int round = 0; round < 200; ++round) {
    Vocabulary vocabulary{.size = 6};
    for (Token token = 0; token < 6; ++token) {
      if (random() % 3 == 0) vocabulary.never.push_back(token);
      if (random() % 3 == 0) vocabulary.eos.push_back(token);
    }
    bans.reset(vocabulary);
    for (auto const eos_too : {false, true}) {
      std::vector<Token> expected;
      for (Token token = 0; token < 6; ++token)
        if (std::ranges::count(vocabulary.never, token) > 0 || (eos_too && vocabulary.ends(token)))
          expected.push_back(token);
      std::vector<Token> found;
      for (auto const& edit : bans.edits(eos_too)) {
        CHECK((edit.add == -std::numeric_limits<float>::infinity() && edit.penalty == 1));
        found.push_back(edit.token);
      }
      std::ranges::sort(found);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a prefix that is forced has a size, and a log-probability once it is known", "[prefix]") {
  CHECK((Prefix().size() == 0 && Prefix().log_prob() == 0));
  std::array<Token, 2> const tokens{4, 5};
  double log_prob = 0;
  Prefix const unknown(Sentence{.prefix = tokens}), known(Sentence{.prefix = tokens, .prefix_log_prob = &log_prob});
  log_prob = -2.5;
  CHECK((unknown.size() == 2 && unknown.log_prob() == 0));
  CHECK((known.size() == 2 && known.log_prob() == -2.5));
}
