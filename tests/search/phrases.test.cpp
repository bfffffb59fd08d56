// SPDX-License-Identifier: Apache-2.0
// Phrases: which are valid, and the automaton that finds them, against lists of their prefixes.
#include <sluice/processor/phrase.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;

TEST_CASE("a phrase makes sense, or is refused with its name and the token", "[phrase]") {
  Vocabulary const vocabulary{.size = 8, .bos = 1, .eos = {2, 3}, .never = {0, 1}};
  Sentence const sentence{.vocabulary = &vocabulary};
  auto const answer = [&](Phrase const& phrase, bool wanted = true) {
    try {
      detail::check_phrase(sentence, "one", phrase, wanted);
    } catch (std::invalid_argument const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (auto const& good : {Phrase{4}, Phrase{7, 4}, Phrase{1, 4}, Phrase{4, 2}, Phrase{1, 3}, Phrase{1}, Phrase{2}})
    CHECK(answer(good) == "");
  CHECK(answer({}) == "sluice: one = []: is empty");
  CHECK(answer({4, 8}) == "sluice: one = [4 8]: token 8 is outside the vocabulary of 8");
  CHECK(answer({-1, 4}) == "sluice: one = [-1 4]: token -1 is outside the vocabulary of 8");
  CHECK(answer({4, 2, 5}) ==
        "sluice: one = [4 2 5]: token 2 is an end of sentence: it may only be the last of a phrase");
  CHECK(answer({3, 5}) == "sluice: one = [3 5]: token 3 is an end of sentence: it may only be the last of a phrase");
  CHECK(answer({4, 1}) ==
        "sluice: one = [4 1]: token 1 is the beginning of a sentence: it may only be the first of a phrase");
  CHECK(answer({4, 0}) == "sluice: one = [4 0]: token 0 is never generated");
  CHECK(answer({4, 0}, false) == "");
  CHECK(detail::text_of("all", {{4, 5}, {6}}) == "all[0] [4 5], all[1] [6]");
}

TEST_CASE("a list contains every piece of itself, and nothing else", "[phrase]") {
  Phrase const all{4, 4, 5, 4, 6};
  for (Token a = 4; a < 7; ++a)
    for (Token b = 4; b < 7; ++b) {
      auto found = false;
      for (std::size_t i = 0; i + 1 < all.size(); ++i) found = found || (all[i] == a && all[i + 1] == b);
      CHECK(detail::contains(all, {a, b}) == found);
    }
  CHECK(detail::contains(all, all));
  CHECK_FALSE(detail::contains({4, 4}, all));
}

TEST_CASE("the states of a matcher are the beginnings of its phrases", "[phrase_matcher]") {
  CHECK((PhraseMatcher().states() == 1 && PhraseMatcher().depth(PhraseMatcher::root) == 0));
  CHECK_THROWS_WITH(PhraseMatcher(std::vector<Phrase>{{3}, {}}), "sluice: phrase = 1: is empty");
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<Phrase> phrases(1 + random() % 5);
    for (auto& phrase : phrases)
      for (auto count = 1 + random() % 4; count > 0; --count) phrase.push_back(static_cast<Token>(3 + random() % 3));
    std::set<Phrase> beginnings;
    for (auto const& phrase : phrases)
      for (std::size_t size = 0; size <= phrase.size(); ++size)
        beginnings.insert({phrase.begin(), phrase.begin() + static_cast<std::ptrdiff_t>(size)});
    PhraseMatcher const matcher(phrases);
    CHECK(matcher.size() == beginnings.size());
    CHECK(matcher.states() == static_cast<std::int32_t>(beginnings.size()));
    for (auto const& one : beginnings) {
      auto state = PhraseMatcher::root;
      for (auto const token : one) state = matcher.next(state, token);
      CHECK(matcher.depth(state) == static_cast<std::int32_t>(one.size()));
      std::vector<Token> further;
      for (Token token = 3; token < 6; ++token) {
        auto longer = one;
        longer.push_back(token);
        if (beginnings.contains(longer)) further.push_back(token);
      }
      CHECK(std::ranges::equal(matcher.children(state), further));
      std::vector<std::int32_t> here;
      for (std::size_t p = 0; p < phrases.size(); ++p)
        if (phrases[p] == one) here.push_back(static_cast<std::int32_t>(p));
      CHECK(std::ranges::equal(matcher.phrases(state), here));
      auto ends = false;  // for any phrase
      for (auto const& phrase : phrases)
        ends = ends || (phrase.size() <= one.size() && std::equal(phrase.rbegin(), phrase.rend(), one.rbegin()));
      CHECK(matcher.ends(state) == ends);
      auto shorter = one;  // the longest prefix among its suffixes
      do {
        if (!shorter.empty()) shorter.erase(shorter.begin());
      } while (!beginnings.contains(shorter));
      auto fallback = PhraseMatcher::root;
      for (auto const token : shorter) fallback = matcher.next(fallback, token);
      CHECK(matcher.fallback(state) == fallback);
      std::set<Token> completing, expected;
      matcher.for_each_completion(state, [&](Token token) { CHECK(completing.insert(token).second); });
      for (Token token = 3; token < 7; ++token)
        if (matcher.ends(matcher.next(state, token))) expected.insert(token);
      CHECK(completing == expected);
    }
  }
}
