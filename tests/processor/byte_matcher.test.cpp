// SPDX-License-Identifier: Apache-2.0
// Stops found in texts, against a search at every position, and what StopSequences does if nothing stops or the input is
// invalid.
#include <sluice/core/token_bytes.hpp>
#include <sluice/processor/detail/byte_matcher.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/stops.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using sluice::detail::ByteMatcher;

/// For strings and a text: the longest string that ends it (the first of equal ones), and the length of its longest
/// suffix that begins any string.
std::pair<std::int32_t, std::int32_t> longest_at_end(std::vector<std::string> const& strings, std::string const& text) {
  std::int32_t found = -1, depth = 0;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    auto const& string = strings[i];
    if (text.ends_with(string) && (found < 0 || string.size() > strings[static_cast<std::size_t>(found)].size()))
      found = static_cast<std::int32_t>(i);
    for (std::size_t n = 1; n <= string.size(); ++n)
      if (text.ends_with(string.substr(0, n))) depth = std::max(depth, static_cast<std::int32_t>(n));
  }
  return {found, depth};
}

}  // namespace

TEST_CASE("a byte matcher finds exactly what a search in the text finds", "[byte_matcher]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> strings;
    for (auto n = random() % 6; n > 0; --n) {
      strings.push_back(random_string(random, 4));
      if (random() % 8 == 0) strings.back().back() = static_cast<char>(0xFF);
    }
    ByteMatcher const matcher(strings);
    auto state = ByteMatcher::root;
    CHECK((matcher.string(state) == -1 && matcher.depth(state) == 0 && !ByteMatcher::ends(state)));
    std::string text;
    for (int i = 0; i < 20; ++i) {
      text.push_back(random() % 8 == 0 ? static_cast<char>(0xFF) : "abcd"[random() % 4]);
      state = matcher.next(state, text.back());
      auto const [found, depth] = longest_at_end(strings, text);
      CHECK(matcher.string(state) == found);
      CHECK(ByteMatcher::ends(state) == (found >= 0));
      CHECK(matcher.depth(state) == depth);
    }
  }
  CHECK_THROWS_WITH(ByteMatcher(std::vector<std::string>{"a", ""}), "sluice: stop string = 1: is empty");
  ByteMatcher const none;
  CHECK(none.next(ByteMatcher::root, 'a') == ByteMatcher::root);
}

TEST_CASE("a byte matcher of long strings that overlap finds the same", "[byte_matcher]") {
  std::mt19937_64 random(2);
  auto const draw = [&](std::size_t size, std::size_t letters) {
    std::string text;
    while (text.size() < size) text.push_back(static_cast<char>(0xE0 + random() % letters));  // negative as char
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    auto const letters = 1 + static_cast<std::size_t>(round) % 4;
    std::vector<std::string> strings;
    for (auto n = 1 + random() % 6; n > 0; --n) {
      strings.push_back(draw(1 + random() % 60, letters));
      if (random() % 2 == 0) strings.push_back(strings.back().substr(random() % strings.back().size()));
    }
    if (round % 2 == 0) {  // every byte: too many for a table
      auto& every = strings.emplace_back();
      for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
    }
    auto text = draw(40, letters);
    for (auto const& string : strings) text += string + draw(random() % 3, letters);  // so that all come
    ByteMatcher const matcher(strings);
    auto state = ByteMatcher::root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      state = matcher.next(state, text[i]);
      auto const [found, depth] = longest_at_end(strings, text.substr(0, i + 1));
      REQUIRE((matcher.string(state) == found && matcher.depth(state) == depth));
    }
  }
}

TEST_CASE("a stop string of a megabyte is cheap", "[byte_matcher]") {
  std::string large;
  for (std::size_t i = 0; large.size() < std::size_t{1} << 20; ++i) large.push_back(static_cast<char>(i * i % 251));
  ByteMatcher const matcher(std::vector<std::string>{large, large + "x"});
  auto state = ByteMatcher::root;
  auto early = false;
  for (auto const byte : large) early = early || ByteMatcher::ends(state), state = matcher.next(state, byte);
  CHECK_FALSE(early);
  CHECK(matcher.string(state) == 0);
  CHECK(matcher.depth(state) == std::int32_t{1} << 20);
  CHECK(matcher.string(matcher.next(state, 'x')) == 1);
  // A table with a row for each of its bytes would take a gigabyte.
  CHECK(matcher.bytes() < large.size() * 14);
}

TEST_CASE("without stops nothing stops, and nothing is held back", "[stop_sequences]") {
  StopSequences const none;
  CHECK(none.size() == 0);
  TextStream stream(TokenBytes(std::vector<std::string>{"a", "b"}));
  CHECK(stream.append(std::vector<Token>{0, 1}) == "ab");
  for (auto const& rule : {none, StopSequences(StopOptions{})}) {
    auto const result = run_one({.size = 6}, 1, Processed{Greedy{.length = {.max = 5}}, rule});
    CHECK(result.hypotheses.at(0).stop == -1);
    CHECK(identical(result, run_one({.size = 6}, 1, Greedy{.length = {.max = 5}})));
  }
  Vocabulary const vocabulary{.size = 6, .eos = {1}};
  StopSequences const first({.tokens = {{3}}});
  CHECK(first.stop(first.next({}, 3), {std::vector<Token>{3}, 0, vocabulary}) == 0);  // after one token, immediately
  CHECK(first.stop(first.next({}, 4), {std::vector<Token>{4}, 0, vocabulary}) == -1);
}

TEST_CASE("a text is cut where its stop is, or the stop is refused", "[stop_sequences]") {
  TokenBytes const bytes(std::vector<std::string>{"", "", "", "ab", "c", "ca"});
  StopSequences const rule({.tokens = {{4, 3}, {3, 3}}, .strings = {"abc", "ac", "ca"}, .bytes = bytes});
  auto const output = [](std::vector<Token> tokens, std::int32_t stop) {
    Hypothesis h;
    h.tokens = std::move(tokens), h.stop = stop;
    return h;
  };
  CHECK(rule.text(output({5, 4, 3}, 0)) == "ca");
  CHECK(rule.text(output({5, 4, 3}, 0), IncludeStop::yes) == "cacab");
  CHECK(rule.text(output({4, 3, 4}, 2)) == "c");
  CHECK(rule.text(output({4, 3, 4}, 2), IncludeStop::yes) == "cabc");
  CHECK(rule.text(output({4, 3, 5}, 2), IncludeStop::yes) == "cabc");  // it ends within the last token
  CHECK(rule.text(output({4, 3}, -1)) == "cab");
  CHECK(rule.tokens(output({5, 4, 3}, 0)).size() == 1);
  CHECK(rule.tokens(output({4, 3, 4}, 2)).size() == 1);
  CHECK(rule.tokens(output({5, 5}, 3)).size() == 0);  // "ac" begins within the first
  for (auto const& wrong : {output({4, 3, 3}, 0), output({3}, 1), output({4, 4}, 0), output({5, 3, 4}, 4),
                            output({5, 3, 4}, 3), output({4, 3}, 5), output({}, 0), output({}, 2)}) {
    INFO("stop " << wrong.stop << " of " << wrong.tokens.size() << " tokens");
    CHECK_THROWS_AS(rule.text(wrong), std::invalid_argument);
  }
  auto const empty_first = [&] { return StopSequences({.strings = {"", "a"}, .bytes = bytes}); };
  CHECK_THROWS_WITH(empty_first(), "sluice: stops.strings[0] = \"\": is empty");
}
