// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/lark.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <grammar/mask_comparison.hpp>
#include <grammar/random_grammar.hpp>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

struct Example {
  std::string_view text;
  std::vector<std::string_view> accepted, refused;
};

std::string why(std::string_view text, JsonSchemaOptions const& options = tag_json()) {
  try {
    (void)lark_grammar(text, options);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "accepted";
}

/// A random grammar with rules, in Lark's syntax.
std::string lark(Part const& part) {
  std::string out;
  auto const name = [](int number) { return number == 0 ? std::string("start") : "r" + std::to_string(number); };
  switch (part.kind) {
    case Part::literal: return '"' + part.text + '"';
    case Part::letters: return "/[" + part.text + "]/";
    case Part::rule: return name(part.number);
    case Part::sequence:
      for (auto const& one : part.parts) out.append(lark(one)).append(" ");
      return "(" + out + ")";
    case Part::choice:
      for (auto const& one : part.parts) out.append(out.empty() ? "" : " | ").append(lark(one));
      return "(" + out + ")";
    case Part::repeat:
      out = "(" + lark(part.parts[0]) + "){" + std::to_string(part.minimum) + ",";
      return out + (part.maximum < 0 ? "" : std::to_string(part.maximum)) + "}";
  }
  return out;
}

/// All texts of these letters up to a length.
std::vector<std::string> texts(std::string_view letters, std::size_t most) {
  std::vector<std::string> out{""};
  for (std::size_t i = 0; i < out.size() && out[i].size() < most; ++i)
    for (auto const c : letters) out.push_back(out[i] + c);
  return out;
}

}  // namespace

TEST_CASE("Lark: what each construct accepts", "[grammar]") {
  std::vector<Example> const examples{
      {"start: \"a\" | \"b\"i c\nc: /[0-9]+/ X?\nX: \"x\"..\"z\"",
       {"a", "b1", "B12", "b1y"},
       {"", "A", "b", "b1w", "ab1"}},
      {"expr: expr \"+\" term | term\nstart: expr\nterm: term \"*\" factor | factor\n"
       "factor: \"(\" expr \")\" | NUMBER\nNUMBER: /[0-9]+/\n%ignore \" \"",
       {"1+2*(3+4)", "1 + 2 * ( 3 + 4 )  ", "(1+2)*3*4+5"},
       {"", "1+", " 1", "12 3", "(1"}},
      {"%import common (WS, ESCAPED_STRING)\n%import common.SIGNED_NUMBER -> N\n?start: value\n"
       "?value: object | array | ESCAPED_STRING | N | \"true\" -> yes\n  | \"null\"\n"
       "array  : \"[\" [value (\",\" value)*] \"]\"\n"
       "object : \"{\" [pair (\",\" pair)*] \"}\"   // a comment\npair   : ESCAPED_STRING \":\" value # "
       "another\n%ignore WS",
       {"{\"a\": [1, -2.5e3, {}], \"b\" : null}", "[[[]]]", "\"a\\\"b\"", "true\n"},
       {"{\"a\": [1, ]}", "[1 2]", "\"a\n\"", "yes"}},
      {"start: a~2..3 b{2} [c]\na: \"a\"\nb: \"b\"\nc: %json {\"type\": \"integer\", \"minimum\": 0} <|end|>",
       {"aabb", "aaabb", "aabb5<|end|>"},
       {"abb", "aabbb", "aabb5", "aabb<|end|>"}},
      {"start: \"x\"{,2} \"y\"{1,} \"z\"~2", {"yzz", "xxyyyzz"}, {"xxxyzz", "zz", "yzzz"}},
      {"start: A | B\nA: /[a-c]*/ & ~/.*ab.*/\nB: \"ab\" | A & \"q\"", {"", "acb", "cba", "ab"}, {"cab", "abc", "q"}},
      {"start: head \"=foo>\"\nhead[lazy]: T \"<f\"\nT: /(.|\\n)*/",
       {"x\n<f=foo>", "<f=foo>"},
       {"<f<f=foo>", "x=foo>"}},
      {"start: w \"b\"\nw[suffix=\"<e>\"]: /.*/", {"q<e>b", "<<e>b"}, {"q<e>zb", "<e><e>b", "qb"}},
      {"start: s \"<e>\" \"b\"\ns[stop=\"<e>\"]: /.*/", {"q<e>b", "<<e>b", "<e>b"}, {"q<e>zb", "<e><e>b", "qb"}},
      {"start: s \"b\"\ns[stop=/[<>]+/]: /a*|<q/", {"b", "aab"}, {"<qb", "a<b"}},
      {"start: s /.+/\ns[max_chars=3]: /é*/", {"ééé-", "é", "éééé"}, {"", "\xc3"}},
      {"start: s \"-\"\ns[max_chars=2]: A & /.{2,}|b/\nA: /[ab]*/", {"b-", "ab-"}, {"a-", "aaa-", "-"}},
      {"start: \"A\" %regex {\"substring_words\": \"foo bar. é\"} \"B\"",
       {"AB", "AfooB", "Abar. éB", "A B", "Afoo bar. éB"},
       {"AoB", "AfoB", "Afoo foo"}},
      {"start: S\nS: \"A\" %regex {\"substring_chunks\": [\"ab\", \"c\"]} \"B\"",
       {"AabB", "AcB", "AabcB"},
       {"AaB", "AbcB"}},
      {"start: /./s /[^a]/i /a\\/b/ \"\\u00e9\\x41\\n\\\"\"",
       {"\nba/b\xc3\xa9"
        "A\n\"",
        "xZa/b\xc3\xa9"
        "A\n\""},
       {"xAa/b\xc3\xa9"
        "A\n\"",
        "xa/b\xc3\xa9"
        "A\n\""}},
      {"start:\n  | \"a\"  // nothing, or a\n\n  | (\n \"b\"\n | \"c\" )\n!x.2: \"q\"",
       {"", "a", "b", "c"},
       {"q", "bc"}},
      {"%llguidance {\"ignore_once\": true, \"allow_initial_skip\": true, \"no_forcing\": true}\nstart: \"a\" \"b\"\n"
       "%ignore \" \" | \"-\"",
       {"ab", " a-b "},
       {"  ab", "a--b", "ab- "}},
      {"start: C\n%import common.C_COMMENT -> C", {"/**/", "/*a*b**/"}, {"/*/", "/**/a*/", "/* "}},
      {"a: b \"x\" | \"1\"\nb: c \"y\" | \"2\"\nc: a \"z\" | b \"w\" | \"3\"\nstart: a",
       {"1", "1zyx", "2x", "3yx", "2wyx", "1zywyx"},
       {"3zyx", "1zwwx", "2wx", "", "x"}},
      {"start: X? start \"b\" | \"c\"\nX: \"x\"", {"c", "cb", "xcb", "xcbb", "xxcbb"}, {"xc", "xxcb"}},
      {"start: start start | \"a\" | start", {"a", "aaaa"}, {"", "b"}},
      {"start: (start \"-\")* \"a\"", {"a", "a-a", "a-a-a"}, {"", "-a", "aa"}}};
  for (auto const& [text, accepted, refused] : examples) {
    INFO(text);
    auto const grammar = lark_grammar(text);
    for (auto const one : accepted) {
      INFO(one);
      CHECK(grammar.matches(one));
    }
    for (auto const one : refused) {
      INFO(one);
      CHECK_FALSE(grammar.matches(one));
    }
  }
}

TEST_CASE("Lark: random rules, left-recursive ones among them, accept what a recogniser that knows them accepts",
          "[grammar]") {
  std::mt19937_64 random(54);
  auto const all = texts("ab", 5);
  int compiled = 0;
  for (int round = 0; round < 400; ++round) {
    auto const rules = RandomGrammar(random, "ab").rules();
    std::string text;
    for (std::size_t r = 0; r < rules.size(); ++r)
      text.append(r == 0 ? "start" : "r" + std::to_string(r)).append(": ").append(lark(rules[r])).append("\n");
    INFO(text);
    auto const said = why(text);
    if (said != "accepted") {
      REQUIRE(said.find("no text obeys") != std::string::npos);
      for (auto const& one : all) REQUIRE_FALSE(recognises(rules, one));
      continue;
    }
    ++compiled;
    auto const grammar = lark_grammar(text);
    for (auto const& one : all) {
      INFO(one);
      REQUIRE(grammar.matches(one) == recognises(rules, one));
    }
  }
  CHECK(compiled > 200);  // others have no text
}

TEST_CASE("Lark: max_tokens counts whole tokens, and every mask leaves a way to the end", "[grammar]") {
  struct Case {
    std::string_view before, rule, after;  // the rule with its attributes
    std::string_view means;                // its texts, as an expression
  };
  std::vector<Case> const cases{{"a?", ": /.*/", "", "[^\n]*"},
                                {"", ": /(ab|b)+/", "a*", "(ab|b)+"},
                                {"b*", ", suffix=\"<\": /.*/", "b?", "[^\n<]*<"},
                                {"", ", lazy: /a*b/", ".{0,2}", "a*b"},
                                {"(ab)?", ", stop=\"<\": /[ab]*/", "<", "[ab]*"},
                                {"a", ", max_chars=3: /[ab]{2,9}/", "b?", "[ab]{2,3}"},
                                {"", ": /\u00e9*/", "a", "\u00e9*"}};
  std::vector<std::string> const pieces{"a",  "b",  "ab",   "ba",   "abb",      "<",       "a<",
                                        "<b", "\n", "\xc3", "\xa9", "\xa9\xc3", "\xc3\xa9"};
  std::mt19937_64 random(13);
  Comparisons all;
  std::map<std::pair<std::string_view, std::string>, bool> known;
  std::set<std::string> patterns;
  auto const fits = [&](std::string_view pattern, std::string const& text) {
    auto const [it, fresh] = known.try_emplace({pattern, text}, false);
    if (fresh) it->second = Grammar::from_regex(pattern).matches(text);
    return it->second;
  };
  for (int round = 0; round < rounds(60); ++round) {
    auto const& [before, rule, after, means] = cases[static_cast<std::size_t>(round) % cases.size()];
    auto const most = static_cast<std::size_t>(random() % 4);
    auto tokens = pieces;
    std::ranges::shuffle(tokens, random);
    tokens.resize(6);
    tokens.emplace_back();
    std::vector<std::string> letters;  // a name for each token: what is compared are sequences of tokens
    for (std::size_t i = 0; i < tokens.size(); ++i) letters.emplace_back(1, static_cast<char>('A' + i));
    auto const text = "start: B t A\nB: /(" + std::string(before) + ")/\nA: /(" + std::string(after) +
                      ")/\nt[max_tokens=" + std::to_string(most) +
                      (rule[0] == ':' ? "]" + std::string(rule) : std::string(rule).insert(rule.find(':'), "]"));
    INFO(text);
    std::string_view const both = *patterns.insert("(" + std::string(before) + ")(" + std::string(after) + ")").first;
    auto const complete = [&](std::string const& sequence) {
      auto const spelt = [&](std::size_t first, std::size_t last) {
        std::string out;
        for (auto i = first; i < last; ++i) out += tokens[static_cast<std::size_t>(sequence[i] - 'A')];
        return out;
      };
      for (std::size_t i = 0; i <= sequence.size(); ++i)
        for (auto j = i; j <= sequence.size() && j - i <= most; ++j)
          if (fits(before, spelt(0, i)) && fits(means, spelt(i, j)) && fits(after, spelt(j, sequence.size())))
            return true;
      // Nothing counts where it is empty.
      return fits(means, "") && fits(both, spelt(0, sequence.size()));
    };
    auto const grammar = lark_grammar(text);
    CHECK_THROWS_AS(grammar.matches("a"), std::invalid_argument);
    CHECK_THROWS_AS(grammar.behind_space(), std::invalid_argument);
    try {
      Structure const structure(grammar, TokenTrie(TokenBytes(tokens), vocabulary_of(tokens)));
      ByTrying trying(complete, letters);
      Comparison comparison{structure, trying, letters, 2};
      comparison.compare(structure.start(), "", 2);
      ++all.compared, all.sets += comparison.sets;
    } catch (std::invalid_argument const& e) {
      ++all.refused;
      std::string_view const said = e.what();
      INFO(said);
      REQUIRE(said.find("t[max_tokens=" + std::to_string(most) + "]: ") != std::string_view::npos);
      ByTrying trying([&](std::string const& sequence) { return complete(sequence); }, letters);
      CHECK(trying.fewest("", 4) == far);
    }
  }
  INFO(all.report());
  CHECK(all.compared > rounds(60) / 3);
  CHECK(all.refused > 0);
}

TEST_CASE("Lark: max_tokens where more tokens differ than there are bytes to name them", "[grammar]") {
  std::vector<std::string> tokens;
  std::string text = "start: t \"!\"\nt[max_tokens=2]: /";
  for (auto c = 'a'; c <= 't'; ++c) tokens.emplace_back(1, c), text.append({c, '?'});
  tokens.emplace_back("!"), tokens.emplace_back();
  ByTrying trying(
      [](std::string const& one) {
        return !one.empty() && one.find('!') + 1 == one.size() && one.size() <= 3 &&
               (one.size() < 3 || one[0] < one[1]);
      },
      tokens);
  Structure const structure(lark_grammar(text + "/"), TokenTrie(TokenBytes(tokens), vocabulary_of(tokens)));
  Comparison{structure, trying, tokens, 2}.compare(structure.start(), "", 2);
}

TEST_CASE("Lark: what is ignored may stand behind each lexeme, and nowhere else", "[grammar]") {
  auto const lark = lark_grammar("start: A b* (\"x\" | /yz?/)?\nb: \"b\" \"b\"\nA: \"a\" \"a\"?\n%ignore \" \"");
  auto const gbnf =
      Grammar::from_gbnf("root ::= \"a\" \"a\"? w b* ((\"x\" | \"y\" \"z\"?) w)?\nb ::= \"b\" w \"b\" w\nw ::= \" \"*");
  for (auto const& one : texts("abxyz ", 5)) {
    INFO(one);
    REQUIRE(lark.matches(one) == gbnf.matches(one));
  }
}

TEST_CASE("Lark: errors say where, and what was expected", "[grammar]") {
  std::vector<std::pair<std::string_view, std::string_view>> const wrong{
      {"", "line 1, column 1: there is no rule start"},
      {"start: x\nx: x", "no text obeys this rule"},
      {"start: \"a\" x", "line 1, column 12: x is not defined"},
      {"start \"a\"", "line 1, column 7: expected :"},
      {"start: \"a\nb", "line 1, column 8: expected a \" at the end"},
      {"start: /a\nb", "line 1, column 8: expected a / at the end"},
      {"start: /[a/", "line 1, column 8: /[a/, line 1, column 1: [ without ]"},
      {"start: A\nA: \"a\" A", "line 2, column 8: A contains itself"},
      {"start: A\nA: b\nb: \"c\"", "line 2, column 4: b is a rule"},
      {"start: A\nA: %json {}", "%json: a terminal has none"},
      {"start: A\nA: <x>", "<x>: a terminal has no tokens"},
      {"start: A\nA: \"a\" ~\"b\"", "line 2, column 8: & and ~ are supported at the top"},
      {"start: (\"a\"", "line 1, column 12: expected | or )"},
      {"start: [\"a\"", "line 1, column 12: expected | or ]"},
      {"start: \"ab\"..\"c\"", "column 8: a range is of characters"},
      {"start: \"a\"..\"\"", "column 13: a range is of characters"},
      {"start: \"b\"..\"a\"", "last character comes before"},
      {"start[temperature=3]: \"a\"",
       "column 7: [temperature] is not supported: expected capture, lazy, suffix=, stop=, max_to"},
      {"start[max_tokens]: \"a\"", "column 17: expected ="},
      {"start[capture=x]: \"a\"", "column 15: expected a name in quotation marks"},
      {"start[capture, suffix=/a/]: \"a\"", "column 23: [capture, suffix]: a suffix that is left out"},
      {"start[max_tokens=3]: x\nx: \"a\"", "x is a rule: a terminal has none within"},
      {"start[max_tokens=x]: \"a\"", "a number is missing"},
      {"start[stop=\"\"]: \"a\"", "column 12: stop may be empty"},
      {"start[stop=\"a\", suffix=\"b\"]: \"a\"", "column 17: [suffix, stop]: a rule ends by one of them"},
      {"start[lazy: \"a\"", "expected , or ]"},
      {"start: @x", "column 8: @x: no grammar of that name is given"},
      {"start: A\nA: @x", "line 2, column 4: @x: a terminal has no grammars within"},
      {"start: %lark {}", "expected %json or %regex"},
      {"%import common.X\nstart: \"a\"", "column 16: common.X is not known: expected one of DIGIT, HEXDIGIT"},
      {"%import python.NAME", "expected common"},
      {"%import common(WS", "expected , or )"},
      {"%declare A", "%declare is not supported: expected a rule, a terminal, %ignore"},
      {"Foo: \"a\"", "Foo: a rule's name is lower case"},
      {"start: \"a\"{3,2}", "less than its minimum"},
      {"start: \"a\"{x}", "a number is missing"},
      {"start: %json {\"type\": 3}", "column 14: schema, line 1, column 10"},
      {"start: %json []", "expected {"},
      {"start: t{a}", "parameters of rules are not supported"},
      {"start: t::_", "parameters of rules are not supported"},
      {"start: \"a\" )", "column 12: expected the end of the line, not )"},
      {"start: /a/x", "column 11: the flag x is not supported"},
      {"start: \"a\"\nstart: \"b\"", "line 2, column 1: start is defined twice"},
      {"start: \"\\q\"", "column 9: an unknown escape"},
      {"start: %regex {}", "expected substring_chunks"},
      {"%llguidance {\"x\": true}", "x is not supported"},
      {"%llguidance {\"ignore_once\": 1}", "ignore_once: must be true or false"},
      {"start: <", "> is missing"}};
  for (auto const& [text, message] : wrong) {
    INFO(text);
    auto const said = why(text);
    INFO(said);
    CHECK(said.find(message) != std::string::npos);
  }
  std::string nested = "start: A\n";
  for (char c = 'A'; c < 'Z'; ++c)
    nested += std::string(1, c) + ": " + static_cast<char>(c + 1) + " " + static_cast<char>(c + 1) + "\n";
  JsonSchemaOptions options;
  options.limits.size = 1000;
  CHECK(why(nested + "Z: \"a\"", options).find("limits.size = 1000") != std::string::npos);
  options.limits.nesting = 20;
  CHECK(why(nested + "Z: \"a\"", options).find("limits.nesting = 20") != std::string::npos);
}

TEST_CASE("Lark: damaged grammars are refused or read, and nothing else", "[grammar]") {
  std::string const whole =
      "%import common (WS, CNAME)\nstart: h | b~1..2 -> x\nh[lazy]: /a*/ \"q\"\n"
      "b: b \"+\"i [A] <|t|> %json {\"type\": \"null\"} | C\n"
      "A: /[a-z]+/i & ~\"q\"..\"r\"\nC: %regex {\"substring_chars\": \"ab\"}\n%ignore WS\n%llguidance {}";
  std::mt19937_64 random(3);
  auto const draw = [&](std::size_t below) { return std::size_t{random() % below}; };
  int read = 0;
  for (int round = 0; round < 1000; ++round) {
    auto text = whole;
    for (auto changes = 1 + draw(3); changes > 0; --changes) {
      auto const at = draw(text.size());
      if (draw(3) == 0) text.erase(at, 1 + draw(4));
      else if (draw(2) == 0) text.insert(at, 1, whole[draw(whole.size())]);
      else text[at] = whole[draw(whole.size())];
    }
    auto const said = why(text);
    read += said == "accepted" ? 1 : 0;
    if (said != "accepted" && said.find("sluice: ") != 0) FAIL(text << said);
  }
  CHECK(read > 20);
}
