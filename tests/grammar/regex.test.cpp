// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <grammar/answers.hpp>
#include <grammar/random_grammar.hpp>
#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string problem(std::string const& pattern) {
  try {
    (void)Grammar::from_regex(pattern);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}

/// The syntax that both libraries share.
std::string pattern(Part const& part) {
  std::string out;
  switch (part.kind) {
    case Part::literal: return part.text.empty() ? "(?:)" : "(?:" + part.text + ")";
    case Part::letters: return '[' + part.text + ']';
    case Part::sequence:
      for (auto const& one : part.parts) out += pattern(one);
      return "(" + out + ")";
    case Part::choice:
      for (auto const& one : part.parts) out += (out.empty() ? "" : "|") + pattern(one);
      return "(?:" + out + ")";
    case Part::repeat: {
      auto const body = "(?:" + pattern(part.parts[0]) + ")";
      if (part.maximum < 0) return body + (part.minimum == 0 ? "*" : part.minimum == 1 ? "+" : "{2,}");
      return body + "{" + std::to_string(part.minimum) + "," + std::to_string(part.maximum) + "}";
    }
    case Part::rule: break;
  }
  return out;
}

}  // namespace

TEST_CASE("random expressions match what std::regex and a recogniser say", "[regex]") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 1500; ++round) {
    RandomGrammar draw(random, "ab");
    auto const part = draw.part(3, false);
    auto const text = pattern(part);
    INFO(text);
    auto const ours = Grammar::from_regex(text);
    std::regex const theirs(text);
    for (int number = 1; number < 128; ++number) {
      std::string word;  // all words of up to six letters
      for (int rest = number; rest > 1; rest /= 2) word += rest % 2 == 0 ? 'a' : 'b';
      CAPTURE(word);
      auto const found = ours.matches(word);
      REQUIRE(found == recognises({part}, word));
      if (round < 300) REQUIRE(found == std::regex_match(word, theirs));
    }
  }
}

TEST_CASE("RE2's syntax", "[regex]") {
  struct Case {
    std::string pattern;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {"a.c",
       {"abc", "aéc", "a😀c"},
       {"a\nc", "ac",
        "a\xC3"
        "c"}},
      {"(?s)a.c", {"a\nc"}, {}},
      {"(?i)aB[c-d]",
       {"ab"
        "C",
        "ABd"},
       {"abe"}},
      {"(?i:a)b", {"Ab", "ab"}, {"AB"}},
      {"\\d{3}-\\w+\\s\\D\\W\\S", {"123-a_9 x-."}, {"12-a x-.", "123-a x-"}},
      {"[[:alpha:]_][^[:space:]\\d]*", {"ab_", "_é"}, {"1", "a b", "a1"}},
      {"[\\d.]+|\\x41\\x{1F600}\\u00e9", {"1.2", "A😀é"}, {"a"}},
      {"^(?P<year>\\d{4})-(?<m>\\d\\d)$", {"2026-11"}, {"2026-1"}},
      {"\\Aab??c+?\\z", {"ac", "abcc"}, {"ab"}},
      {"\\Qa.b*\\E+", {"a.b*", "a.b***"}, {"aXb"}},
      {"a{,2}", {"a{,2}"}, {"aa"}},
      {"a{2}b{1,}", {"aab", "aabb"}, {"ab"}},
      {"[]a][^]]", {"]x", "ab"}, {"a]"}},
      {"[a\\-\\]^-]*", {"a-]^"}, {"b"}},
      {"", {""}, {"a"}},
      {"a||b", {"", "a", "b"}, {"ab"}},
      {"(|a)+b", {"b", "aab"}, {}},
      {"\\.\\*\\\\\\/", {".*\\/"}, {}},
      {"x*\\0", {std::string(1, '\0')}, {}},
      {"(?=.*b)[ab]{2}", {"ab", "bb", "ba"}, {"aa", "b"}},
      {"(?!ab)[ab]*c", {"c", "aac", "bac"}, {"abc", "ab"}},
      {"((?!ab).)*", {"", "ba", "aac"}, {"ab", "cab"}},
      {"(^a|b)c|d(e$|f)g?", {"ac", "bc", "de", "df", "dfg"}, {"deg", "c"}},
      {"(?i)é\\s", {"É\v", "é "}, {"e "}},
  };
  for (auto const& one : cases) {
    INFO(one.pattern);
    auto const grammar = Grammar::from_regex(one.pattern);
    answers(grammar, one.yes, one.no);
  }
}

TEST_CASE("where sets of places are too many, or limits small, each place is for itself", "[regex]") {
  for (auto const size : {80, 200, 1000, 1'000'000}) {
    INFO(size);
    auto const grammar = Grammar::from_regex("[ab]*a[ab]{30}", {.size = size});
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (auto length = random() % 60; length > 0; --length) text += random() % 2 == 0 ? 'a' : 'b';
      CHECK(grammar.matches(text) == (text.size() > 30 && text[text.size() - 31] == 'a'));
    }
  }
}

TEST_CASE("a class of Unicode matches its characters and no other bytes", "[regex]") {
  std::mt19937_64 random(9);
  auto const character = [&] {
    static constexpr char32_t tops[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    for (;;) {
      auto const c =
          static_cast<char32_t>(std::uniform_int_distribution<int>(0, static_cast<int>(tops[random() % 4]))(random));
      if (!detail::is_surrogate(c)) return c;
    }
  };
  auto const bytes = [](char32_t c) {
    std::string out;
    detail::append_utf8(out, c);
    return out;
  };
  for (int round = 0; round < 300; ++round) {
    auto low = character(), high = character();
    if (low > high) std::swap(low, high);
    auto const hex = [](char32_t c) {
      char out[16];
      std::snprintf(out, sizeof out, "\\x{%X}", static_cast<unsigned>(c));
      return std::string(out);
    };
    auto const in = Grammar::from_regex("[" + hex(low) + "-" + hex(high) + "]");
    auto const not_in = Grammar::from_regex("[^" + hex(low) + "-" + hex(high) + "]");
    for (int i = 0; i < 40; ++i) {
      auto const c = i == 0 ? low : i == 1 ? high : character();
      CHECK(in.matches(bytes(c)) == (c >= low && c <= high));
      CHECK(not_in.matches(bytes(c)) == !(c >= low && c <= high));
      auto damaged = bytes(c);
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
      auto const [d, size] = detail::read_utf8(damaged);
      auto const whole = size == damaged.size();
      CHECK(in.matches(damaged) == (whole && d >= low && d <= high));
    }
  }
}

TEST_CASE("what is no expression, or looks around, is refused with its place", "[regex]") {
  std::vector<std::pair<std::string, std::string>> const cases{
      {"(a", "pattern, line 1, column 1: ( without )"},
      {"a)", "column 2: ) without ("},
      {"[a", "column 1: [ without ]"},
      {"[b-a]", "column 2: a range whose last"},
      {"*a", "column 1: there is nothing to repeat"},
      {"a**", "column 3: a repetition of a repetition"},
      {"a{2,1}", "less than its minimum"},
      {"a{1000000001}", "more repetitions than limits.repetition = 1000000000"},
      {"(?<!a)b", "column 1: looking behind"},
      {"(a)\\1", "column 4: back-references"},
      {"(?P=x)", "back-references"},
      {"\\bword", "column 1: an escape that is not supported"},
      {"\\pL", "an escape that is not supported"},
      {"a^b", "no text obeys"},
      {"a$b", "no text obeys"},
      {"(?m)a", "a flag that is not supported"},
      {"[[:foo:]]", "an unknown class of characters"},
      {"a\\", "column 2: ends in the middle"},
      {"\\x{110000}", "is no Unicode character"},
      {"\xC3", "is no UTF-8"},
      {std::string(500, '(') + std::string(500, ')'), "limits.nesting"},
      {"[^\\x{0}-\\x{10FFFF}]", "no text obeys"},
  };
  for (auto const& [pattern, why] : cases) {
    auto const what = problem(pattern);
    CAPTURE(pattern, what, why);
    CHECK(what.find(why) != std::string::npos);
  }
}
