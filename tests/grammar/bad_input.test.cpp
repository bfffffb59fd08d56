// SPDX-License-Identifier: Apache-2.0
// Endless, huge, deeply nested, ambiguous or broken input gives an error with its position, or works; nothing hangs or
// exhausts memory.
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <grammar/mask_comparison.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string times(std::string const& text, int count) {
  std::string out;
  for (; count > 0; --count) out += text;
  return out;
}

/// The error message; empty: it compiles and can be used, and the masks of its first tokens have been computed.
std::string objection(std::function<Grammar()> const& compile) {
  static TokenTrie const trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back();
    return TokenTrie(TokenBytes(tokens), vocabulary_of(tokens));
  }();
  try {
    Structure const structure(compile(), trie);
    auto state = structure.start();
    for (int step = 0; step < 30; ++step) {
      auto const set = structure.may_follow(state, 100'000);
      Token token = 0;
      while (token < 256 && !set->contains(token)) ++token;
      if (token == 256) break;
      state = structure.next(state, token);
    }
  } catch (std::exception const& error) {
    return error.what();
  }
  return {};
}

struct Case {
  std::string text, why;  // empty: it works
};

void judge(std::vector<Case> const& cases, std::function<Grammar(std::string const&)> const& compile) {
  for (auto const& [text, why] : cases) {
    INFO(text.substr(0, 100) << " (" << text.size() << " bytes)");
    auto const begin = std::chrono::steady_clock::now();
    auto const said = objection([&] { return compile(text); });
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    CAPTURE(said);
    CHECK((why.empty() ? said.empty() : said.find(why) != std::string::npos));
    CHECK(seconds < 20);  // usually takes milliseconds
  }
}

constexpr int ten_megabytes = 10 << 20;

/// Builds `before` 1000 `behind`, `before` 1001 `behind`, ...
std::string numbered(std::string const& before, int count, std::string const& behind) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + before + std::to_string(1000 + i) + behind;
  return out;
}

/// Rules that all begin with each other.
std::string left_recursive(int count) {
  std::string out = "root ::= r0\n";
  for (int r = 0; r < count; ++r) {
    out += "r" + std::to_string(r) + " ::= \"a\"";
    for (int to = 0; to < count; ++to) out += " | r" + std::to_string(to) + " \"b\"?";
    out += "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("bad grammars", "[bad_input]") {
  judge(
      {
          {"root ::= \"" + std::string(ten_megabytes, 'a') + '"', "limits.text"},
          {times("# nothing\n", 400'000) + "root ::= \"a\"", ""},
          {"root ::= a\n" + times(" # c\n", 1000) + "a ::= a \"x\"", "line 1, column 1: root: no text obeys"},
          {"root ::= root", "line 1, column 1: root: no text obeys"},
          {"root ::= \"\" root | \"a\"", ""},
          {"root ::= \"a\" x\nx ::= \"b\" root", "line 1, column 1: root: no text obeys"},
          {"root ::= \"\"", ""},
          {"root ::= (\"\")* (\"\"{3,} | \"\")+", ""},
          {"root ::= (\"a\" | \"a\" | \"a\"*)* root?", ""},
          {"root ::= " + times("e ", 30'000) + "root | \"a\"\ne ::= \"\" | \"b\"", "limits.size"},
          {"root ::= " + times("root? ", 300) + "\"a\"", ""},
          {"root ::= " + times("e ", 300'000) + "\"a\"\ne ::= \"\" | \"b\"", ""},
          {left_recursive(60), ""},
          {left_recursive(65), "r0: left-recursive"},
          {"root ::= \"x\" (\"a\" | \"a\" | \"a\"*)* root?", ""},
          {"root ::= \"a\" | root2\nroot2 ::= \"a\" root2 root2 root2 | \"a\" | \"\"", ""},
          {"root ::= [ab]* \"a\" [ab]{30}", ""},
          {"root ::= (\"a\"{0,300}){0,300}", ""},
          {"root ::= (((\"a\"{0,100}){0,100}){0,100}){0,100}", ""},
          {"root ::= " + times("(", 150) + "\"a\"" + times(")*", 150), ""},
          {"root ::= " + times("(", 1'000'000), "limits.nesting = 200"},
          {"root ::= [\\x00-\\U0010FFFF]{1,1000}", ""},
          {"root ::= " + times("\"a\" | ", 100'000) + "\"b\"", ""},
      },
      [](std::string const& text) { return Grammar::from_gbnf(text); });
}

TEST_CASE("ambiguous grammars", "[bad_input]") {
  auto const grammar = Grammar::from_gbnf("root ::= [a-z] | [a-z] root | [a-z] root root");
  std::vector<std::string> const tokens{"a", "b", ""};
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens));
  auto const steps = [&](std::int32_t ambiguity) {  // until there are too many stacks, 300 at most
    Structure const structure(grammar, trie, {.ambiguity = ambiguity});
    auto state = structure.start();
    int step = 0;
    try {
      for (; step < 300; ++step) state = structure.next(state, 0);
    } catch (std::length_error const& error) {
      CHECK(std::string(error.what()).find("so ambiguous") != std::string::npos);
    }
    return step;
  };
  // After n letters up to n - 1 calls wait for a second text each.
  auto const few = steps(8), more = steps(64);
  CAPTURE(few, more);
  CHECK((few >= 6 && few <= 16));
  CHECK((more >= 60 && more <= 128));
  CHECK(steps(20'000) == 300);
  CHECK_THROWS_AS(Structure(grammar, trie, {.ambiguity = 0}), std::invalid_argument);
  // An unambiguous grammar needs few, however deep and wide it is.
  auto const wide = Grammar::from_gbnf("root ::= \"(\" root \")\" | s \"a\" | s \"b\" | s \"ab\"\ns ::= \" \"*");
  Structure const structure(wide,
                            TokenTrie(TokenBytes(std::vector<std::string>{"(", ")", " ", "a", ""}),
                                      vocabulary_of(std::vector<std::string>{"(", ")", " ", "a", ""})),
                            {.ambiguity = 2});
  auto state = structure.start();
  for (int i = 0; i < 500; ++i) state = structure.next(state, 0);
  for (int i = 0; i < 50; ++i) state = structure.next(state, 2);
  state = structure.next(state, 3);
  for (int i = 0; i < 500; ++i) state = structure.next(state, 1);
  CHECK(structure.alive(state));
}

TEST_CASE("bad expressions", "[bad_input]") {
  judge(
      {
          {std::string(ten_megabytes, 'a'), "limits.text"},
          {"", ""},
          {"(a*)*(a|a)*b", ""},
          {"(a|b)*a(a|b){30}", ""},
          {times("(", 150) + "a" + times(")*", 150), ""},
          {times("(", 1'000'000), "limits.nesting"},
          {"((((a{100}){100}){100}){100})", ""},
          {"[^\\x{0}-\\x{10FFFF}]", "no text obeys"},
          {times("a?", 5000) + times("a", 5000), ""},
          {"\\", "line 1, column 1: "},
          {"[a", "line 1, column 1: "},
          {"a{2,1}", "line 1, column "},
          {"(?<=a)", "line 1, column "},
          {"(?=a)", "no text obeys"},
          {"(?!" + times("a", 300) + ")" + times("(a|b)", 3000), ""},
      },
      [](std::string const& text) { return Grammar::from_regex(text); });
}

TEST_CASE("many values", "[bad_input]") {
  auto const begin = std::chrono::steady_clock::now();
  auto const tagged = [](std::string const& before, int count) {
    return R"({"oneOf":[)" + numbered(R"({"type":"object","required":["t"],"properties":{)" + before, count, "}}}") +
           "]}";
  };
  std::string pairs;  // each two differ, but no property is common to all
  for (int i = 0; i < 400; ++i) {
    std::string names, properties;
    for (int bit = 0; bit < 9; ++bit) {
      auto const comma = bit == 0 ? "" : ",";
      auto const name = '"' + std::to_string(bit) + '"';
      names += comma + name, properties += comma + name + R"(:{"const":)" + std::to_string(i >> bit & 1) + "}";
    }
    pairs += std::string(i == 0 ? "" : ",") + R"({"type":"object","required":[)" + names + R"(],"properties":{)" +
             properties + "}}";
  }
  judge(
      {
          {R"({"enum":[)" + numbered("", 20'000, "") + "]}", ""},
          {R"({"enum":[)" + numbered("[", 20'000, "]") + "]}", ""},
          {R"({"oneOf":[)" + numbered(R"({"const":)", 5000, "}") + "]}", ""},
          {R"({"oneOf":[)" + numbered(R"({"enum":[")", 5000, "\"]}") + "]}", ""},
          {R"({"oneOf":[)" + numbered(R"({"const":)", 200, "}") + R"(,{"const":10.01e2}]})", ""},
          {tagged(R"("t":{"const":)", 1000), ""},
          {tagged(R"("t":{"minimum":)", 5000), "oneOf has too many schemas for comparing each with each"},
          {R"({"oneOf":[)" + pairs + "]}", "oneOf has too many schemas for comparing each with each"},
      },
      [](std::string const& text) { return Grammar::from_json_schema(text); });
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < 20);  // usually 2
}

TEST_CASE("equal values", "[bad_input]") {
  auto const key = [](std::string const& text) {
    return detail::json_key(detail::JsonReader::parse("value", text, {}));
  };
  std::vector<std::vector<std::string>> const alike{{"0", "-0", "0e5", "0.00", "-0e-999999999999999"},
                                                    {"150", "1.5e2", "150.00", "1500e-1", "15E+1"},
                                                    {"-150", "-15e1"},
                                                    {"0.015", "15e-3", "1.5E-2"},
                                                    {"12345678901234567890123"},
                                                    {"12345678901234567890124"},
                                                    {"1e999", "10e998", "1E+0000000000000000000000999"},
                                                    {"1e998"},
                                                    {"-1e999"},
                                                    {"1e5000", "10e4999", "0.01e5002"},
                                                    {"1e-5000", "0.1e-4999", "1000E-05003"},
                                                    {"1e-4999"},
                                                    {"1e999999999999999", "100e999999999999997"},
                                                    {"1e-999999999999999"},
                                                    {std::string(400, '9') + "0", std::string(400, '9') + "e1"},
                                                    {std::string(400, '9')},
                                                    {"\"1\"", "\"\\u0031\""},
                                                    {"1", "1.0"},
                                                    {"\"\""},
                                                    {"null"},
                                                    {"\"null\""},
                                                    {"true"},
                                                    {"false"},
                                                    {"[]"},
                                                    {"{}"},
                                                    {"[1,2]", "[1.0, 2]"},
                                                    {"[[1],2]"},
                                                    {"[12]"},
                                                    {"[\"1,2\"]"},
                                                    {R"({"a":1,"b":[2]})", R"({"b":[2.0],"a":1e0})"},
                                                    {R"({"a":1,"b":2})"},
                                                    {R"({"a":1})"},
                                                    {R"({"a\":1":2})"}};
  for (std::size_t i = 0; i < alike.size(); ++i)
    for (auto const& one : alike[i])
      for (std::size_t j = 0; j < alike.size(); ++j)
        for (auto const& other : alike[j]) {
          CAPTURE(one, other);
          CHECK((key(one) == key(other)) == (i == j));
        }
}

TEST_CASE("bad schemas", "[bad_input]") {
  judge(
      {
          {"\"" + std::string(ten_megabytes, 'a') + '"', "limits.text"},
          {times("{\"items\":", 190) + "{}" + times("}", 190), ""},
          {times("{\"items\":", 100'000), "limits.nesting"},
          {times("[", 1'000'000), "limits.nesting"},
          {R"({"$ref":"#"})", ""},
          {R"({"allOf":[{"$ref":"#"}]})", ""},
          {R"({"anyOf":[{"$ref":"#"}]})", ""},
          {R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})", ""},
          {R"({"items":{"$ref":"#"},"minItems":1,"type":"array"})", "no text obeys"},
          {R"({"type":"array","minItems":20000,"items":{"type":"array","minItems":20000}})", ""},
          {R"({"enum":[)" + times("1,", 100'000) + "2]}", ""},
          {R"({"enum":[]})", "no text obeys"},
          {R"({"type":[]})", "no text obeys"},
          {R"({"type":"number","minimum":-1e250,"maximum":1e250})", ""},
          {R"({"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2})", "no text obeys"},
          {R"g({"pattern":"(((((a{99}){99}){99}){99}){99})"})g", ""},
      },
      [](std::string const& text) { return Grammar::from_json_schema(text); });
}
