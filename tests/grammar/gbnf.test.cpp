// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <grammar/answers.hpp>
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
    answers(grammar, one.yes, one.no);
  }
}

TEST_CASE("what llama.cpp's and xgrammar's tests say of GBNF and EBNF", "[gbnf]") {
  struct Case {
    std::string grammar;
    std::vector<std::string> yes, no;
  };
  auto const many = [](std::string const& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  std::vector<Case> const cases{
      // llama.cpp
      {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= number\nnumber ::= [0-9]+",
       {"42", "1+2+3+4+5", "123+456"},
       {"+", "/ 3", "1+2+3+4+5+", "12a45"}},
      {"root ::= expression\nexpression ::= term ws ((\"+\"|\"-\") ws term)*\n"
       "term ::= factor ws ((\"*\"|\"/\") ws factor)*\n"
       "factor ::= number | variable | \"(\" expression \")\" | function-call\nnumber ::= [0-9]+\n"
       "variable ::= [a-zA-Z_][a-zA-Z0-9_]*\n"
       "function-call ::= variable ws \"(\" (expression (\",\" ws expression)*)? \")\"\nws ::= [ \\t\\n\\r]?",
       {"42", "1*2*3*4*5", "x1+y2", "(a+b)*(c-d)", "func()", "f(g(x),h(y,z))", "a * (b + c) - d / e",
        "f(g(x), h(y, z))", "123+456*789-123/456+789*123-456/789+123*456-789/123+456*789-123/456+789*123-456"},
       {"+", "/ 3x", "x + + y", "a * / b", "func(,)", "func(x y)", "(a + b", "x + y)", "a + b * (c - d", "42 +",
        "func(", "func(x, y + 2", "a * (b + c) - d /", "f(g(x), h(y, z)"}},
      {"root ::= ... \"abc\" ...",
       {"abcabcabc", "aaaabcccc", "🔵🟠✅abc❌🟠🔵"},
       {"aaabcccc", "aaaaabcccc", "aaaabccc", "🔵🟠abc🟠🔵", "🔵🟠✅❌abc❌✅🟠🔵"}},
      {"root ::= cons+ vowel* cons? (vowel cons)*\nvowel ::= [aeiouy]\ncons ::= [bcdfghjklmnpqrstvwxyz]",
       {"yes", "no", "noyes", "crwth", "four", "bryyyy"},
       {"yess", "yesno", "forty", "catyyy"}},
      {"root ::= (\"0x\" [A-F0-9]{2} \" \"?){3,5}",
       {"0xFF 0x12 0xAB", "0xFF 0x12 0xAB 0x00 0x00"},
       {"", "0xFF", "0xFF 0x12", "0xFF 0x12 0xAB 0x00 0x00 0x00"}},
      {"root ::= ( [x]* )*", {"", "x", "xx"}, {"y", "yy"}},
      {"root ::= \"a\"{ 4}", {"aaaa"}, {"aaa"}},
      {"root ::= \"a\"{0,5000}", {"", many("a", 5000)}, {many("a", 5001)}},  // there: any number
      // refused there, as these begin with themselves
      {"root ::= \"a\" | root \"a\"", {"a", "aaa"}, {""}},
      {"root ::= asdf\nasdf ::= \"a\" | foo \"b\"\nfoo ::= \"c\" | asdf \"d\" | \"e\"",
       {"a", "cb", "eb", "adb", "cbdb"},
       {"c", "ad", "eb d"}},
      {"root ::= asdf\nasdf ::= \"a\" | foo \"b\"\nfoo ::= \"c\" | empty asdf \"d\" | \"e\"\nempty ::= \"blah\" | ",
       {"a", "adb", "blahadb", "blahadbdb", "blahblahadbdb"},
       {"blaha", "blahblahadb"}},
      // xgrammar
      {"\n\nroot::=\"a\"  \"b\" (\"c\"\"d\"\n\"e\") |\n\n\"f\" | \"g\"\n", {"abcde", "f", "g"}, {"ab", ""}},
      {"root ::= \"a\" ( ) \"b\"\n# at the end", {"ab"}, {"a b"}},
      {"root ::= \"a\" |\n         \"b\"\n    \"c\" |\nx ::= \"q\"", {"a", "bc", ""}, {"b", "q"}},
      {"root ::=\nx ::= root", {""}, {"x"}},
      {"root ::= [a-z] \"\\u0234\" \"\\U00000345\\xff\" [-A-Z] [--] [\\--\\]] \"\\?\\\"\\'\\/あc\" \"👀\" \"\"",
       {"z\u0234\u0345\u00FF--[?\"'/あc👀"},
       {"z"}},
      {"root ::= [\\n\\^\\$\\.\\*\\+\\?\\(\\)\\{\\}\\|\\/]+ \"\\a\\b\\f\\v\\e\\0\"",
       {std::string("^$.*+?(){}|/\n\a\b\f\v\x1B\0", 19)},
       {""}},
      {"root ::= [^] \"x\"",
       {"ax", "\nx",
        "é"
        "x"},
       {"x", "\xFFx"}},
      {"root ::= a.b a .b\na ::= \"1\"\nb ::= \"2\"\na.b ::= \"3\"\n", {"31x2", "3152"}, {"1x21x2"}},
      {"root ::= b {1, 2} \"c\" {2, -1} \"d\" {0} \"e\"{2 , }\nb ::= \"b\" (= \"c\" \"c\" | x)\nx ::= \"\"",
       {"bccee", "bbcccceee"},
       {"bcee", "bccde"}},
      {"root ::= rule {2, 3} \"d\"?\nrule ::= (\"a\" | [bc] {4,}) | \"\"",
       {"aaa", "abcbc", "bcbcbcbcbc", "bcbcbcbcbcbcbcb", "", "a", "d"},
       {"aaaa"}},
      {"root ::= rule1 | (rule1 rule1 rule1 rule3)+\nrule1 ::= rule2\nrule2 ::= [0-9]*\nrule3 ::= [a-z]",
       {"abc12312398014a", ""},
       {"a-"}},
      {"root ::= r1 [0-9]?\nr1 ::= r2 [0-9]? | r4 [0-9]?\nr2 ::= r3 [0-9]? | r2 [0-9]? | r1 [0-9]?\n"
       "r3 ::= r4 [0-9]? | r5 [0-9]?\nr4 ::= r5 [0-9]? | r6 [0-9]?\nr5 ::= r6 [0-9]? | r7 [0-9]? | r8 [0-9]?\n"
       "r6 ::= r7 [0-9]? | r1 [0-9]?\nr7 ::= r8 [0-9]? | r9 [0-9]?\nr8 ::= r9 [0-9]? | r7 [0-9]?\nr9 ::= [0-9]?",
       {"", "0", "0000000000"},
       {"x", "0x"}},
      {"root ::= rule1\nrule1 ::= \"{\" rule2 | \"\"\nrule2 ::= root \"}\"", {"", "{{{}}}"}, {"{", "{}{}", "{{}}}"}},
      {"root ::= \"ID-\" Regex(\"[0-9]{5}\") Regex(\".\")", {"ID-12345\n"}, {"ID-1234x", "ID-12345"}},
      {"root ::= Regex(\"hello.\", flags=\"i\")", {"HELLO!"}, {"hello\n", "hello"}},
      {"root ::= Substring(\"abc\", \"de\", \"fg\")",
       {"", "abc", "de", "abcde", "defg", "abcdefg"},
       {"ab", "cde", "abcfg"}},
      {"root ::= TagDispatch(\n  (\"tag1\", r1), (\"tag2\", r2),\n  excludes = (\"abc\", \"def\"), loop_after_dispatch "
       "= false\n)\n"
       "r1 ::= \"a\"\nr2 ::= \"b\"",
       {"", "x ta", "x tag1a", "tag2b"},
       {"tag1", "tag1b", "tag1a ", "abc", "xdeftag1a"}},
      {"root ::= TagDispatch((\"t\", r)) \"!\"\nr ::= \"a\"", {"!", "xta!", "tata!!"}, {"t!", "xtb!", "x"}},
      {"root ::= Regex(\"b\")\nRegex ::= \"a\"", {"ab"}, {"b"}},  // a rule of that name
  };
  for (auto const& one : cases) {
    INFO(one.grammar);
    auto const grammar = Grammar::from_gbnf(one.grammar);
    answers(grammar, one.yes, one.no);
  }
}

TEST_CASE("grammars that are given are rules of others", "[gbnf]") {
  auto const brackets = Grammar::from_gbnf("root ::= \"(\" root* \")\"");
  auto const maybe = Grammar::from_regex("x{0,3}");
  auto const schema = Grammar::from_json_schema(R"({"type": "array", "items": {"type": "integer"}, "maxItems": 2})");
  auto const whole = Grammar::from_gbnf("root ::= maybe s maybe | root \"-\" b | b \"=\" b{2,3}", {},
                                        {{"b", brackets}, {"maybe", maybe}, {"s", schema}, {"unused", {}}});
  for (auto const* const text : {"[]", "xxx[1,2]x", "[1]-()-(())", "()=()(())", "()=()()()-()"}) {
    CAPTURE(text);
    CHECK(whole.matches(text));
  }
  for (auto const* const text : {"", "xxxx[1]", "[1,2,3]", "[1]-x", "()=()", "()=()()()()", "()=(()"}) {
    CAPTURE(text);
    CHECK_FALSE(whole.matches(text));
  }
  auto const either = Grammar::from_gbnf("root ::= w | m", {}, {{"w", whole}, {"m", maybe}});
  CHECK(either.matches("xx"));
  CHECK(either.matches("[1]-()"));
  CHECK_FALSE(either.matches("xxxx"));
  CHECK(Grammar::from_gbnf("root ::= any \"!\"", {}, {{"any", Grammar()}}).matches("\xFFx!"));
  CHECK(Grammar::from_gbnf("", {}, {{"root", brackets}}).matches("(())"));
  // The same texts, whether rules are compiled before or with the others.
  std::mt19937_64 random(7);
  std::vector<std::string> all{""};
  for (std::size_t i = 0; i < all.size() && all[i].size() < 5; ++i)
    for (auto const c : {'a', 'b'}) all.push_back(all[i] + c);
  int compiled = 0;
  for (int round = 0; round < 200; ++round) {
    auto const inner = gbnf(RandomGrammar(random, "ab").rules());
    std::string const outer = "root ::= \"a\" g root? | g{0,2} \"b\" | g | \"b\" g \"a\" g";
    INFO(inner);
    if (!problem(inner).empty()) continue;
    ++compiled;
    std::string own = "\n" + inner;
    for (auto at = own.find("root"); at != std::string::npos; at = own.find("root", at + 1)) own.replace(at, 4, "g");
    auto const given = Grammar::from_gbnf(outer, {}, {{"g", Grammar::from_gbnf(inner)}});
    auto const written = Grammar::from_gbnf(outer + own);
    for (auto const& one : all) {
      INFO(one);
      REQUIRE(given.matches(one) == written.matches(one));
    }
  }
  CHECK(compiled > 100);
  auto const why = [&](std::string const& text, Grammar::Named const& grammars, GrammarLimits const& limits = {}) {
    try {
      (void)Grammar::from_gbnf(text, limits, grammars);
    } catch (std::invalid_argument const& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(contains(why("root ::= a\na ::= \"b\"", {{"a", brackets}}), "line 2, column 1: the rule a is a grammar"));
  CHECK(contains(why("root ::= a", {{"a", brackets}, {"a", maybe}}), "grammars = a: comes twice"));
  CHECK(contains(why("root ::= a", {{"a", maybe.behind_space()}}), "grammars = a: is behind a space"));
  CHECK(contains(why("root ::= a root | \"b\"", {{"a", maybe}}), "grammars = a: may be empty and stands before"));
  CHECK(contains(why("root ::= a", {{"a", schema}}, {.size = 5}), "limits.size = 5"));
}

TEST_CASE("random rules, whatever they begin with, accept what a recogniser that knows them accepts", "[gbnf]") {
  std::mt19937_64 random(54);
  std::vector<std::string> all{""};
  for (std::size_t i = 0; i < all.size() && all[i].size() < 5; ++i)
    for (auto const c : {'a', 'b'}) all.push_back(all[i] + c);
  int compiled = 0;
  for (int round = 0; round < 600; ++round) {
    auto const rules = RandomGrammar(random, "ab").rules();
    auto const text = gbnf(rules);
    INFO(text);
    auto const said = problem(text);
    if (!said.empty()) {
      REQUIRE(contains(said, "no text obeys"));
      for (auto const& one : all) REQUIRE_FALSE(recognises(rules, one));
      continue;
    }
    ++compiled;
    auto const grammar = Grammar::from_gbnf(text);
    for (auto const& one : all) {
      INFO(one);
      REQUIRE(grammar.matches(one) == recognises(rules, one));
    }
  }
  CHECK(compiled > 300);  // others have no text
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
      {"my.root = \"a\"", "column 3: ::= is missing: a rule's name has letters, digits, - and _"},
      {"my.root ::= \"a\"", "there is no rule root"},
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
      {"root ::= \"a\" root", "grammar, line 1, column 1: root: no text obeys this rule"},
      {"root ::= root \"a\"", "line 1, column 1: root: no text obeys this rule"},
      {std::string("root ::= \"a\0\"", 13) + " <", "column 15: > is missing"},
      {"root ::= \"a\" b ::= \"c\"", "column 16: a rule cannot go on with :: expected an element, a repetition, |"},
      {"root ::= \"a\" é", "column 14: a rule cannot go on with é: expected an element"},
      {"root ::= (\"a\"\nb ::= \"c\"", "line 2, column 1: ) is missing"},
      {"root ::= \"a\" (=\"b\") \"c\"", "column 21: expected the next rule"},
      {"root ::= \"a\" (=x)", "the rule x is not defined"},
      {"root ::= [\\d]", "column 11: the escape \\d is not supported: expected the ranges"},
      {"root ::= \"\\.\"", "column 11: an unknown escape: expected one of"},
      {"root ::= []", "column 10: an empty class"},
      {"::= \"a\"", "column 1: a rule's name is missing"},
      {"root[max_tokens=3] ::= \"a\"",
       "column 6: [max_tokens] is not supported: expected capture; lark_grammar() has others"},
      {"root[capture=x] ::= \"a\"", "column 14: expected a name in quotation marks"},
      {"root[capture=\"\"] ::= \"a\"", "column 6: capture: a name is not empty"},
      {"root[capture ::= \"a\"", "column 14: expected ]"},
      {"root ::= Regex(\"(\")", "column 15: Regex, line 1"},
      {"root ::= Regex(\"a\", json_string = true)", "json_string = true is not supported"},
      {"root ::= Regex(\"a\", \"b\")", "expected one text"},
      {"root ::= Regex(\"a\", flags = \"m\")", "column 29: expected a text of the flags"},
      {"root ::= Regex(\"a\", x = 1)", "column 21: x is no argument of Regex"},
      {"root ::= Token(a)", "column 16: expected the number of a token"},
      {"root ::= Token()", "expected the number of a token"},
      {"root ::= Substring(1)", "column 20: expected a text"},
      {"root ::= TagDispatch((\"\", r))\nr ::= \"a\"", "line 1, column 22: expected a pair of a text, not empty"},
      {"root ::= TagDispatch((\"t\", r))", "line 1, column 28: the rule r is not defined"},
      {"root ::= TagDispatch(\"t\", r)\nr ::= \"a\"", "line 1, column 22: expected a pair"},
      {"root ::= TagDispatch((\"t\" r))", "line 1, column 27: expected , or )"},
      {"root ::= TagDispatch((\"t\", r), stop=true)\nr ::= \"a\"", "column 32: stop is no argument of TagDispatch"},
      {"root ::= TagDispatch((\"tag\", r), excludes=(\"ta\"))\nr ::= \"a\"", "ta begins a tag, tag"},
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
