// SPDX-License-Identifier: Apache-2.0
#include <sluice/processor/phrase.hpp>
#include <sluice/search/constraints.hpp>

#include <support/catch.hpp>
#include <support/naive_constraints.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Items = std::vector<std::vector<Phrase>>;
using List = std::vector<Phrase>;

static_assert(ConstraintAutomaton<Phrases> && ConstraintAutomaton<AnyOf> && ConstraintAutomaton<OrderedPhrases> &&
              ConstraintAutomaton<Forbidden> && ConstraintAutomaton<Constraints> &&
              ConstraintAutomaton<Product<Phrases, Phrases, Forbidden>>);

Vocabulary const vocabulary{.size = 300, .bos = bos, .eos = {eos}, .never = {pad, bos}};
Tokens const prompt{bos};
Sentence const sentence{.vocabulary = &vocabulary, .prompt = prompt};

Tokens random_text(std::mt19937_64& random, Token first, Token last, std::int32_t length) {
  Tokens text;
  for (std::int32_t i = 0; i < length; ++i) text.push_back(between(random, first, last));
  return text;
}

template <class A>
std::multiset<Token> wanted(A const& a, typename A::State const& state) {
  std::vector<Token> tokens{-7};  // existing entries stay
  a.wanted(state, tokens);
  CHECK(tokens.at(0) == -7);
  return {tokens.begin() + 1, tokens.end()};
}

/// Follows `output` with the automaton and with `naive(text)`; text begins with bos. Tokens after which `dead(text)`
/// holds must not be wanted.
template <class A, class Naive, class Dead>
void follow(A const& a, Tokens output, Token first, Token last, Naive const& naive, Dead const& dead,
            bool exact = true) {
  Tokens text{bos};
  auto state = a.initial(sentence);
  output.push_back(eos);
  for (std::size_t i = 0;; ++i) {
    INFO("after " << detail::text(text));
    auto const now = naive(text);
    CHECK(a.progress(state) == now.progress());
    CHECK(detail::constraints_met(a, state) == now.met);
    CHECK(a.complete(state) == (now.met == detail::constraints_total(a)));
    CHECK(a.complete(state) == (a.progress(state) == a.total()));
    CHECK(a.dead(state) == dead(text));
    std::multiset<Token> expected;
    std::set<Token> all{bos, eos};
    for (auto token = first; token <= last + 1; ++token) all.insert(token);
    for (auto const token : all) {
      text.push_back(token);
      if (naive(text).progress() > now.progress() && !dead(text)) expected.insert(token);
      text.pop_back();
    }
    auto const found = wanted(a, state);
    if (exact) CHECK(found == expected);
    else CHECK(std::ranges::includes(expected, found));
    CHECK((detail::constraints_remaining(a, state) >= 0 && detail::constraints_remaining(a, state) <= now.remaining));
    if (i == output.size()) return;
    text.push_back(output[i]);
    auto const before = state;
    state = a.next(state, output[i]);
    CHECK(a.progress(a.next(before, output[i])) == a.progress(state));  // next has no memory of its own
  }
}

bool never_dead(Tokens const&) { return false; }

/// Whether one of `phrases` ends at the end of the text.
bool ends_one(List const& phrases, Tokens const& text) {
  return std::ranges::any_of(phrases, [&](Phrase const& p) { return ends_in(text, p, p.size()); });
}

std::string complaint(auto const& automaton) {
  try {
    automaton.initial(sentence);
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "none";
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

/// The minimum number of tokens from first .. last and eos after which it is complete; more than `most` counts as most
/// + 1.
template <class A>
std::int32_t shortest(A const& a, Token first, Token last, std::int32_t most) {
  std::vector<typename A::State> states{a.initial(sentence)};
  for (std::int32_t n = 0; n <= most; ++n) {
    std::vector<typename A::State> after;
    for (auto const& state : states) {
      if (a.complete(state)) return n;
      for (auto token = first; token <= last; ++token) after.push_back(a.next(state, token));
    }
    states = std::move(after);
  }
  return most + 1;
}

}  // namespace

TEST_CASE("phrases stand as far as a search in the text says", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    auto const last = between(random, 4, 6);
    auto const lists =
        random_lists(random, {.last = last, .longest = between(random, 1, 5), .edges = seed % 3 == 0, .all = 5});
    INFO("seed " << seed << ", " << text(lists));
    Phrases const phrases(lists.all);
    if (complaint(phrases) != "none") continue;
    CHECK(phrases.total() == naive_total(one_each(lists.all)));
    CHECK(phrases.count() == std::ssize(lists.all));
    CHECK(phrases.trivial() == lists.all.empty());
    auto const naive = [&](Tokens const& text) { return naive_any(one_each(lists.all), text); };
    follow(phrases, random_text(random, 3, last, 10), 3, last, naive, never_dead);
  }
}

TEST_CASE("items of several phrases stand as far as a search in the text says", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    auto const last = between(random, 4, 6);
    auto const lists = random_lists(
        random, {.last = last, .longest = between(random, 1, 4), .edges = seed % 3 == 0, .all = 0, .any = 4});
    INFO("seed " << seed << ", " << text(lists));
    AnyOf const items(lists.any);
    if (complaint(items) != "none") continue;
    CHECK(items.total() == naive_total(lists.any));
    CHECK(items.count() == std::ssize(lists.any));
    auto const naive = [&](Tokens const& text) { return naive_any(lists.any, text); };
    follow(items, random_text(random, 3, last, 10), 3, last, naive, never_dead);
  }
}

TEST_CASE("an output that follows what is wanted becomes complete, token by token", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    auto const lists = random_lists(random, {.last = between(random, 4, 6), .longest = 4, .all = 5, .any = 0});
    INFO("seed " << seed << ", " << text(lists));
    Phrases const phrases(lists.all);
    auto state = phrases.initial(sentence);
    for (auto const token : random_text(random, 3, 6, between(random, 0, 6))) state = phrases.next(state, token);
    for (auto left = phrases.total() - phrases.progress(state); left > 0 && !phrases.complete(state); --left) {
      std::vector<Token> tokens;
      phrases.wanted(state, tokens);
      REQUIRE_FALSE(tokens.empty());
      auto const before = phrases.progress(state);
      state = phrases.next(state, tokens[random() % tokens.size()]);
      CHECK(phrases.progress(state) > before);
    }
    CHECK(phrases.complete(state));
  }
}

TEST_CASE("phrases in their order stand as far as a search in the text says", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    auto const last = between(random, 4, 6);
    auto const lists = random_lists(
        random, {.last = last, .longest = between(random, 1, 5), .edges = seed % 3 == 0, .all = 0, .ordered = 4});
    INFO("seed " << seed << ", " << text(lists));
    OrderedPhrases const ordered(lists.ordered);
    CHECK(ordered.total() == naive_total(one_each(lists.ordered)));
    CHECK(ordered.count() == std::ssize(lists.ordered));
    auto const naive = [&](Tokens const& text) { return naive_ordered(lists.ordered, text); };
    follow(ordered, random_text(random, 3, last, 12), 3, last, naive, never_dead);
  }
}

TEST_CASE("forbidden is exactly the token that completes a phrase", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    auto const last = between(random, 4, 6);
    auto const lists = random_lists(
        random, {.last = last, .longest = between(random, 1, 4), .edges = seed % 2 == 0, .all = 0, .none = 4});
    INFO("seed " << seed << ", " << text(lists));
    Forbidden const forbidden(lists.none);
    CHECK(forbidden.total() == 0);
    Tokens text{bos};
    auto state = forbidden.initial(sentence);
    for (auto const token : random_text(random, 3, last, 10)) {
      std::set<Token> expected;
      for (auto t = eos; t <= last + 1; ++t) {
        text.push_back(t);
        if (ends_one(lists.none, text)) expected.insert(t);
        text.pop_back();
      }
      std::vector<Token> tokens;
      forbidden.forbidden(state, tokens);
      CHECK(std::multiset<Token>(tokens.begin(), tokens.end()) ==
            std::multiset<Token>(expected.begin(), expected.end()));
      CHECK(wanted(forbidden, state).empty());
      CHECK((forbidden.complete(state) && forbidden.progress(state) == 0));
      text.push_back(token), state = forbidden.next(state, token);
      CHECK(forbidden.dead(state) == ends_one(lists.none, text));
    }
  }
}

TEST_CASE("a forbidden beginning of the sentence forgets nothing beside it", "[constraint_automata]") {
  Forbidden const forbidden(List{{bos}, {bos, 4}});  // the first cannot be avoided, the second can
  std::vector<Token> tokens;
  forbidden.forbidden(forbidden.initial(sentence), tokens);
  CHECK(std::ranges::count(tokens, 4) == 1);
}

TEST_CASE("a product stands where its parts stand, and wants no dead end", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    auto const last = between(random, 4, 6);
    auto const lists = random_lists(random, {.last = last,
                                             .longest = between(random, 1, 4),
                                             .edges = seed % 3 == 0,
                                             .all = 2,
                                             .ordered = 2,
                                             .any = 2,
                                             .none = 2});
    INFO("seed " << seed << ", " << text(lists));
    using Four = Product<Phrases, AnyOf, OrderedPhrases, Forbidden>;
    Four const four{Phrases(lists.all), AnyOf(lists.any), OrderedPhrases(lists.ordered), Forbidden(lists.none)};
    auto const naive = [&](Tokens const& text) {
      return naive_any(one_each(lists.all), text) + naive_any(lists.any, text) + naive_ordered(lists.ordered, text);
    };
    auto const dead = [&](Tokens const& text) { return ends_one(lists.none, text); };
    auto const output = random_text(random, 3, last, 10);
    // A token that no part wants may still raise the sum by serving several parts.
    if (complaint(four) != "none") continue;
    follow(four, output, 3, last, naive, dead, false);
    CHECK(four.count() == naive_count(lists));
    CHECK(four.trivial() == (naive_count(lists) == 0 && lists.none.empty()));
    Product const nested(four, Phrases(lists.all));  // a product of a product of the same parts
    auto const twice = [&](Tokens const& text) { return naive(text) + naive_any(one_each(lists.all), text); };
    follow(nested, output, 3, last, twice, dead, false);
    if (complaint(Constraints(lists)) == "none") follow(Constraints(lists), output, 3, last, naive, dead, false);
  }
}

TEST_CASE("hundreds of items are all counted", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Items items;
    for (auto n = between(random, 190, 256); n > 0; --n) {
      auto& item = items.emplace_back();
      for (auto m = between(random, 1, 2); m > 0; --m) item.push_back(random_phrase(random, 3, 250, 2, false));
    }
    AnyOf const any(items);
    Tokens text{bos};
    auto state = any.initial(sentence);
    for (auto const& item : items) {
      for (auto const token : item[random() % item.size()]) text.push_back(token), state = any.next(state, token);
      if (random() % 8 != 0) continue;
      auto const now = naive_any(items, text);
      CHECK(any.progress(state) == now.progress());
      CHECK(any.met(state) == now.met);
    }
    for (int i = 0; i < 600 && !any.complete(state); ++i) {
      std::vector<Token> tokens;
      any.wanted(state, tokens);
      CHECK(std::set<Token>(tokens.begin(), tokens.end()).size() == tokens.size());
      REQUIRE_FALSE(tokens.empty());
      text.push_back(tokens[random() % tokens.size()]);
      state = any.next(state, text.back());
    }
    CHECK(any.complete(state));
    CHECK(naive_any(items, text).met == std::ssize(items));
  }
  CHECK(complaint(Phrases(List(256, Phrase{5}))) == "none");
  CHECK(has(complaint(Phrases(List(257, Phrase{5}))), "phrases = 257"));
}

TEST_CASE("what remains is what it takes, where phrases share no token", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Items items{{{3, 4}}, {{6}}, {{7, 8}, {7, 5, 8}}};
    items.erase(items.begin() + between(random, 0, 2));
    AnyOf const any(items);
    auto const last = between(random, 1, 2);
    OrderedPhrases const ordered(last == 1 ? List{{3, 4}, {5}} : List{{3}, {4, 5}});
    CHECK(any.remaining(any.initial(sentence)) == shortest(any, 3, 8, 4));
    CHECK(detail::constraints_remaining(ordered, ordered.initial(sentence)) == shortest(ordered, 3, 6, 4));
  }
}

TEST_CASE("what remains is never more than it takes", "[constraint_automata]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto const lists = random_lists(random, {.last = 5, .longest = 3, .all = 2, .ordered = 1, .any = 1, .none = 0});
    Constraints const constraints(lists);
    INFO("seed " << seed << ", " << text(lists));
    auto const takes = shortest(constraints, 3, 5, 8);
    if (takes <= 8) CHECK(constraints.remaining(constraints.initial(sentence)) <= takes);
  }
  auto const remaining = [](PhraseLists const& lists) {
    Constraints const constraints(lists);
    return constraints.remaining(constraints.initial(sentence));
  };
  CHECK(remaining({.all = {{4}, {4, 5}, {4, 5, 6}}}) == 3);
  CHECK(remaining({.all = {{4, 5}, {5, 6}, {6, 7}}}) == 4);
  CHECK(remaining({.all = {{4, 5, 6, 7}}, .ordered = {{4, 5, 6, 7}}}) == 4);
  CHECK(remaining({.all = {{4}, {4}, {4}}}) == 3);
  CHECK(remaining({.any = {{{4, 5}, {4, 6, 7}}, {{8}}}}) == 2);  // 4 and 8; the other token may be either
}

TEST_CASE("two phrases that begin or end the sentence otherwise are refused", "[constraint_automata]") {
  CHECK(has(complaint(Phrases(List{{bos, 4}, {7}, {bos, 5}})), "phrases[2] = [1 5]"));
  CHECK(complaint(Phrases(List{{bos, 4}, {bos, 4, 5}})) == "none");
  CHECK(has(complaint(Phrases(List{{4, eos}, {5, eos}})), "phrases[1] = [5 2]"));
  CHECK(has(complaint(Phrases(List{{4, eos}, {4, eos}})), "phrases[1]"));
  CHECK(complaint(Phrases(List{{4, 5, eos}, {5, eos}})) == "none");
  CHECK(complaint(AnyOf(Items{{{4, eos}, {5, eos}}, {{6, 5, eos}}})) == "none");
  CHECK(has(complaint(AnyOf(Items{{{4, eos}}, {{7}}, {{6, 5, eos}, {5, eos}}})), "any[2]"));
}

TEST_CASE("what overlaps, shares a beginning or lies inside is credited", "[constraint_automata]") {
  auto const met = [](List const& phrases, Tokens const& output) {
    Phrases const automaton(phrases);
    auto state = automaton.initial(sentence);
    for (auto const token : output) state = automaton.next(state, token);
    return automaton.met(state);
  };
  CHECK(met({{4, 5}}, {4, 4, 5}) == 1);
  CHECK(met({{4, 4, 5}}, {4, 4, 4, 5}) == 1);
  CHECK(met({{4}, {4, 5}}, {4, 5}) == 2);
  CHECK(met({{4, 5}, {6}}, {4, 6}) == 1);
  CHECK(met({{4, 5}, {4, 5}}, {4, 5}) == 1);
  CHECK(met({{4, 5}, {4, 5}}, {4, 5, 4, 5}) == 2);
  CHECK(met({{4, 4}, {4, 4}}, {4, 4, 4}) == 2);  // at two positions
  CHECK(met({{4}, {4}, {4}}, {4, 4}) == 2);
  CHECK(met({{bos, 4}}, {5, 4}) == 0);
  CHECK(met({{bos, 4}}, {4}) == 1);
  CHECK(met({{4, eos}}, {4, 5, eos}) == 0);
}

TEST_CASE("a phrase that makes no sense is named", "[constraint_automata]") {
  CHECK(has(complaint(Phrases(List{{4}, {}})), "phrases[1] = []"));
  CHECK(has(complaint(Phrases(List{{4}, {5, 300}}, "all")), "all[1] = [5 300]"));
  CHECK(has(complaint(Phrases(List{{-1}})), "phrases[0] = [-1]"));
  CHECK(has(complaint(Phrases(List{{4, eos, 5}})), "phrases[0] = [4 2 5]"));
  CHECK(has(complaint(Phrases(List{{4, bos}})), "phrases[0] = [4 1]"));
  CHECK(has(complaint(Phrases(List{{pad}})), "phrases[0] = [0]"));
  CHECK(complaint(Phrases(List{{bos, 4}, {5, eos}, {eos}})) == "none");
  CHECK(has(complaint(AnyOf(Items{{{4}}, {}})), "any[1] = []"));
  CHECK(has(complaint(AnyOf(Items{{{4}}, {{5}, {}}})), "any[1][1] = []"));
  CHECK(has(complaint(AnyOf(Items{{{4}}, {{5}, {6, 999}}})), "any[1][1] = [6 999]"));
  CHECK(has(complaint(OrderedPhrases(List{{4}, {}})), "ordered[1] = []"));
  CHECK(has(complaint(OrderedPhrases(List{{4, eos}, {5}})), "ordered[0] = [4 2]"));
  CHECK(has(complaint(OrderedPhrases(List{{4}, {bos, 5}})), "ordered[1] = [1 5]"));
  CHECK(complaint(OrderedPhrases(List{{bos, 4}, {5, eos}})) == "none");
  CHECK(has(complaint(Forbidden(List{{4}, {}})), "forbidden[1] = []"));
  CHECK(has(complaint(Forbidden(List{{300}})), "forbidden[0] = [300]"));
  CHECK(has(complaint(Forbidden(List{{eos, 4}})), "forbidden[0] = [2 4]"));
  CHECK(complaint(Forbidden(List{{pad}})) == "none");  // never generated anyway
  CHECK(has(complaint(Constraints({.all = {{4}, {4, 5, 6}}, .none = {{7}, {5, 6}}})), "all[1] = [4 5 6]"));
  CHECK(has(complaint(Constraints({.all = {{4}, {4, 5, 6}}, .none = {{7}, {5, 6}}})), "[5 6]"));
  CHECK(has(complaint(Constraints({.ordered = {{4}}, .none = {{4}}})), "ordered[0] = [4]"));
  CHECK(has(complaint(Constraints({.any = {{{4}, {5}}}, .none = {{4}, {5}}})), "any[0]"));
  CHECK(complaint(Constraints({.any = {{{4}, {5}}}, .none = {{4}}})) == "none");
  CHECK(has(complaint(Constraints({.none = {{4}, {}}})), "none[1] = []"));
}
