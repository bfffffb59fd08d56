// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/grammar.hpp>

#include <support/catch.hpp>

#include <cstddef>
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
      auto const left = why.find("left-recursive") != std::string::npos;
      REQUIRE((left || why.find("no text obeys") != std::string::npos));
      if (!left)
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
