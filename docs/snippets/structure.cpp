// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/structure.md.
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/length.hpp>
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <cstddef>
#include <cstdint>
#include <ios>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using sluice::Token;

/// Token 0 is eos; then come the printable characters of ASCII, and some pieces.
std::vector<std::string> tokens() {
  std::vector<std::string> all{""};
  for (char c = ' '; c <= '~'; ++c) all.emplace_back(1, c);
  for (auto const* const piece : {"{\"", "\":", "\":\"", "\",\"", "\"}", "name", "seats", "true", "10", "an", "in"})
    all.emplace_back(piece);
  return all;
}

/// A language model with fixed random scores that prefers letters.
class Babbler {
 public:
  using Source = std::monostate;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  static sluice::Vocabulary vocabulary() { return {.size = size(), .bos = 0, .eos = {0}}; }
  static void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    static auto const texts = tokens();
    answer_.clear();
    for (auto const& row : rows)
      for (auto last = std::ssize(row.tokens) - row.lines; last < std::ssize(row.tokens); ++last)
        for (std::int32_t t = 0; t < size(); ++t) {
          auto const& text = texts[static_cast<std::size_t>(t)];
          auto const letter = !text.empty() && text[0] >= 'a' && text[0] <= 'z';
          auto const place = row.length + static_cast<std::int32_t>(last);
          auto const noise = (t * 41 + place * 17 + row.tokens[static_cast<std::size_t>(last)] * 29) % 101;
          answer_.push_back((letter ? 1.5f : 0) + 0.03f * static_cast<float>(noise));
        }
    return sluice::scores(answer_.data(), std::ssize(answer_) / size(), size());
  }

 private:
  static std::int32_t size() { return static_cast<std::int32_t>(tokens().size()); }
  std::vector<float> answer_;
};

}  // namespace

int main(int argc, char** argv) {
  // Prints the part that is named, or all.
  auto const part = [&](std::string const& name) {
    std::cout.clear();
    if (argc > 1 && argv[1] != name) std::cout.setstate(std::ios::failbit);
  };
  Babbler model;
  // [trie]
  sluice::TokenBytes const bytes(tokens());                 // the bytes of each token
  sluice::TokenTrie const trie(bytes, model.vocabulary());  // made once for a model
  // [/trie]

  part("schema");
  // [schema]
  auto const booking = sluice::Grammar::from_json_schema(R"({
    "type": "object",
    "properties": {
      "name": {"type": "string", "maxLength": 12},
      "seats": {"type": "integer", "minimum": 1, "maximum": 8},
      "window": {"type": "boolean"}
    },
    "required": ["name", "seats"],
    "additionalProperties": false
  })");
  sluice::BeamSearch const beam{.width = 4, .length = {.max = 24}};
  sluice::Structure const structure(booking, trie);

  auto const results = sluice::decode(model, std::vector<std::monostate>(1), beam, structure);
  std::cout << bytes.text(results[0].hypotheses[0].tokens) << '\n';
  // [/schema]

  part("tools");
  // [tools]
  auto const* const tools = R"([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "days"], "additionalProperties": false}}}])";
  auto const llama = sluice::ToolFormat::llama3;
  sluice::Structure const call(sluice::tool_calls(llama, tools, {.choice = sluice::ToolChoice::required}), trie);
  sluice::BeamSearch const beams{.width = 4, .length = {.max = 120}};
  auto const called = sluice::decode(model, std::vector<std::monostate>(1), beams, call);
  sluice::ToolCallParser parser(llama, tools);
  for (auto const token : called[0].hypotheses[0].tokens)  // as they come
    for (auto const& [kind, number, text] : parser.append(trie.spelling(token)))
      if (kind == sluice::ToolCallEvent::Kind::begun) std::cout << number << ": " << text << ' ';
      else std::cout << text;
  std::cout << '\n';
  // [/tools]

  part("certain");
  // [certain]
  sluice::Structure const spelt(booking, trie, {.certain = sluice::CertainText::longest});
  sluice::Blockwise<> const blocks{.block = 8, .length = {.max = 24}};
  auto const statistics =
      sluice::decode_each(model, std::vector<std::monostate>(1), blocks, spelt, [&](sluice::Result&& result) {
        auto const& tokens = result.hypotheses[0].tokens;
        std::cout << bytes.text(tokens) << '\n' << tokens.size() << " tokens, ";
      });
  std::cout << statistics.model_calls << " calls\n";
  // [/certain]

  part("searches");
  // [searches]
  auto const ticket = sluice::Grammar::from_json_schema(R"({
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "a ticket", "examples": [], "x-owner": "box office",
    "type": "object",
    "properties": {
      "day": {"type": "string", "format": "date"},
      "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 3, "maxLength": 6},
      "seats": {"type": "integer", "multipleOf": 2, "exclusiveMinimum": 0, "maximum": 8}
    },
    "patternProperties": {"^x-": {"type": "boolean"}},
    "propertyNames": {"maxLength": 6},
    "required": ["day", "code"],
    "if": {"required": ["seats"]}, "then": {"properties": {"code": {"not": {"pattern": "a"}}}},
    "additionalProperties": false
  })",
                                                        {.plain_numbers = true});
  sluice::Structure const rule(ticket, trie, {.certain = sluice::CertainText::longest});
  sluice::LengthLimits const length{.max = 48};
  auto const show = [&](std::string const& name, auto const& search) {
    auto const result = sluice::decode(model, std::vector<std::monostate>(1), search, rule)[0];
    auto const text = result.ok() ? bytes.text(result.hypotheses[0].tokens) : result.message;
    std::cout << name << text << (ticket.matches(text) ? "" : " (breaks the schema)") << '\n';
  };
  auto const token = [](char c) { return static_cast<Token>(c - ' ' + 1); };
  show("greedy              ", sluice::Greedy{.length = length});
  show("beam                ", sluice::BeamSearch{.width = 4, .length = length});
  show("sampling            ", sluice::Sample{.length = length});
  show("speculation         ", sluice::Blockwise<>{.block = 8, .length = length});
  show("with a phrase (DBA) ",
       sluice::ConstrainedBeamSearch<>{.beam = {.width = 8, .length = length},
                                       .constraints = sluice::Constraints({.all = {{token('x'), token('y')}}})});
  // [/searches]

  // [kinds]
  auto const moves = sluice::Grammar::from_gbnf(R"g(
    # a game in algebraic notation
    root ::= turn " " turn
    turn ::= [1-9] ". " move " " move
    move ::= [KQRBN]? [a-h] [1-8] | "O-O" "-O"?
  )g");
  auto const times = sluice::Grammar::from_regex("([01]\\d|2[0-3]):[0-5]\\d( (am|pm))?");
  // [/kinds]

  part("requests");
  // [requests]
  std::vector<sluice::Request<std::monostate, sluice::Sample>> requests;
  requests.push_back({.processors = sluice::Structure(moves, trie)});
  requests.push_back({.processors = sluice::Structure(times, trie)});
  requests.push_back({.prefix = {static_cast<Token>('1' - ' ' + 1)},  // the output begins with 1
                      .processors = sluice::Structure(times, trie)});
  for (auto const& result : sluice::decode(model, std::move(requests), sluice::Sample{}))
    std::cout << bytes.text(result.hypotheses[0].tokens) << '\n';
  // [/requests]

  part("short");
  // [short]
  auto hasty = beam;
  hasty.length.max = 5;  // tokens, including eos
  std::cout << sluice::decode(model, std::vector<std::monostate>(1), hasty, structure)[0].message << '\n';
  // [/short]

  part("named");
  // [named]
  auto const point =
      sluice::Grammar::from_json_schema(R"({"type": "array", "items": {"type": "integer"}, "maxItems": 2})");
  auto const clock = sluice::Grammar::from_regex("([01]\\d|2[0-3]):[0-5]\\d");
  auto const visit = sluice::Grammar::from_gbnf("root ::= \"at \" (point | time) (\" until \" time)?", {},
                                                {{"point", point}, {"time", clock}});
  for (auto const* const text : {"at [3,-1] until 12:30", "at 23:59", "at 24:00"})
    std::cout << text << (visit.matches(text) ? "" : " (does not match)") << '\n';
  // [/named]

  part("refused");
  // [refused]
  try {
    (void)sluice::Grammar::from_gbnf("root ::= sum\nsum ::= sum \"+\" digit | [0-9]");
  } catch (std::invalid_argument const& problem) {
    std::cout << problem.what() << '\n';
  }
  try {
    (void)sluice::Grammar::from_json_schema(R"({"type": "array", "uniqueItems": true})");
  } catch (std::invalid_argument const& problem) {
    std::cout << problem.what() << '\n';
  }
  // [/refused]
  return 0;
}
