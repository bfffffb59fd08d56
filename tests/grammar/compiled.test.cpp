// SPDX-License-Identifier: Apache-2.0
// Compiled grammars as bytes, and what their rules have matched.
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
#include <string_view>
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
      for (Token token = 0; token < trie().data().vocabulary().size; ++token)
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
    CHECK(again.to_bytes() == bytes);
    compare(grammar, again, random);
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
            while (allowed != nullptr && token < trie().data().vocabulary().size && !allowed->contains(token)) ++token;
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

namespace {

using Captured = std::vector<std::pair<std::string, std::string>>;

/// The tokens of a text: single bytes, and control tokens by their name.
std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text.substr(i).starts_with("<|x|>")) out.push_back(trie().data().vocabulary().size - 2), i += 4;
    else out.push_back(static_cast<unsigned char>(text[i]));
  return out;
}

}  // namespace

TEST_CASE("Captures: what rules have matched in a finished output", "[grammar]") {
  struct Case {
    std::string_view grammar, text;
    Captured captured;
  };
  std::vector<Case> const cases{
      {"start: w \"!\" v*\nw[capture]: /[a-z]+/\nv[capture=\"number\"]: \"-\" /[0-9]+/",
       "abc!-12-3",
       {{"w", "abc"}, {"number", "-12"}, {"number", "-3"}}},
      {"start[capture]: w \"x\"\nw[capture, suffix=\"<end>\"]: /.*/",
       "foo<end>x",
       {{"start", "foo<end>x"}, {"w", "foo"}}},
      {"start: o\no[capture]: w \"<end>\"\nw[capture, stop=\"<end>\"]: /.*/",
       "foo<end>",
       {{"o", "foo<end>"}, {"w", "foo"}}},
      {"start: w\nw[capture, lazy]: /.*<end>/", "foo<end>", {{"w", "foo<end>"}}},
      {"start: list\nlist[capture]: \"(\" (list | \"a\")* \")\"",
       "(a(a)())",
       {{"list", "(a(a)())"}, {"list", "(a)"}, {"list", "()"}}},
      {"start: e\ne: e \"+\" t | t\nt[capture]: /[0-9]/ | \"(\" e \")\"",
       "1+(2+3)",
       {{"t", "1"}, {"t", "(2+3)"}, {"t", "2"}, {"t", "3"}}},
      {"start: a b\na[capture]: A\nb[capture=\"B\"]: A A\nA: /[a-z]/\n%ignore \" \"",
       "x  y z ",
       {{"a", "x"}, {"B", "y z"}}},
      {"start: a %json {\"type\": \"array\"}\na[capture]: <|x|> /a*/", "<|x|>aa[1]", {{"a", "aa"}}},
      {"start: a \"b\"\na[capture]: /a*/", "b", {}},
      {"start: a? \"b\"?\na[capture]: /a*/", "", {}}};
  for (auto const& [grammar, text, captured] : cases) {
    INFO(grammar);
    auto const bytes = lark_grammar(grammar).to_bytes();
    Structure const structure(Grammar::from_bytes(bytes), trie());
    CHECK(structure.captures(tokens_of(text)) == captured);
    auto ended = tokens_of(text);
    ended.push_back(trie().data().vocabulary().size - 1);
    CHECK(structure.captures(ended) == captured);
    CHECK_THROWS_AS(structure.captures(tokens_of(std::string(text) + "?")), std::invalid_argument);
  }
  Structure const gbnf(
      Grammar::from_gbnf("root ::= w \"!\" v*\nw[capture] ::= [a-z]+\nv[ capture = \"number\" ] ::= \"-\" [0-9]"),
      trie());
  CHECK(gbnf.captures(tokens_of("abc!-1-3")) == Captured{{"w", "abc"}, {"number", "-1"}, {"number", "-3"}});
  Structure const spaced(lark_grammar("start: a\na[capture]: / ?[a-z]+/").behind_space(), trie());
  CHECK(spaced.captures(tokens_of(" ab")) == Captured{{"a", "ab"}});
  CHECK(spaced.captures(tokens_of("  ab")) == Captured{{"a", " ab"}});
  Structure const counted(lark_grammar("start: t \"b\"\nt[capture, max_tokens=2]: /[ab]*/"), trie());
  CHECK(counted.captures(tokens_of("bab")) == Captured{{"t", "ba"}});
  CHECK_THROWS_AS(counted.captures(tokens_of("baab")), std::invalid_argument);
  CHECK(counted.captures(std::vector<Token>{258, 258, 'b'}) == Captured{{"t", "abab"}});
  CHECK(Structure().captures({}).empty());
  CHECK_THROWS_WITH(lark_grammar("start[capture]: start \"a\" | \"b\""),
                    Catch::Contains("start: begins with itself: capture a rule around it"));
}

TEST_CASE("Captures: of several readings the longest rule at each place counts", "[grammar]") {
  std::vector<std::string> const patterns{"a*", "(ab)*", "b", "[ab]{1,2}", "ab?|b", "a+b*", "(a|ba)?"};
  std::mt19937_64 random(11);
  int several = 0;
  for (int round = 0; round < rounds(40); ++round) {
    std::vector<Grammar> rules;
    std::string text = "start: r0 r1 r2";
    for (int r = 0; r < 3; ++r) {
      auto const& pattern = patterns[random() % patterns.size()];
      rules.push_back(Grammar::from_regex(pattern));
      text += "\nr" + std::to_string(r) + "[capture]: /" + pattern + "/";
    }
    INFO(text);
    Structure const structure(lark_grammar(text), trie());
    for (std::size_t size = 1; size <= 5; ++size)
      for (std::size_t bits = 0; bits < std::size_t{1} << size; ++bits) {
        std::string one;
        for (std::size_t i = 0; i < size; ++i) one += (bits >> i & 1) == 0 ? 'a' : 'b';
        // Whether the rules from one on match the rest, and what is captured of it.
        auto const read = [&](auto const& self, std::size_t rule, std::size_t from, Captured* out) -> bool {
          if (from == size)
            return std::all_of(rules.begin() + static_cast<std::ptrdiff_t>(rule), rules.end(),
                               [](auto const& its) { return its.matches(""); });
          for (auto end = size; end > from; --end)
            for (auto r = rule; r < 3; ++r) {
              if (r > rule && !rules[r - 1].matches("")) break;
              if (!rules[r].matches(one.substr(from, end - from)) || !self(self, r + 1, end, nullptr)) continue;
              if (out != nullptr) out->emplace_back("r" + std::to_string(r), one.substr(from, end - from));
              return self(self, r + 1, end, out);
            }
          return false;
        };
        Captured wanted;
        INFO(one);
        if (read(read, 0, 0, &wanted)) {
          CHECK(structure.captures(tokens_of(one)) == wanted);
          several += wanted.size() > 1 ? 1 : 0;
        } else {
          CHECK_THROWS_AS(structure.captures(tokens_of(one)), std::invalid_argument);
        }
      }
  }
  CHECK(several > 100);
}
