// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <grammar/mask_comparison.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string wrapped(std::string const& format) { return R"({"type": "structural_tag", "format": )" + format + "}"; }
bool accepts(std::string const& format, std::string_view text) { return structural_tag(wrapped(format)).matches(text); }
std::string refused(std::string const& json) {
  try {
    (void)structural_tag(json);
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "accepted";
}

/// Tags in free text, and a reader that looks for triggers at each place.
struct Tags {
  std::vector<std::string> triggers{}, excludes{};
  std::vector<std::pair<std::string, std::string>> tags{};  // begin, and the rest
  bool once = false, must = false;

  std::string json() const {
    std::string out = R"({"type": "triggered_tags", "triggers": [)", names;
    auto const list = [](std::vector<std::string> const& all) {
      std::string joined;
      for (auto const& one : all) joined += (joined.empty() ? "\"" : ", \"") + one + '"';
      return joined;
    };
    for (auto const& [begin, rest] : tags)
      names += std::string(names.empty() ? "" : ", ") + R"({"begin": ")" + begin +
               R"(", "content": {"type": "const_string", "value": ")" + rest + R"("}, "end": ""})";
    return out + list(triggers) + R"(], "excludes": [)" + list(excludes) + R"(], "tags": [)" + names +
           R"(], "stop_after_first": )" + (once ? "true" : "false") + R"(, "at_least_one": )" +
           (must ? "true" : "false") + "}";
  }
  bool matches(std::string_view text) const {
    if (!must) return free(text);
    for (auto const& [begin, rest] : tags)
      if (text.starts_with(begin + rest)) {
        auto const left = text.substr(begin.size() + rest.size());
        if (once ? left.empty() : free(left)) return true;
      }
    return false;
  }

 private:
  bool free(std::string_view text) const {
    for (std::size_t end = 0; end <= text.size(); ++end) {
      auto const read = text.substr(0, end);
      for (auto const& one : excludes)
        if (read.ends_with(one)) return false;
      auto over = false;
      for (auto const& trigger : triggers) {
        if (!read.ends_with(trigger)) continue;
        over = true;
        for (auto const& [begin, rest] : tags) {
          if (!begin.starts_with(trigger)) continue;
          auto const all = begin.substr(trigger.size()) + rest;
          auto const left = text.substr(end);
          if (left.starts_with(all) && (once ? left.size() == all.size() : free(left.substr(all.size())))) return true;
        }
      }
      if (over) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("structural tags: masks of free text and triggers are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(55);
  Comparisons all;
  auto const word = [&](std::size_t least, std::size_t most) {
    std::string out;
    for (auto n = least + random() % (most - least + 1); n > 0; --n) out += random() % 2 == 0 ? 'a' : 'b';
    return out;
  };
  for (int round = 0; round < rounds(400); ++round) {
    Tags tags{.once = random() % 3 == 0, .must = random() % 3 == 0};
    tags.triggers.push_back(word(1, 3));
    if (random() % 2 == 0) tags.triggers.push_back(word(1, 3));
    if (tags.triggers.size() == 2 &&
        (tags.triggers[0].starts_with(tags.triggers[1]) || tags.triggers[1].starts_with(tags.triggers[0])))
      tags.triggers.pop_back();
    for (auto const& trigger : tags.triggers)
      for (auto n = 1 + random() % 2; n > 0; --n) tags.tags.emplace_back(trigger + word(0, 1), word(0, 2));
    if (random() % 3 == 0) tags.excludes.push_back(word(1, 3));
    auto const json = tags.json();
    INFO(json);
    std::vector<std::string> tokens{"a", "b"};
    for (auto n = random() % 3; n > 0; --n) tokens.push_back(word(2, 3));
    tokens.emplace_back();
    all.compare(
        structural_tag(wrapped(json)), tokens, [&](std::string const& text) { return tags.matches(text); }, 3, 3);
  }
  INFO(all.report());
  CHECK(all.sets > 3000);
}

TEST_CASE("structural tags: formats", "[grammar]") {
  CHECK(accepts(R"({"type": "const_string", "value": "é"})", "é"));
  CHECK(accepts(R"({"type": "regex", "pattern": "[A-Z]{3}-[0-9]{2}"})", "ABC-12"));
  CHECK(accepts(R"({"type": "grammar", "grammar": "root ::= x+\nx ::= \"y\""})", "yy"));
  auto const two =
      std::string(
          R"({"type": "sequence", "elements": [{"type": "grammar", "grammar": "root ::= \"a\" r\nr ::= \"b\""}, )") +
      R"({"type": "grammar", "grammar": "root ::= \"c\" r\nr ::= \"d\""}]})";
  CHECK(accepts(two, "abcd"));  // rules of equal names are different rules
  CHECK_FALSE(accepts(two, "adcd"));
  auto const choice = R"({"type": "or", "elements": [{"type": "const_string", "value": "yes"},
                           {"type": "repeat", "min": 2, "max": 3, "content": {"type": "const_string", "value": "n"}}]})";
  CHECK(accepts(choice, "nnn"));
  CHECK_FALSE(accepts(choice, "n"));
  auto const think = R"({"type": "sequence", "elements": [
      {"type": "tag", "begin": "<think>", "content": {"type": "any_text", "max_chars": 4}, "end": ["</think>", "."]},
      {"type": "optional", "content": {"type": "const_string", "value": "!"}}]})";
  CHECK(accepts(think, "<think>é<b</think>!"));
  CHECK(accepts(think, "<think>é<b."));
  CHECK_FALSE(accepts(think, "<think>a.b."));
  CHECK_FALSE(accepts(think, "<think>abcde."));
  // A request to vLLM, in both forms.
  auto const schema = R"({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})";
  auto const tags = R"({"type": "triggered_tags", "triggers": ["<function="], "tags": [{"type": "tag",
      "begin": "<function=weather>", "content": {"type": "json_schema", "json_schema": )" +
                    std::string(schema) + R"(}, "end": "</function>"}]})";
  auto const older = R"({"type": "structural_tag", "triggers": ["<function="], "structures": [
      {"begin": "<function=weather>", "schema": )" +
                     std::string(schema) + R"(, "end": "</function>"}]})";
  for (auto const& grammar : {structural_tag(wrapped(tags)), structural_tag(older), structural_tag(tags)}) {
    CHECK(grammar.matches("Hm <func, <function=weather>{\"city\": \"Paris\"}</function> so."));
    CHECK(grammar.matches(""));
    CHECK_FALSE(grammar.matches("<function=weather>{}</function>"));
    CHECK_FALSE(grammar.matches("<function=other>{\"city\": \"Paris\"}</function>"));
  }
  // Ends of the tag around are told from free text.
  auto const inside =
      R"({"type": "tag", "begin": "[", "content": {"type": "triggered_tags", "triggers": ["A"], "tags": [
      {"begin": "A1", "content": {"type": "const_string", "value": "L"}, "end": "A"}]}, "end": "]"})";
  CHECK(accepts(inside, "[xA1LAy]"));
  CHECK_FALSE(accepts(inside, "[x]A1LAy]"));
}

TEST_CASE("structural tags: arguments as elements", "[grammar]") {
  auto const arguments = [](std::string const& style) {
    return R"({"type": "json_schema", "style": ")" + style + R"(", "json_schema": {"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}, "kind": {"enum": ["a b", 3]},
        "more": {"type": ["string", "array"], "pattern": "^x+$"}}, "required": ["name"]}})";
  };
  auto const qwen = arguments("qwen_xml");
  CHECK(accepts(qwen, "<parameter=name>\nBob <\"> \n</parameter>\n<parameter=age>\n12\n</parameter>"));
  CHECK(accepts(qwen, "<parameter=name></parameter><parameter=kind>a b</parameter>"));
  CHECK(accepts(qwen, "<parameter=name>x</parameter><parameter=kind>3</parameter><parameter=more>[1]</parameter>"));
  CHECK(accepts(qwen, "<parameter=name>x</parameter><parameter=more>\nxx\n</parameter>"));
  CHECK_FALSE(accepts(qwen, "<parameter=name>x</parameter><parameter=more>\nxy\n</parameter>"));
  CHECK_FALSE(accepts(qwen, "<parameter=name>x</parameter><parameter=age>a</parameter>"));
  CHECK_FALSE(accepts(qwen, "<parameter=age>1</parameter>"));
  CHECK_FALSE(accepts(qwen, "<parameter=name>x</parameter><parameter=other>1</parameter>"));
  CHECK(accepts(arguments("glm_xml"), "\n<arg_key>name</arg_key>\n<arg_value>Bob</arg_value>\n"));
  CHECK(accepts(arguments("glm_xml"), "<arg_key>name</arg_key><arg_value>Bob</arg_value>"));
  CHECK(accepts(arguments("minimax_xml"), "<parameter name=\"name\">Bob</parameter>"));
}

TEST_CASE("structural tags: tokens", "[grammar]") {
  // <c> and </c> are control tokens.
  std::vector<std::string> const texts{"a", "b", "<", "c", ">", "/", "1", "", "", ""};
  TokenTrie const trie(TokenBytes(texts), vocabulary_of(texts), {{"<c>", 7}, {"</c>", 8}});
  auto const reads = [&](std::string const& format, std::vector<Token> const& tokens) {
    Structure const structure(structural_tag(wrapped(format)), trie);
    auto state = structure.start();
    for (auto const token : tokens) {
      auto const set = structure.may_follow(state, Limits::unlimited);
      auto const next = structure.next(state, token);
      REQUIRE((set != nullptr && set->contains(token)) == (structure.alive(next) && structure.alive(state)));
      state = next;
    }
    return structure.alive(state) && structure.complete(state);
  };
  auto const tag = R"({"type": "triggered_tags", "triggers": ["<c>"], "tags": [
      {"begin": "<c>", "content": {"type": "regex", "pattern": "[ab]*"}, "end": "</c>"}]})";
  CHECK(reads(tag, {0, 7, 1, 8, 1}));                 // the tokens
  CHECK(reads(tag, {0, 2, 3, 4, 1, 2, 5, 3, 4, 1}));  // their spelling
  CHECK_FALSE(reads(tag, {0, 8}));                    // an end without a beginning
  CHECK_FALSE(reads(tag, {7, 1}));
  auto const by_token = R"({"type": "token_triggered_tags", "trigger_tokens": ["<c>"], "exclude_tokens": [1], "tags": [
      {"begin": {"type": "token", "token": "<c>"}, "content": {"type": "any_tokens", "max_tokens": 2},
       "end": {"type": "token", "token": "</c>"}}]})";
  CHECK(reads(by_token, {0, 8, 7, 1, 7, 8, 0}));
  CHECK_FALSE(reads(by_token, {0, 1}));
  CHECK_FALSE(reads(by_token, {7, 0, 0, 0, 8}));
  CHECK(reads(R"({"type": "token_dispatch", "rules": [["<c>", {"type": "const_string", "value": "1"}]]})",
              {0, 8, 7, 6, 0}));
  CHECK(reads(R"({"type": "exclude_token", "exclude_tokens": ["<c>", 0]})", {8}));
  CHECK_FALSE(reads(R"({"type": "exclude_token", "exclude_tokens": ["<c>", 0]})", {7}));
}

TEST_CASE("structural tags: a text of so many tokens", "[grammar]") {
  std::vector<std::string> const tokens{"a", "<", "</", ">", "<a>", "</a>", ""};
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens));
  struct Case {
    std::string_view limits;
    int tokens, characters;
  };
  for (auto const& [limits, most, characters] : {Case{R"("max_tokens": 2)", 2, 99},
                                                 {R"("max_tokens": 0)", 0, 99},
                                                 {R"("max_tokens": 3, "max_chars": 4)", 3, 4}}) {
    INFO(limits);
    Structure const structure(
        structural_tag(wrapped(R"({"type": "tag", "begin": "<a>", "content": {"type": "any_text", )" +
                               std::string(limits) + R"(}, "end": "</a>"})")),
        trie);
    auto const spelt = [&](std::vector<Token> const& all, std::size_t first, std::size_t last) {
      std::string out;
      for (auto i = first; i < last; ++i) out += tokens[static_cast<std::size_t>(all[i])];
      return out;
    };
    auto const expected = [&](std::vector<Token> const& all) {
      for (std::size_t i = 0; i <= all.size(); ++i)
        for (auto j = i; j <= all.size() && static_cast<int>(j - i) <= most; ++j) {
          auto const text = spelt(all, i, j);
          if (spelt(all, 0, i) == "<a>" && text.find("</a>") == std::string::npos &&
              static_cast<int>(text.size()) <= characters && spelt(all, j, all.size()) == "</a>")
            return true;
        }
      return false;
    };
    int accepted = 0;
    for (std::size_t size = 1; size <= 6; ++size) {
      std::vector<Token> all(size);
      for (bool more = true; more;) {
        auto state = structure.start();
        for (auto const token : all) state = structure.next(state, token);
        auto const accepts = structure.alive(state) && structure.complete(state);
        CAPTURE(spelt(all, 0, size));
        REQUIRE(accepts == expected(all));
        accepted += accepts ? 1 : 0;
        std::size_t i = 0;
        while (i < size && ++all[i] == 6) all[i++] = 0;
        more = i < size;
      }
    }
    CHECK(accepted > 1);
  }
}

TEST_CASE("structural tags: what is refused names the field", "[grammar]") {
  auto const why = [](std::string const& format) { return refused(wrapped(format)); };
  CHECK(refused("[]") == "sluice: structural tag, line 1, column 1: must be an object");
  CHECK(refused(R"({"type": "structural_tag"})") == "sluice: structural tag, line 1, column 1: format: is missing");
  CHECK(why(R"({"type": "nothing"})") == "sluice: structural tag, line 1, column 38: type = nothing: is no format");
  CHECK(why(R"({"type": "const_string", "value": 1})") ==
        "sluice: structural tag, line 1, column 72: value: must be a string");
  CHECK(why(R"({"type": "tag", "begin": "a", "content": {"type": "any_text"}, "end": ""})") ==
        "sluice: structural tag, line 1, column 79: any_text: the tag around it has no end by which it could be told");
  auto const tags = [&](std::string const& triggers) {
    return why(R"({"type": "triggered_tags", "triggers": )" + triggers +
               R"(, "tags": [{"begin": "abc", "content": {"type": "const_string", "value": "x"}, "end": ""}]})");
  };
  CHECK(tags(R"(["a", "ab"])") == "sluice: structural tag, line 1, column 99: begin = abc: more than one trigger fits");
  CHECK(tags(R"(["x"])") == "sluice: structural tag, line 1, column 93: begin = abc: no trigger fits");
  CHECK(tags(R"([""])") == "sluice: structural tag, line 1, column 78: triggers: must hold strings that are not empty");
  CHECK(tags("[]") == "sluice: structural tag, line 1, column 77: triggers: must not be empty");
  CHECK(why(R"({"type": "repeat", "min": 3, "max": 1, "content": {"type": "any_text"}})") ==
        "sluice: structural tag, line 1, column 38: max = 1: is less than min");
  CHECK(why(R"({"type": "json_schema", "json_schema": 3})") ==
        "sluice: structural tag, line 1, column 77: a schema must be an object, true or false");
  CHECK(why(R"({"type": "json_schema", "json_schema": {}, "style": "kimi"})") ==
        "sluice: structural tag, line 1, column 38: style = kimi: must be json, qwen_xml, minimax_xml or glm_xml");
  CHECK(why(R"({"type": "any_text", "max_tokens": -5})") ==
        "sluice: structural tag, line 1, column 73: max_tokens = -5: must be a whole number from 0 to 1000000000");
  CHECK(why(R"({"type": "exclude_token", "exclude_tokens": [1.5]})") ==
        "sluice: structural tag, line 1, column 83: a token must be a string or a whole number");
}
