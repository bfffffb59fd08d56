// SPDX-License-Identifier: Apache-2.0
// The optional members of automata, alone and in products.
#include <sluice/core/search.hpp>
#include <sluice/search/constraints.hpp>

#include <support/catch.hpp>
#include <support/naive_constraints.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int32_t tokens_in_all = 200;

/// Returns whatever it was told to return.
struct Mute {
  using State = std::int32_t;
  std::int32_t stands = 0, most = 0;
  bool whole = false, lost = false;

  State initial(Sentence const&) const { return 0; }
  State next(State state, Token) const { return state + 1; }
  std::int32_t progress(State state) const { return stands + state; }
  std::int32_t total() const { return most; }
  void wanted(State, std::vector<Token>&) const {}
  bool complete(State) const { return whole; }
  bool dead(State) const { return lost; }
};
struct Telling : Mute {
  std::int32_t open = 0, items = 0, met_items = 0, left = 0;
  bool nothing = false, says_set = false;
  std::string words{};
  TokenSet set{};
  std::vector<Token> bad{};

  std::int32_t begun(State) const { return open; }
  std::int32_t met(State) const { return met_items; }
  std::int32_t count() const { return items; }
  std::int32_t remaining(State) const { return left; }
  bool trivial() const { return nothing; }
  std::string text() const { return words; }
  void forbidden(State, std::vector<Token>& tokens) const { tokens.insert(tokens.end(), bad.begin(), bad.end()); }
  TokenSet const* allowed(State) const { return says_set ? &set : nullptr; }
  void insert_into(TokenSet& into) const { into.insert(bad); }
};

Mute random_mute(std::mt19937_64& random) {
  return {.stands = between(random, 0, 5),
          .most = between(random, 0, 9),
          .whole = random() % 2 == 0,
          .lost = random() % 4 == 0};
}
Telling random_telling(std::mt19937_64& random) {
  Telling part{random_mute(random)};
  part.open = between(random, 0, part.stands), part.items = between(random, 0, 5),
  part.met_items = between(random, 0, 5);
  part.left = between(random, 0, 5), part.nothing = random() % 2 == 0, part.says_set = random() % 3 != 0;
  if (random() % 3 != 0) part.words = std::string(1, static_cast<char>('a' + random() % 26));
  for (auto n = between(random, 0, 150); n > 0; --n) part.set.insert(between(random, 0, tokens_in_all - 1));
  for (auto n = between(random, 0, 2); n > 0; --n) part.bad.push_back(between(random, 0, tokens_in_all - 1));
  return part;
}

}  // namespace

TEST_CASE("a product is what its parts say, together", "[constraint_parts]") {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    std::mt19937_64 random(seed);
    auto const a = random_telling(random), b = random_telling(random);
    auto const c = random_mute(random);
    Product const all(a, c, b);
    auto const state = all.next(all.initial({}), 3);
    INFO("seed " << seed);
    CHECK(state == std::tuple(1, 1, 1));
    CHECK(all.begun(state) == std::max(a.open, b.open));
    CHECK(all.progress(state) == all.begun(state) + a.stands - a.open + b.stands - b.open + c.stands + 3);
    CHECK(all.total() == a.most + b.most + c.most);
    CHECK(all.complete(state) == (a.whole && b.whole && c.whole));
    CHECK(all.dead(state) == (a.lost || b.lost || c.lost));
    CHECK(all.met(state) == a.met_items + b.met_items + c.stands + 1);
    CHECK(all.count() == a.items + b.items + c.most);
    CHECK(all.remaining(state) == std::max(a.left, b.left));
    CHECK_FALSE(all.trivial());  // one has no trivial()
    CHECK(Product(a, b).trivial() == (a.nothing && b.nothing));
    CHECK(all.text() == a.words + (a.words.empty() || b.words.empty() ? "" : ", ") + b.words);
    TokenSet inserted;
    all.insert_into(inserted);
    std::vector<Token> forbidden{9};
    all.forbidden(state, forbidden);
    auto const* const only = all.allowed(state);
    REQUIRE((only != nullptr) == (a.says_set || b.says_set));
    for (Token token = 0; token < tokens_in_all; ++token) {
      auto const bad = std::ranges::count(a.bad, token) + std::ranges::count(b.bad, token);
      CHECK(inserted.contains(token) == (bad > 0));
      auto const may = bad == 0 && (!a.says_set || a.set.contains(token)) && (!b.says_set || b.set.contains(token));
      auto const named = std::find(forbidden.begin() + 1, forbidden.end(), token) != forbidden.end();
      CHECK(may == ((only == nullptr || only->contains(token)) && !named));
      if (named && bad == 0) CHECK(only->contains(token));  // the set covers the rest
    }
    std::vector<Token> wanted{5};
    all.wanted(state, wanted);
    CHECK(wanted == std::vector<Token>{5});
  }
}

TEST_CASE("what an automaton does not say follows from what it does", "[constraint_parts]") {
  Mute const part{.stands = 3, .most = 7};
  CHECK(detail::constraints_met(part, 2) == 5);
  CHECK(detail::constraints_total(part) == 7);
  CHECK((detail::constraints_remaining(part, 0) == 0 && detail::constraints_begun(part, 0) == 0));
  CHECK((detail::constraints_text(part).empty() && !detail::trivial(part)));
  TokenSet set;
  detail::constraints_insert_into(part, set);
  CHECK(set.words().empty());
}

TEST_CASE("what remains is counted by tokens and by places", "[constraint_parts]") {
  Vocabulary const vocabulary{.size = 12, .bos = bos, .eos = {eos}, .never = {pad, bos}};
  std::size_t none = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    auto const items = random_lists(random, {.last = between(random, 4, 6), .longest = 4, .all = 0, .any = 4}).any;
    AnyOf const any(items);
    Tokens text{bos};
    auto state = any.initial({.vocabulary = &vocabulary});
    for (auto n = between(random, 0, 9); n > 0; --n) {
      text.push_back(between(random, 3, 6));
      state = any.next(state, text.back());
    }
    std::map<std::set<Phrase>, std::int32_t> kinds;
    for (auto const& item : items) ++kinds[{item.begin(), item.end()}];
    std::int32_t ends = 0, together = 0;
    std::map<Token, std::int32_t> needed;  // the minimum number of each, since every missing item has them
    for (auto const& [phrases, copies] : kinds) {
      auto const missing = copies - std::min(copies, places(text, phrases));
      if (missing == 0) continue;
      std::size_t shortest = 100;
      for (auto const& phrase : phrases) shortest = std::min(shortest, phrase.size());
      ends = std::max(ends, static_cast<std::int32_t>(shortest) + missing - 1);
      for (Token token = 3; token <= 6; ++token) {
        std::ptrdiff_t least = 100;
        for (auto const& phrase : phrases) least = std::min(least, std::ranges::count(phrase, token));
        needed[token] = std::max(needed[token], static_cast<std::int32_t>(least));
      }
    }
    for (auto const& [token, count] : needed) together += count;
    INFO("seed " << seed << ", after " << detail::text(text));
    CHECK(any.remaining(state) == std::max(0, std::max(ends, together) - naive_any(items, text).begun));
    none += any.remaining(state) == 0 && !any.complete(state);
  }
  CHECK(none > 20);
}

TEST_CASE("demands say what they are, and which tokens they need", "[constraint_parts]") {
  AnyOf const any({{{3, 4}}, {{5}, {6, 7}}, {{0, -1}}}, "some");
  OrderedPhrases const ordered({{8, 9}, {0, -1, 10}});
  CHECK(any.text() == "some[0] [3 4], some[1][0] [5], some[1][1] [6 7], some[2] [0 -1]");
  CHECK(ordered.text() == "ordered[0] [8 9], ordered[1] [0 -1 10]");
  CHECK((AnyOf().text().empty() && OrderedPhrases().text().empty()));
  TokenSet of_any, of_ordered;
  any.insert_into(of_any), ordered.insert_into(of_ordered);
  for (Token token = 0; token < 70; ++token) {
    CHECK(of_any.contains(token) == (token == 0 || (token >= 3 && token <= 7)));
    CHECK(of_ordered.contains(token) == (token == 0 || (token >= 8 && token <= 10)));
  }
  AnyOf const nothing;
  AnyOf::State const state = nothing.next(nothing.initial({}), 5);
  CHECK((nothing.trivial() && nothing.complete(state) && nothing.items().empty()));
  CHECK((nothing.progress(state) == 0 && nothing.total() == 0 && nothing.begun(state) == 0 && nothing.count() == 0));
  CHECK((nothing.remaining(state) == 0 && nothing.met(state) == 0 && !nothing.dead(state)));
}
