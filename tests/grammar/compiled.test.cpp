// SPDX-License-Identifier: Apache-2.0
// Compiled grammars as bytes.
#include <sluice/catalogue/detail/catalogue_format.hpp>
#include <sluice/catalogue/detail/marks.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/lark.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <grammar/mask_comparison.hpp>
#include <grammar/random_grammar.hpp>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Bytes, some pieces of JSON, a control token with a name, and eos.
TokenTrie const& trie() {
  static TokenTrie const made = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (auto const* const one : {"{\"", "\":", "ab", "ba", "aab", "\",\"", "true", "12", "<x>", " a", "é", "ab<"})
      tokens.emplace_back(one);
    tokens.emplace_back(), tokens.emplace_back();
    auto const control = static_cast<Token>(tokens.size()) - 2;
    return TokenTrie(TokenBytes(tokens), vocabulary_of(tokens), {{"<|x|>", control}});
  }();
  return made;
}

std::vector<Grammar> examples(int random_ones) {
  std::vector<Grammar> out{
      Grammar(),
      Grammar::from_regex("[a-c]{3,900}|é+"),
      Grammar::from_gbnf("root ::= e\ne ::= e \"+\" t | t\nt ::= [ab]{2,70} | \"(\" e \")\" | <|x|>"),
      Grammar::from_gbnf("root ::= ((\"a\"? \"b\"){3,200} <[3-70]>){2,90} | !<|x|> \"c\"").behind_space(),
      Grammar::from_json_schema(
          R"({"type": "object", "properties": {"ab": {"type": "string", "minLength": 3, "maxLength": 5000},
          "b": {"type": "array", "items": {"enum": [1, 2.5, "é"]}, "maxItems": 300}}, "required": ["b"], "x-unknown": 1})"),
      Grammar::from_json_schema(R"({"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [{"type": "integer"},
          {"type": "array", "items": {"$ref": "#/$defs/t"}}]}}})"),
      lark_grammar("start: t \"<\" %json {\"type\": \"integer\"} u\nt[max_tokens=3]: /[ab]*/\nu[max_chars=2]: /é*/"),
      structural_tag(
          R"({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<x>"], "tags": [{"begin": "<x>", "end": "<",
          "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}}]}})")};
  std::mt19937_64 random(5);
  while (random_ones > 0) {
    auto const text = gbnf(RandomGrammar(random, "ab").rules());
    try {
      out.push_back(Grammar::from_gbnf(text));
      --random_ones;
    } catch (std::invalid_argument const&) {  // no text, or left-recursive
      continue;
    }
  }
  return out;
}

/// Walks through both at random, and compares what may follow.
void compare(Grammar const& one, Grammar const& other, std::mt19937_64& random) {
  CHECK(one.trivial() == other.trivial());
  CHECK(one.ignored() == other.ignored());
  if (one.trivial()) return;
  Structure const a(one, trie()), b(other, trie());
  CHECK(a.sizes() == b.sizes());
  for (int walk = 0; walk < 6; ++walk) {
    auto x = a.start(), y = b.start();
    for (int step = 0; step < 12; ++step) {
      REQUIRE(a.complete(x) == b.complete(y));
      auto const left = std::int32_t{1} << (random() % 16);
      auto const mine = a.may_follow(x, left), its = b.may_follow(y, left);
      REQUIRE((mine == nullptr) == (its == nullptr));
      if (mine == nullptr) break;
      REQUIRE(std::ranges::equal(mine->words(), its->words()));
      auto const all = a.may_follow(x, Limits::unlimited);
      REQUIRE(std::ranges::equal(all->words(), b.may_follow(y, Limits::unlimited)->words()));
      std::vector<Token> allowed;
      for (Token token = 0; token < trie().vocabulary().size; ++token)
        if (all->contains(token)) allowed.push_back(token);
      if (allowed.empty()) break;
      auto const token = allowed[random() % allowed.size()];
      x = a.next(x, token), y = b.next(y, token);
    }
  }
}

/// Makes the checksums right again.
void seal(std::vector<std::byte>& bytes) {
  detail::store_little(bytes.data() + 48, detail::hash_words(std::span<std::byte const>(bytes).subspan(64)));
  detail::store_little(bytes.data() + 56, detail::hash_words(std::span<std::byte const>(bytes).first(56)));
}

std::string objection(std::span<std::byte const> bytes) {
  try {
    (void)Grammar::from_bytes(bytes);
  } catch (std::runtime_error const& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("Compiled grammars: what was written and read gives the same masks", "[grammar]") {
  std::mt19937_64 random(54);
  for (auto const& grammar : examples(rounds(60))) {
    auto const bytes = grammar.to_bytes();
    CHECK(bytes.size() % 64 == 0);
    auto const again = Grammar::from_bytes(bytes);
    compare(grammar, again, random);
    compare(grammar, Grammar::from_bytes(again.to_bytes()), random);
  }
  auto const schema = Grammar::from_bytes(examples(0)[4].to_bytes());
  CHECK(schema.matches(R"({"ab":"aaab","b":[1,"é"]})"));
  CHECK_FALSE(schema.matches(R"({"ab":"aa","b":[]})"));
  CHECK(schema.ignored() == std::vector<std::string>{"x-unknown"});
  CHECK(Grammar::from_gbnf("root ::= \"<\" x \">\"", {}, {{"x", schema}}).matches("<{\"b\":[]}>"));
}

TEST_CASE("Compiled grammars: what is cut off, damaged or something else is refused", "[grammar]") {
  auto const bytes = lark_grammar("start: A <|x|> t\nA: /[a-c]{3,900}/\nt[max_tokens=3]: /[ab]*/").to_bytes();
  REQUIRE(objection(bytes).empty());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    if (objection(std::span(bytes).first(size)).find("grammar: ") != 0) FAIL(size);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      auto copy = bytes;
      copy[i] ^= std::byte{1} << bit;
      if (objection(copy).find("grammar: ") != 0) FAIL(i);
    }
  auto longer = bytes;
  longer.resize(bytes.size() + 64);
  CHECK(objection(longer) == "grammar: something follows the end");
  CHECK(objection({}) == "grammar: there is nothing to read");
  CHECK(objection(std::span(bytes).first(100)) == "grammar: cut off after 100 bytes");
  CHECK(objection(std::as_bytes(std::span("root ::= \"a\""))) == "grammar: these bytes are no compiled grammar");
  auto other = bytes;
  other[8] = std::byte{2};
  CHECK(objection(other) == "grammar: version 2 of the format is unknown; only 1 is known");
  other = bytes;
  other[100] ^= std::byte{1};
  CHECK(objection(other) == "grammar: damaged: the checksum is wrong");
}

TEST_CASE("Compiled grammars: other contents under right checksums are refused, or are a grammar", "[grammar]") {
  std::mt19937_64 random(7);
  int read = 0, refused = 0;
  for (auto const& grammar : examples(6)) {
    auto const bytes = grammar.to_bytes();
    for (int round = 0; round < rounds(300); ++round) {
      auto copy = bytes;
      for (auto changes = 1 + random() % 2; changes > 0; --changes) {
        auto const at = 64 + random() % (bytes.size() - 64) / 4 * 4;
        auto const word = detail::load_little<std::uint32_t>(copy.data() + at);
        std::uint32_t const values[] = {word + 1,
                                        word - 1,
                                        0,
                                        static_cast<std::uint32_t>(random() % 64),
                                        word ^ std::uint32_t{1} << random() % 32,
                                        0xFFFFFFFFu,
                                        0x7FFFFFFFu};
        detail::store_little(copy.data() + at, values[random() % std::size(values)]);
      }
      seal(copy);
      if (objection(copy).empty()) {
        ++read;
        try {
          Structure const structure(Grammar::from_bytes(copy), trie(), {.memory = std::size_t{1} << 20});
          auto state = structure.start();
          for (int step = 0; step < 8; ++step) {
            auto const allowed = structure.may_follow(state, step % 2 == 0 ? Limits::unlimited : 10);
            Token token = 0;
            while (allowed != nullptr && token < trie().vocabulary().size && !allowed->contains(token)) ++token;
            state = structure.next(state, token);
          }
        } catch (std::invalid_argument const&) {  // a token that is not there
        } catch (std::length_error const&) {      // too many states
        }
      } else {
        ++refused;
      }
    }
  }
  CHECK(read > refused / 20);
  CHECK(refused > read / 20);
}
