// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/detail/compile.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <grammar/mask_comparison.hpp>
#include <grammar/random_grammar.hpp>
#include <grammar/schema_texts.hpp>
#include <iostream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::vector<std::string> random_tokens(std::mt19937_64& random, std::string const& letters, int count, bool singles) {
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  std::vector<std::string> out;
  if (singles)
    for (auto const c : letters) out.emplace_back(1, c);
  while (static_cast<int>(out.size()) < count) {
    std::string token;
    for (auto n = draw(0, 12) == 0 ? 0 : draw(1, 3); n > 0; --n)
      token += letters[static_cast<std::size_t>(draw(0, static_cast<int>(letters.size()) - 1))];
    out.push_back(token);
  }
  out.emplace_back();  // eos
  return out;
}

/// Fragments of small values, without zeros and escapes.
std::vector<std::string> value_tokens(std::mt19937_64& random) {
  std::vector<std::string> const all{"1",  "2",     "12",   "-",    "\"",    "a",   "b",     "[",   "]",
                                     "{",  "}",     ",",    ":",    "\":",   ",\"", "{\"",   "a\"", "[1",
                                     "],", "\"a\"", "null", "true", "false", "ab",  "\"b\":"};
  std::vector<std::string> out;
  for (auto const& token : all)
    if (random() % 2 == 0) out.push_back(token);
  out.emplace_back();
  return out;
}

std::string regex(Part const& part) {
  std::string out;
  switch (part.kind) {
    case Part::literal: return "(?:" + part.text + ")";
    case Part::letters: return '[' + part.text + ']';
    case Part::sequence:
      for (auto const& one : part.parts) out += regex(one);
      return "(?:" + out + ")";
    case Part::choice:
      for (auto const& one : part.parts) out += (out.empty() ? "" : "|") + regex(one);
      return "(?:" + out + ")";
    case Part::repeat:
      return "(?:" + regex(part.parts[0]) + "){" + std::to_string(part.minimum) + "," +
             (part.maximum < 0 ? "" : std::to_string(part.maximum)) + "}";
    case Part::rule: break;
  }
  throw std::logic_error("an expression has no rules");
}

std::optional<Grammar> compiled(Comparisons& all, std::string& why, Grammar (*compile)(std::string const&),
                                std::string const& text) {
  try {
    return compile(text);
  } catch (std::invalid_argument const& e) {
    why = e.what(), ++all.refused;
    return {};
  }
}

}  // namespace

TEST_CASE("masks of random grammars are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(18);
  Comparisons all;
  for (int round = 0; round < rounds(3000); ++round) {
    RandomGrammar draw(random, "ab");
    auto const rules = draw.rules();
    auto const text = gbnf(rules);
    INFO(text);
    std::string why;
    auto const grammar = compiled(
        all, why, [](std::string const& t) { return Grammar::from_gbnf(t); }, text);
    if (!grammar) {
      CAPTURE(why);
      REQUIRE(why.find("no text obeys") != std::string::npos);
      for (auto const* const some : {"", "a", "b", "ab", "ba", "aba", "abb"}) CHECK_FALSE(recognises(rules, some));
      continue;
    }
    auto const tokens = random_tokens(random, "ab", draw.draw(2, 5), draw.draw(0, 2) == 0);
    all.compare(*grammar, tokens, [&](std::string const& s) { return recognises(rules, s); });
  }
  if (rounds(0) > 0) std::cout << "grammars: " << all.report() << '\n';
  INFO(all.report());
  CHECK(all.compared > all.refused);
  CHECK(all.refused > 10);
  CHECK(all.impossible > 5);
}

TEST_CASE("masks of grammars within others are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(21);
  Comparisons all;
  for (int round = 0; round < rounds(400); ++round) {
    RandomGrammar draw(random, "ab");
    auto const inner = draw.rules();
    std::string why;
    auto const given = compiled(
        all, why, [](std::string const& t) { return Grammar::from_gbnf(t); }, gbnf(inner));
    if (!given) continue;
    Part const a{.kind = Part::literal, .text = "a"}, b{.kind = Part::literal, .text = "b"};
    Part const g{.kind = Part::rule, .number = 1}, again{.kind = Part::rule, .number = 0};
    std::vector<Part> rules{
        {.kind = Part::choice,
         .parts = {{.kind = Part::sequence,
                    .parts = {a, g, {.kind = Part::repeat, .parts = {again}, .minimum = 0, .maximum = 1}}},
                   {.kind = Part::sequence, .parts = {g, b}},
                   g}}};
    std::function<Part(Part)> const moved = [&](Part part) {
      part.number += part.kind == Part::rule ? 1 : 0;
      for (auto& one : part.parts) one = moved(one);
      return part;
    };
    for (auto const& rule : inner) rules.push_back(moved(rule));
    INFO(gbnf(inner));
    auto const whole = Grammar::from_gbnf("root ::= \"a\" g root? | g \"b\" | g", {}, {{"g", *given}});
    auto const tokens = random_tokens(random, "ab", draw.draw(2, 5), draw.draw(0, 2) == 0);
    all.compare(whole, tokens, [&](std::string const& s) { return recognises(rules, s); });
  }
  INFO(all.report());
  CHECK(all.compared > 200);
}

TEST_CASE("masks of random expressions are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(19);
  Comparisons all;
  for (int round = 0; round < rounds(1000); ++round) {
    RandomGrammar draw(random, "ab");
    std::vector<Part> const rules{draw.part(3, false)};
    auto const text = regex(rules[0]);
    INFO(text);
    auto const tokens = random_tokens(random, "ab", draw.draw(2, 5), draw.draw(0, 2) == 0);
    all.compare(Grammar::from_regex(text), tokens, [&](std::string const& s) { return recognises(rules, s); });
  }
  if (rounds(0) > 0) std::cout << "expressions: " << all.report() << '\n';
  INFO(all.report());
  CHECK(all.impossible > 5);
}

TEST_CASE("masks of random schemas are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(20);
  Comparisons all;
  for (int round = 0; round < rounds(100); ++round) {
    auto const schema = SmallSchemas(random).draw();
    INFO(schema.dump());
    std::string why;
    auto const grammar = compiled(
        all, why, [](std::string const& t) { return Grammar::from_json_schema(t, {.order = JsonOrder::schema}); },
        schema.dump());
    if (!grammar) {
      CAPTURE(why);
      REQUIRE(why.find("no text obeys") != std::string::npos);
      continue;
    }
    all.compare(
        *grammar, value_tokens(random), [&](std::string const& s) { return SchemaTexts(schema, s).matches(); }, 2);
  }
  if (rounds(0) > 0) std::cout << "schemas: " << all.report() << '\n';
  INFO(all.report());
  CHECK(all.compared > 2 * all.refused);
}

namespace {

/// Quoted texts of `minimum` to `maximum` plain characters, separated by commas; quotes are escaped by backslashes.
struct QuotedTexts {
  int minimum, maximum, most;  // maximum -1: any number; most: how many texts
  bool counts_escapes;         // an escape is a character
  std::string gbnf() const {
    auto const bounds = std::to_string(minimum) + "," + (maximum < 0 ? "" : std::to_string(maximum));
    std::string const plain = R"([^"\\\x00-\x1f])", escape = R"("\\\"")";
    auto const character = counts_escapes ? "(" + plain + " | " + escape + ")" : plain;
    return "root ::= text (\",\" text){0," + std::to_string(most - 1) + "}\ntext ::= \"\\\"\" " + character + "{" +
           bounds + "} \"\\\"\"\n";
  }
  /// Whether a text can be continued to one of these, or is one.
  bool begins(std::string const& text) const {
    std::size_t at = 0;
    for (int texts = 1; at < text.size(); ++texts) {
      if (texts > most || text[at++] != '"') return false;
      auto ended = false;
      for (int count = 0; at < text.size() && !ended;) {
        auto const byte = static_cast<unsigned char>(text[at]);
        ended = byte == '"';
        if (ended && count < minimum) return false;
        if (!ended && (++count > maximum && maximum >= 0)) return false;
        if (byte < 0x20 || (byte >= 0x80 && byte < 0xC2) || byte > 0xF4 || (byte == '\\' && !counts_escapes))
          return false;
        ++at;
        if (byte == '\\' && at < text.size() && text[at++] != '"') return false;
        for (int i = 0, more = byte < 0xC2   ? 0
                               : byte < 0xE0 ? 1
                               : byte < 0xF0 ? 2
                                             : 3;
             i < more && at < text.size(); ++i) {
          auto const next = static_cast<unsigned char>(text[at++]);
          auto const low = i > 0 ? 0x80 : byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
          auto const high = i > 0 ? 0xBF : byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
          if (next < low || next > high) return false;
        }
      }
      if (ended && at < text.size() && (text[at++] != ',' || texts == most)) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("masks of counted characters are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(21);
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (auto const* const piece : {"b\"", "\"a", "ab", "\xC3\xA9", "\xC3\xA9z", "\\\"", "\",\"", "x\",\"y", "\"\xC3\xA9",
                                  "\xA9z\xC3", "abc", "\x7F~", "abcdefgh", "\xE2\x82\xAC", "\xED\xA0\x80",
                                  "\xF0\x9F\x98\x80\xF0\x9F\x98\x80", "\xF4\x90\x80\x80", "\"\"", "\","})
    tokens.emplace_back(piece);
  for (auto const length : {17, 19, 20, 21, 22, 30, 45})
    for (auto const* const end : {"", "\"", "\",\"a", "\xC3"})
      tokens.push_back(std::string(static_cast<std::size_t>(length), 'a') + end);
  tokens.emplace_back();
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens));
  int allowed = 0;
  for (int round = 0; round < rounds(60); ++round) {
    auto const minimum = draw(0, 2) == 0 ? draw(10, 60) : draw(0, 2);
    auto const maximum = draw(0, 3) == 0 ? -1 : minimum + (draw(0, 1) == 0 ? draw(0, 3) : draw(13, 60));
    QuotedTexts const texts{minimum, maximum, draw(1, 3), draw(0, 1) == 0};
    INFO(texts.gbnf());
    Structure const structure(Grammar::from_gbnf(texts.gbnf()), trie);
    auto state = structure.start();
    std::string text;
    for (int step = 0; step < 12; ++step) {
      INFO(text);
      auto const set = structure.may_follow(state, Limits::unlimited);
      std::vector<Token> some;
      for (Token token = 0; token + 1 < static_cast<Token>(tokens.size()); ++token) {
        auto const follows = texts.begins(text + tokens[static_cast<std::size_t>(token)]);
        INFO(tokens[static_cast<std::size_t>(token)]);
        if (set->contains(token) != follows) FAIL();
        if (follows) some.push_back(token);
        if (follows && token > 256) some.insert(some.end(), 5, token);
      }
      auto const roomy = structure.may_follow(state, 1000);
      CHECK(std::ranges::equal(roomy->words(), set->words()));
      allowed += static_cast<int>(some.size());
      if (some.empty()) break;
      auto const token = some[static_cast<std::size_t>(draw(0, static_cast<int>(some.size()) - 1))];
      state = structure.next(state, token), text += tokens[static_cast<std::size_t>(token)];
      REQUIRE(structure.alive(state));
    }
  }
  CHECK(allowed > 10'000);
}

TEST_CASE("masks of patterns with lengths are what trying all tokens finds, and what they begin ends", "[grammar]") {
  std::mt19937_64 random(23);
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  std::vector<std::string> tokens;
  for (auto const* const piece :
       {"\"",   "a",    "b",   " ",        "aa",         "a b", "b ",      " a",           "ab ba",  "a b a b a b",
        "\xC3", "\xA9", "a\"", "\xC3\xA9", "\xC3\xA9 b", " \"", "\\u0026", "aaaaaaaaaaaa", "a \xC3", "\xA9 \xC3"})
    tokens.emplace_back(piece);
  for (auto const length : {19, 20, 21, 23, 40}) tokens.emplace_back(static_cast<std::size_t>(length), 'b');
  tokens.emplace_back("xxxxx xx xxxxxx"), tokens.emplace_back("xx xxx xxxx xxxxxxxx xxxx x"), tokens.emplace_back();
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens));
  // Whether a text begins a string of so many words of at most so many characters; whether it is one.
  auto const begins = [](std::string const& text, int words, int most, bool letters) {
    auto count = 0, word = 1;
    auto space = true;
    std::size_t at = 1;
    if (text.empty()) return true;
    if (text[0] != '"') return false;
    for (; at < text.size() && text[at] != '"'; ++count) {
      auto const part = text.substr(at);
      if (part[0] == ' ') {
        if (space || ++word > words) return false;
        space = true, ++at;
        continue;
      }
      space = false;
      if (!letters && std::string_view("\\u0026").substr(0, part.size()) == part.substr(0, 6)) at += 6;
      else if (part[0] == 'a' || part[0] == 'b' || (!letters && part[0] == 'x')) ++at;
      else if (part[0] == '\xC3' && (part.size() == 1 || part[1] == '\xA9')) at += 2;
      else return false;
    }
    if (at < text.size()) return !space && count <= most && at + 1 == text.size();
    return count + (space ? 1 : 0) <= most;
  };
  int limited = 0;
  for (int round = 0; round < rounds(60); ++round) {
    auto const words = draw(1, 30), most = draw(1, 3) == 1 ? draw(5, 30) : draw(20, 120);
    auto const letters = draw(0, 1) == 0;  // otherwise nearly all plain text
    auto const one = std::string(letters ? "[ab\xC3\xA9]" : "[^ ]");
    auto const schema = R"({"type":"string","pattern":"^()" + one + "+ ){0," + std::to_string(words - 1) + "}" + one +
                        R"(+$","maxLength":)" + std::to_string(most) + "}";
    INFO(schema);
    auto const grammar = Grammar::from_json_schema(schema);
    Structure const structure(grammar, trie);
    auto state = structure.start();
    std::string text;
    auto const narrow = draw(0, 1) == 0;
    for (int left = narrow ? draw(8, 20) : 1000; left > 0; --left) {
      INFO(text);
      auto const set = structure.may_follow(state, left);
      std::vector<Token> some;
      for (Token token = 0; token + 1 < static_cast<Token>(tokens.size()); ++token) {
        auto const follows = begins(text + tokens[static_cast<std::size_t>(token)], words, most, letters);
        INFO(tokens[static_cast<std::size_t>(token)]);
        if (narrow ? set->contains(token) && !follows : set->contains(token) != follows) FAIL();
        if (set->contains(token)) some.push_back(token);
        if (set->contains(token) && token > 8) some.insert(some.end(), 5, token);
      }
      limited += narrow ? 1 : 0;
      CHECK(structure.complete(state) == grammar.matches(text));
      if (structure.complete(state)) break;
      REQUIRE_FALSE(some.empty());
      auto const token = some[static_cast<std::size_t>(draw(0, static_cast<int>(some.size()) - 1))];
      state = structure.next(state, token), text += tokens[static_cast<std::size_t>(token)];
      REQUIRE(structure.alive(state));
    }
    CHECK(structure.complete(state));
  }
  CHECK(limited > 100);
}

TEST_CASE("masks of schemas are what reading tokens byte by byte finds", "[grammar]") {
  std::mt19937_64 random(24);
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  bytes.emplace_back();
  TokenTrie const by_bytes(TokenBytes(bytes), vocabulary_of(bytes));
  std::vector<std::string> tokens;  // lacks bytes, as real vocabularies do
  for (int byte = 0; byte < 256; ++byte)
    if (byte != 0x04 && byte != 0x1D && byte != 0xC0 && byte != 0xF1 && byte < 0xF5)
      tokens.emplace_back(1, static_cast<char>(byte));
  for (auto const* const piece : {"\": ", "\",\"", "{\"", "[\"", "\\n", "\\u00", "-7", "key", "id", "\xC3\xA9", "\xA9z",
                                  "\xE2\x82\xAC\xE2\x82\xAC"})
    tokens.emplace_back(piece);
  std::vector<std::string> const alphabets{"0123456789", "abcdef0123456789", "keyid", "ghXYZ", "a9_-. ", "\xC3\xA9"};
  for (int i = 0; i < 500; ++i) {
    auto const& own = alphabets[static_cast<std::size_t>(draw(0, 5))];
    auto const& other = alphabets[static_cast<std::size_t>(draw(0, 5))];
    std::string piece;
    for (auto n = draw(0, 9) == 0 ? draw(16, 30) : draw(2, 9); n > 0; --n) {
      auto const& from = draw(0, 5) == 0 ? other : own;
      piece += from[static_cast<std::size_t>(draw(0, static_cast<int>(from.size()) - 1))];
    }
    tokens.push_back(draw(0, 5) == 0 ? piece + "\"" : piece);
  }
  tokens.emplace_back();
  TokenTrie const trie(TokenBytes(tokens), vocabulary_of(tokens));
  std::string last;  // often the same one again, in another schema
  auto const text_of = [&]() -> std::string {
    if (draw(0, 5) == 0) return R"({"type":"string"})";
    if (draw(0, 2) > 0 && !last.empty()) return last;
    auto const least = draw(0, 25), most = least + (draw(0, 1) == 0 ? 0 : draw(1, 40));
    auto const bounds = R"("minLength":)" + std::to_string(least) + R"(,"maxLength":)" + std::to_string(most) + "}";
    std::vector<std::string> const patterns{"[0-9a-fA-F]+",      "^[0-9a-zA-Z._-]+$", "^[a-f]",
                                            "^(id|key)-[0-9]+$", "[^0-9]{2}",         "^.{2,4}[0-9]+$"};
    auto const& pattern = patterns[static_cast<std::size_t>(draw(0, 5))];
    last = R"({"type":"string",)";
    if (draw(0, 3) == 0) last += bounds;
    else last += R"("pattern":")" + pattern + "\"" + (draw(0, 2) == 0 ? "}" : "," + bounds);
    return last;
  };
  auto const object_of = [&] {
    std::vector<std::string> const rests{R"("additionalProperties":false)", R"("additionalProperties":{"type":"null"})",
                                         R"("patternProperties":{"id:.*":{"type":"null"}},"additionalProperties":)" +
                                             text_of(),
                                         R"("patternProperties":{"^[a-f]+$":)" + text_of() + "}"};
    return R"({"type":"object","properties":{"key":)" + text_of() + R"(,"id":{"type":"integer"}},)" +
           rests[static_cast<std::size_t>(draw(0, 3))] + "}";
  };
  int compared = 0, allowed = 0;
  for (int round = 0; round < rounds(60); ++round) {
    auto const kind = draw(0, 2);
    auto const schema = kind == 0   ? text_of()
                        : kind == 1 ? object_of()
                                    : R"({"anyOf":[)" + object_of() + "," + object_of() + "]}";
    INFO(schema);
    std::optional<Grammar> grammar;
    try {
      grammar = Grammar::from_json_schema(schema);
    } catch (std::invalid_argument const&) {  // no text
      continue;
    }
    Structure const structure(*grammar, trie), reference(*grammar, by_bytes);
    auto const read = [&](Structure::State from, std::string const& text) {
      for (std::size_t i = 0; i < text.size() && reference.alive(from); ++i)
        from = reference.next(from, static_cast<unsigned char>(text[i]));
      return from;
    };
    auto state = structure.start(), expected = reference.start();
    for (int step = 0; step < 25; ++step) {
      auto const set = structure.may_follow(state, Limits::unlimited);
      std::vector<Token> some;
      for (Token token = 0; token + 1 < static_cast<Token>(tokens.size()); ++token) {
        auto const& text = tokens[static_cast<std::size_t>(token)];
        auto const follows = reference.alive(read(expected, text));
        INFO(text);
        if (set->contains(token) != follows) FAIL();
        if (follows) some.insert(some.end(), text.size() > 1 ? 5 : 1, token);
      }
      ++compared, allowed += static_cast<int>(some.size());
      CHECK(structure.complete(state) == reference.complete(expected));
      if (some.empty()) break;
      auto const token = some[static_cast<std::size_t>(draw(0, static_cast<int>(some.size()) - 1))];
      state = structure.next(state, token);
      expected = read(expected, tokens[static_cast<std::size_t>(token)]);
      REQUIRE(structure.alive(state));
    }
  }
  CHECK(compared > 500);
  CHECK(allowed > 50'000);
}

TEST_CASE("automata and counts match what their parts match", "[grammar]") {
  std::mt19937_64 random(22);
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  int matching = 0;
  for (int round = 0; round < rounds(200); ++round) {
    detail::ByteAutomaton automaton;
    auto const states = draw(1, 4);
    for (int i = 0; i < states; ++i) {
      automaton.states.push_back({static_cast<std::int32_t>(automaton.edges.size()), 0, draw(0, 1) == 0});
      for (auto const byte : {'a', 'b'})
        if (draw(0, 3) > 0)
          automaton.edges.push_back(
              {static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), draw(0, states - 1)});
      automaton.states.back().edges =
          static_cast<std::int32_t>(automaton.edges.size()) - automaton.states.back().first_edge;
    }
    if (draw(0, 1) == 0) automaton.most = draw(0, 3), automaton.characters = draw(0, states);
    auto const minimum = draw(0, 3), maximum = draw(0, 3) == 0 ? -1 : minimum + draw(0, 4);
    auto const inner = draw(0, 3);  // of the letters before a part
    detail::Expressions x{GrammarLimits{}};
    auto const root = x.add_rule("root");
    auto const part =
        x.sequence({x.repeat(x.byte('x', 'x'), inner, 3 * inner), x.automaton(automaton), x.byte('c', 'c')});
    x.rules[0].expression = x.sequence({x.byte('<', '<'), x.repeat(part, minimum, maximum), x.byte('>', '>')});
    auto const compiled = [&]() -> std::optional<detail::Automaton> {
      try {
        return detail::compile(x, root);
      } catch (std::invalid_argument const&) {  // no text
        return {};
      }
    }();
    auto const accepts = [&](std::string const& text) {
      std::size_t at = 0;
      while (at < text.size() && text[at] == 'x') ++at;
      if (static_cast<int>(at) < inner || static_cast<int>(at) > 3 * inner) return false;
      std::int32_t state = 0, count = 0;
      for (; at < text.size(); ++at) {
        auto const& from = automaton.states[static_cast<std::size_t>(state)];
        state = -1;
        for (auto i = from.first_edge; i < from.first_edge + from.edges; ++i)
          if (auto const& edge = automaton.edges[static_cast<std::size_t>(i)]; edge.first == text[at]) state = edge.to;
        if (state < 0) return false;
        if (state < automaton.characters && ++count > automaton.most && automaton.most >= 0) return false;
      }
      return automaton.states[static_cast<std::size_t>(state)].accepts;
    };
    std::optional<detail::Pushdown> machine;
    if (compiled) machine.emplace(*compiled, std::size_t{1} << 26);
    for (int n = 0; n < 300; ++n) {
      std::string text = "<";
      int parts = draw(0, 6), right = 0;
      for (int i = 0; i < parts; ++i) {
        std::string one(static_cast<std::size_t>(draw(0, 1) == 0 ? inner : draw(0, 3 * inner)), 'x');
        for (auto k = draw(0, 3); k > 0; --k) one += "ab"[draw(0, 1)];
        right += accepts(one) ? 1 : 0;
        text += one + "c";
      }
      text += ">";
      auto const expected = right == parts && parts >= minimum && (maximum < 0 || parts <= maximum);
      INFO(text << " " << minimum << " " << maximum << " " << inner);
      REQUIRE((machine && machine->complete(machine->next(machine->initial(), text))) == expected);
      matching += expected ? 1 : 0;
    }
  }
  CHECK(matching > 1000);
}
