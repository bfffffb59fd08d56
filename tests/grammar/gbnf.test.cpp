// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <grammar/random_grammar.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string problem(std::string const& text, GrammarLimits const& limits = {}) {
  try {
    (void)Grammar::from_gbnf(text, limits);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "";
}
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what GBNF says is what matches", "[gbnf]") {
  struct Case {
    std::string grammar;
    std::vector<std::string> yes, no;
  };
  std::vector<Case> const cases{
      {"root ::= \"a\" [b-d]? # comment\n", {"a", "ab", "ad"}, {"", "b", "ae", "abb"}},
      {"# first\r\n\r\nroot ::= x |\n y\r\nx ::= \"1\"\ny ::= (\n  \"2\" # two\n  \"3\"\n)", {"1", "23"}, {"2", "123"}},
      {R"g(root ::= "\"\\\n\t\r\x41\u00e9\U0001F600\[\]\-")g", {"\"\\\n\t\rAé😀[]-"}, {""}},
      {"root ::= [^\"\\\\\\x00-\\x1F]+", {"é😀b"}, {"", "a\"", "\\", "a\n", "\xC3", "\xED\xA0\x80", "\xFF"}},
      {"root ::= .{2,3}", {"ab", "é😀x", "\n\n"}, {"a", "abcd", "é"}},
      {"root ::= \"ab\"* \"c\"{2} \"d\"{1,} \"e\"{0,1}", {"ccd", "ababccdde"}, {"cd", "accd", "ccdee"}},
      {"root ::= [a\\-\\]x-] [-] []a-b]?", {"a-"}, {}},
      {"root ::= [ぁ-ゟ]+ | [a-]", {"ひらがな", "-", "a"}, {"カ", "aa"}},
      {"root ::= a-b-1\na-b-1 ::= \"\" | \"x\" a-b-1", {"", "x", "xxx"}, {"y"}},
      {"\xEF\xBB\xBFroot ::= dataType UPPER-CASE rule_123 _x\ndataType ::= \"int\"\nUPPER-CASE ::= \" \"\nrule_123 ::= "
       "\"x\"\n_x ::= \"\"",
       {"int x"},
       {"int"}},
      {"root ::= a_1.\na_1 ::= \"1\"", {"1.", "1x"}, {"1"}},
      {"root ::= \"(\" root* \")\"", {"()", "(()(()))"}, {"", "(", "())"}},
      {"root ::= e \"=\" e\ne ::= t (\"+\" t)*\nt ::= [0-9]+ | \"(\" e \")\"",
       {"1+2=(3)", "((1))=2+(2+2)"},
       {"1=", "(1=1)"}},
  };
  for (auto const& one : cases) {
    INFO(one.grammar);
    if (contains(one.grammar, "[]a")) {
      CHECK(contains(problem(one.grammar), "an empty class"));
      continue;
    }
    auto const grammar = Grammar::from_gbnf(one.grammar);
    for (auto const& text : one.yes) CHECK(grammar.matches(text));
    for (auto const& text : one.no) {
      CAPTURE(text);
      CHECK_FALSE(grammar.matches(text));
    }
  }
}

TEST_CASE("ambiguous grammars are read in a time that does not explode", "[gbnf]") {
  auto const twice = Grammar::from_gbnf("root ::= \"a\" s \"b\" | \"a\" t \"c\"\ns ::= root | \"\"\nt ::= root | \"\"");
  std::string text(200, 'a');
  for (int i = 0; i < 200; ++i) text += "bc"[i * 7 % 3 == 0 ? 1 : 0];
  CHECK(twice.matches(text));
  text.back() = 'a';
  CHECK_FALSE(twice.matches(text));
  auto const any = Grammar::from_gbnf("root ::= \"a\" | \"a\" root root | \"\"");
  CHECK(any.matches(std::string(60, 'a')));
  auto const nested = Grammar::from_gbnf("root ::= ((\"a\"*)*)* (\"\" | \"b\"*)*");
  CHECK(nested.matches("aaabbb"));
  // A set of places for each subset of the last twenty letters: too many, so the places are followed one by one.
  auto const wide = Grammar::from_gbnf("root ::= [ab]* \"a\" [ab]{20}");
  CHECK(wide.matches("babab" + std::string("a") + std::string(20, 'b')));
  CHECK_FALSE(wide.matches("bbbbb" + std::string(21, 'b')));
}

TEST_CASE("what is no grammar is refused, with its place", "[gbnf]") {
  std::vector<std::pair<std::string, std::string>> const cases{
      {"", "line 1, column 1: there is no rule root"},
      {"x ::= \"a\"", "there is no rule root"},
      {"root ::= y\n", "line 1, column 10: the rule y is not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule root is defined twice"},
      {"root = \"a\"", "line 1, column 6: ::= is missing"},
      {"my.root ::= \"a\"", "column 3: ::= is missing: a rule's name has letters, digits, - and _"},
      {"root ::= \"a", "line 1, column 12: ends in the middle"},
      {"root ::= [a", "line 1, column 12: ends in the middle"},
      {"root ::= [z-a]", "column 11: a range whose last character comes before its first"},
      {"root ::= (\"a\"", "line 1, column 14: ) is missing"},
      {"root ::= \"a\")", "line 1, column 13: a rule cannot go on with )"},
      {"root ::= *", "column 10: there is nothing to repeat"},
      {"root ::= \"a\"{3,2}", "column 13: a repetition of less than its minimum"},
      {"root ::= \"a\"{,2}", "column 14: a number is missing"},
      {"root ::= \"a\"{2", "} is missing"},
      {"root ::= \"a\"{99999999999999999999}", "column 14: more repetitions than limits.repetition"},
      {"root ::= \"\\q\"", "column 11: an unknown escape"},
      {"root ::= \"\\x4\"", "needs 2 hexadecimal digits"},
      {"root ::= \"\\uD800\"", "is no Unicode character"},
      {"root ::= \"\xFF\"", "column 11: is no UTF-8"},
      {"root ::= <think", "column 10: > is missing"},
      {"root ::= é", "a rule cannot go on with"},
      {"root ::= root \"a\" | \"b\"",
       "grammar, line 1, column 1: root: left-recursive: the rule begins with itself (root -> root)"},
      {"root ::= a\na ::= \"x\"? b \"c\"\nb ::= a | \"d\"",
       "grammar, line 2, column 1: a: left-recursive: the rule begins with itself (a -> b -> a)"},
      {"root ::= \"a\" root", "grammar, line 1, column 1: root: no text obeys this rule"},
      {std::string("root ::= \"a\0\"", 13) + " <", "column 15: > is missing"},
  };
  for (auto const& [grammar, why] : cases) {
    auto const what = problem(grammar);
    CAPTURE(grammar, what, why);
    CHECK(contains(what, why));
  }
}

TEST_CASE("huge and deep grammars are refused, or work", "[gbnf]") {
  CHECK(
      contains(problem("root ::= " + std::string(300, '(') + "\"a\"" + std::string(300, ')')), "limits.nesting = 200"));
  CHECK(contains(problem("root ::= " + std::string(100'000, '(')), "limits.nesting"));
  CHECK_FALSE(Grammar::from_gbnf("root ::= (((\"a\"{1000}){1000}){1000}){1000}").matches(std::string(20'000, 'a')));
  CHECK(contains(problem("root ::= \"" + std::string(11 << 20, 'a') + '"'), "limits.text"));
  CHECK(contains(problem("root ::= \"" + std::string(2 << 20, 'a') + '"'), "limits.size"));
  std::string empty = "e ::= \"\"", many = "root ::= \"a\"";  // copied where it is called
  for (int i = 0; i < 20'000; ++i) empty += "|\"\"", many += " e";
  CHECK(contains(problem(many + "\n" + empty), "limits.size"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20'000; ++i)
    chain += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + " | \"\"\n";
  chain += "r20000 ::= \"b\"";
  auto const grammar = Grammar::from_gbnf(chain);
  CHECK(grammar.matches("aaaa"));
  CHECK(grammar.matches(std::string(20'000, 'a') + "b"));
  CHECK_FALSE(grammar.matches("ab"));
  std::string calls = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) calls += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"a\"?\n";
  calls += "r3000 ::= \"b\" root?";
  CHECK(Grammar::from_gbnf(calls).matches("bbaaa"));
  CHECK(Grammar::from_gbnf("root ::= \"a\"{0,50000}").matches(std::string(50'000, 'a')));
}

TEST_CASE("many calls at the end of rules that return to many places are read in time", "[gbnf]") {
  auto const number = [](int i) { return std::to_string(i); };
  std::string text = "root ::= t \"x\"", rules;
  for (int i = 0; i < 500; ++i) text += " | t \"" + number(i) + "\"";
  text += "\nt ::= a0";
  for (int i = 1; i < 500; ++i) text += " | a" + number(i);
  for (int i = 0; i < 500; ++i)
    rules += "\na" + number(i) + " ::= \"b\"" + (i < 499 ? " | a" + number(i + 1) : "") + " (t \"q\")?";
  auto const grammar = Grammar::from_gbnf(text + rules + "\n");
  CHECK(grammar.matches("b17"));
  CHECK(grammar.matches("bbbqqx"));
  CHECK_FALSE(grammar.matches("bbqqx"));
  CHECK_FALSE(grammar.matches("b500"));
  CHECK_FALSE(grammar.matches("q"));
}

TEST_CASE("no damaged grammar does more than be refused", "[gbnf]") {
  std::mt19937_64 random(3);
  int read = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    RandomGrammar draw(random, "ab");
    auto text = gbnf(draw.rules());
    for (auto changes = draw.draw(1, 4); changes > 0; --changes) {
      auto const place = static_cast<std::size_t>(draw.draw(0, static_cast<int>(text.size()) - 1));
      static std::string const signs = "\"[]()|*+?{}:=\\x#\n r0a^-,\xC3\xA9";
      auto const sign = signs[static_cast<std::size_t>(draw.draw(0, static_cast<int>(signs.size()) - 1))];
      if (draw.draw(0, 1) == 0) text.erase(place, 1);
      else text.insert(place, 1, sign);
      if (text.empty()) break;
    }
    try {
      (void)Grammar::from_gbnf(text).matches("abab");
      ++read;
    } catch (std::invalid_argument const&) {
      ++refused;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 400);
}
