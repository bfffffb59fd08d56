// SPDX-License-Identifier: Apache-2.0
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/tool_calls.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <grammar/mask_comparison.hpp>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Tokens, of which some have names and no bytes. The last is eos.
struct Words {
  std::vector<std::string> bytes;
  std::vector<std::pair<std::string, Token>> names;

  Token end() const { return static_cast<Token>(bytes.size()) - 1; }
  TokenTrie trie() const { return {TokenBytes(bytes), vocabulary_of(bytes), names}; }
};

/// An expression over letters and tokens.
struct Term {
  enum Kind { literal, tokens, sequence, choice, repeat } kind = literal;
  std::string text{};         // of a literal; of tokens: as GBNF
  std::set<Token> allowed{};  // tokens
  std::vector<Term> parts{};
  int minimum = 0, maximum = -1;
};

std::string written(Term const& term) {
  std::string out;
  switch (term.kind) {
    case Term::literal: return '"' + term.text + '"';
    case Term::tokens: return term.text;
    case Term::sequence:
      for (auto const& part : term.parts) out += written(part) + ' ';
      return '(' + out + ')';
    case Term::choice:
      for (auto const& part : term.parts) out += (out.empty() ? "" : " | ") + written(part);
      return '(' + out + ')';
    case Term::repeat: break;
  }
  return written(term.parts[0]) + '{' + std::to_string(term.minimum) + ',' +
         (term.maximum < 0 ? "" : std::to_string(term.maximum)) + '}';
}

/// Where texts of a term may end within a sequence of tokens: (token, byte of it).
class OverTokens {
 public:
  using Place = std::pair<std::size_t, std::size_t>;
  OverTokens(Words const& words, std::vector<Token> const& output) : words_(words), output_(output) {}
  bool matches(Term const& term) const { return of(term, {{0, 0}}).contains({output_.size(), 0}); }

 private:
  std::string const& bytes(std::size_t i) const { return words_.bytes[static_cast<std::size_t>(output_[i])]; }
  std::set<Place> of(Term const& term, std::set<Place> from) const {
    std::set<Place> out;
    switch (term.kind) {
      case Term::literal:
        for (auto const c : term.text) {
          out.clear();
          for (auto const& [token, byte] : from)
            if (token < output_.size() && byte < bytes(token).size() && bytes(token)[byte] == c)
              out.insert(byte + 1 == bytes(token).size() ? Place(token + 1, 0) : Place(token, byte + 1));
          from = out;
        }
        return from;
      case Term::tokens:
        for (auto const& [token, byte] : from)
          if (token < output_.size() && byte == 0 && term.allowed.contains(output_[token])) out.insert({token + 1, 0});
        return out;
      case Term::sequence:
        for (auto const& part : term.parts) from = of(part, std::move(from));
        return from;
      case Term::choice:
        for (auto const& part : term.parts) out.merge(of(part, from));
        return out;
      case Term::repeat: break;
    }
    for (int i = 0; i < term.minimum; ++i) from = of(term.parts[0], std::move(from));
    out = from;
    for (int i = term.minimum; term.maximum < 0 ? !from.empty() && i < 20 : i < term.maximum; ++i) {
      from = of(term.parts[0], std::move(from));
      out.insert(from.begin(), from.end());
    }
    return out;
  }
  Words const& words_;
  std::vector<Token> const& output_;
};

/// Compares masks with the result of trying all sequences of tokens.
class Tried {
 public:
  Tried(Words const& words, Term const& term, Grammar const& grammar)
      : words_(words), term_(term), structure_(grammar, words.trie()) {}
  void compare() { compare(structure_.start(), {}, 2); }
  int sets = 0, open = 0;

 private:
  int fewest(std::vector<Token>& output, int depth) {
    auto const [it, fresh] = known_.try_emplace(output, false);
    if (fresh) it->second = OverTokens(words_, output).matches(term_);
    if (it->second) return 0;
    auto best = sluice::test::far;
    for (Token token = 0; depth > 0 && token < words_.end(); ++token) {
      output.push_back(token);
      best = std::min(best, 1 + fewest(output, std::min(depth, best) - 1));
      output.pop_back();
    }
    return std::min(best, sluice::test::far);
  }
  void compare(Structure::State const& state, std::vector<Token> output, int steps) {
    constexpr int depth = 2;
    auto const complete = fewest(output, 0) == 0;
    REQUIRE(structure_.complete(state) == complete);
    auto const all = structure_.may_follow(state, Limits::unlimited);
    CHECK(all->contains(words_.end()) == complete);
    CHECK(all->words().size() == 1);
    ++sets;
    for (Token token = 0; token < words_.end(); ++token) {
      output.push_back(token);
      INFO("after " << output.size() - 1 << " tokens, " << token);
      auto const need = fewest(output, depth);
      for (std::int32_t left = 1; left <= depth + 2; ++left)
        REQUIRE(structure_.may_follow(state, left)->contains(token) == (need + 2 <= left));
      if (need < sluice::test::far) REQUIRE(all->contains(token));
      auto const next = structure_.next(state, token);
      REQUIRE(structure_.alive(next) == all->contains(token));
      open += all->contains(token) ? 1 : 0;
      if (steps > 0 && structure_.alive(next)) compare(next, output, steps - 1);
      output.pop_back();
    }
  }

  Words const& words_;
  Term const& term_;
  Structure structure_;
  std::map<std::vector<Token>, bool> known_;
};

class RandomTerms {
 public:
  RandomTerms(std::mt19937_64& random, Words const& words) : random_(random), words_(words) {}
  int draw(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  Term term(int depth) {
    auto const kind = depth == 0 ? draw(0, 1) : draw(0, 4);
    if (kind == 0)
      return {.kind = Term::literal, .text = std::vector<std::string>{"a", "b", "ab", "ba"}[random_() % 4]};
    if (kind == 1) return tokens();
    Term out{.kind = static_cast<Term::Kind>(kind)};
    for (auto n = kind == Term::repeat ? 1 : draw(1, 3); n > 0; --n) out.parts.push_back(term(depth - 1));
    out.minimum = draw(0, 2), out.maximum = draw(0, 2) == 0 ? -1 : out.minimum + draw(1, 2);
    return out;
  }

 private:
  Term tokens() {
    Term out{.kind = Term::tokens};
    auto complement = draw(0, 3) == 0;
    if (complement) out.text = "!";
    if (draw(0, 2) == 0) {
      auto const& [name, token] = words_.names[random_() % words_.names.size()];
      out.text += name, out.allowed = {token};
    } else {
      out.text += "<[";
      if (draw(0, 5) == 0) out.text += '^', complement = !complement;
      for (auto n = draw(1, 2); n > 0; --n) {
        auto const first = draw(0, words_.end() - 1), last = std::min(first + draw(0, 2), words_.end() - 1);
        if (out.text.back() != '[' && out.text.back() != '^') out.text += ',';
        out.text += std::to_string(first) + (last > first ? '-' + std::to_string(last) : "");
        for (auto token = first; token <= last; ++token) out.allowed.insert(token);
      }
      out.text += "]>";
    }
    if (!complement) return out;
    std::set<Token> others;
    for (Token token = 0; token < words_.end(); ++token)
      if (!out.allowed.contains(token)) others.insert(token);
    out.allowed = others;
    return out;
  }
  std::mt19937_64& random_;
  Words const& words_;
};

std::string why(std::string const& gbnf, Words const& words) {
  try {
    Structure const structure(Grammar::from_gbnf(gbnf), words.trie());
  } catch (std::invalid_argument const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("tokens as terminals: masks are what trying all sequences of tokens finds", "[grammar]") {
  std::mt19937_64 random(54);
  // A token whose text is a name, tokens without bytes, one that is no UTF-8.
  std::vector<Words> const all{
      {{"a", "ab", "<x>", "", "", "\xFF", ""}, {{"<x>", 2}, {"<c>", 3}, {"<d>", 4}}},
      {{"a", "b", "ba", "<c>", "", "\xC0", ""}, {{"<c>", 3}, {"<d>", 4}}},
  };
  int sets = 0, open = 0;
  for (int round = 0; round < rounds(300); ++round) {
    auto const& words = all[random() % all.size()];
    RandomTerms draw(random, words);
    auto const term = draw.term(3);
    auto const text = "root ::= " + written(term);
    INFO(text);
    Tried tried(words, term, Grammar::from_gbnf(text));
    tried.compare();
    sets += tried.sets, open += tried.open;
  }
  INFO(sets << " sets, " << open << " tokens");
  CHECK(sets > 1500);
  CHECK(open > sets);
}

TEST_CASE("tokens as terminals: more kinds than spare bytes", "[grammar]") {
  Words words;
  std::string any;
  for (int i = 0; i < 300; ++i) words.bytes.push_back(i % 3 == 0 ? "" : "x");
  words.bytes.emplace_back();
  for (int i = 0; i < 300; ++i)
    any += (i > 0 ? " | " : "") + ("<[" + std::to_string(i) + "]> \"" + (i % 7 == 0 ? "x" : "xx") + '"');
  Structure const structure(Grammar::from_gbnf("root ::= " + any), words.trie());
  auto const start = structure.start();
  auto const set = structure.may_follow(start, Limits::unlimited);
  for (Token token = 0; token < 300; ++token) {
    REQUIRE(set->contains(token));
    REQUIRE(structure.may_follow(start, 3)->contains(token) == (token % 7 == 0));
    auto const next = structure.next(start, token), after = structure.next(next, 1);
    CHECK_FALSE(structure.complete(next));
    CHECK(structure.complete(after) == (token % 7 == 0));
    CHECK(structure.complete(structure.next(after, 2)) == (token % 7 != 0));
  }
  CHECK_FALSE(set->contains(300));
}

TEST_CASE("an answer behind reasoning has the masks of one grammar for both", "[grammar]") {
  Words const words{{"a", "b", "\n", "ab", "<x>", "", ""}, {{"<c>", 5}}};
  auto const answer = R"((a "a" [ab]{3,20} | <c>+ ("b" "a"?)*)
a ::= "b" | "a" a "b")";
  auto const alone = Grammar::from_gbnf(std::string("root ::= ") + answer);
  int sets = 0;
  for (auto const budget : {0, 2, -1}) {
    auto const most = budget < 0 ? std::string() : std::to_string(budget);
    Structure const joined(after_reasoning(alone, {.begin = "<c>", .end = "<x>", .budget = budget}), words.trie());
    Structure const whole(Grammar::from_gbnf("root ::= <c> !<x>{0," + most + "} <x> \"\\n\"{0,2} " + answer),
                          words.trie());
    auto const compare = [&](auto const& self, Structure::State const& one, Structure::State const& other,
                             int steps) -> void {
      REQUIRE(joined.complete(one) == whole.complete(other));
      for (auto const left : {3, 6, 9, Limits::unlimited}) {
        auto const a = joined.may_follow(one, left)->words(), b = whole.may_follow(other, left)->words();
        REQUIRE(std::ranges::equal(a, b));
      }
      ++sets;
      for (Token token = 0; steps > 0 && token < words.end(); ++token)
        if (auto const next = joined.next(one, token); joined.alive(next))
          self(self, next, whole.next(other, token), steps - 1);
    };
    compare(compare, joined.start(), whole.start(), 5);
  }
  CHECK(sets > 300);
  // As text, with a budget of characters.
  auto const text = after_reasoning(Grammar::from_regex("[0-9]+"), {.end = "</t>", .budget = 4, .tokens = false});
  CHECK(text.matches("</t></t>1") == false);
  CHECK(text.matches("é</x</t>\n\n12"));
  CHECK_FALSE(text.matches("é</xx</t>12"));
  CHECK_FALSE(text.matches("é</x</t>\n\n\n12"));
  CHECK(after_reasoning(Grammar(), {.end = "</t>", .tokens = false}).matches("a</t>b</t>c"));
  CHECK_THROWS_WITH(after_reasoning(alone, {.end = ""}), "sluice: reasoning.end = : must not be empty");
  CHECK_THROWS_WITH(after_reasoning(alone, {.budget = -2}), "sluice: reasoning.budget = -2: must be -1 or more");
  CHECK_THROWS_WITH(after_reasoning(alone.behind_space()),
                    "sluice: answer = behind_space(): is not supported behind reasoning");
}

TEST_CASE("tokens as terminals: names, and what is refused", "[grammar]") {
  Words const words{{"a", "<x>", "", "", ""}, {{"<|im_start|>", 2}, {"<pad>", 3}, {"<|im_end|>", 4}}};
  // As llama.cpp's guide has it.
  auto const think = Grammar::from_gbnf("root ::= <|im_start|> !<x>* <x> \"a\"*");
  Structure const structure(think, words.trie());
  auto state = structure.next(structure.start(), 2);
  for (Token const token : {0, 3, 2, 1, 0}) state = structure.next(state, token);
  CHECK(structure.complete(state));
  CHECK_FALSE(structure.alive(structure.next(state, 3)));
  CHECK(Grammar::from_gbnf("root ::= <|im_start|> \"a\" <x>?").matches("<|im_start|>a<x>"));
  // A token without bytes is not its spelling.
  Structure const spelt(Grammar::from_gbnf("root ::= \"<|im_start|>\" | \"a\""), words.trie());
  CHECK_FALSE(spelt.may_follow(spelt.start(), Limits::unlimited)->contains(2));

  CHECK_THROWS_WITH(think.matches("a"),
                    "sluice: grammar = !<x>: a text does not say which tokens it is made of; only names of "
                    "tokens stand for their text");
  CHECK(why("root ::= <y>", words) == "sluice: grammar = <y>: the vocabulary has no token of this name; names of "
                                      "tokens without bytes are given to TokenTrie");
  CHECK(why("root ::= <[9]>", words) == "sluice: grammar = <[9]>: the vocabulary has the tokens 0 to 4");
  CHECK(why("root ::= \"a\" <|im_end|>", words) ==
        "sluice: grammar = <|im_end|>: this token ends outputs, or is never generated: leave it out; an output may end "
        "where the grammar does");
  CHECK(why("root ::= <[^*]>", words) == "sluice: grammar = <[^*]>: no token of the vocabulary is in this set");
  CHECK(why("root ::= !<y> <[*]> <[0-3]>", words) == "accepted");
  CHECK(why("root ::= <[2-1]>", words) ==
        "sluice: grammar, line 1, column 12: a range whose last token comes before its first");
  CHECK(why("root ::= <[1", words) == "sluice: grammar, line 1, column 13: ]> is missing");
  CHECK(why("root ::= <x", words) == "sluice: grammar, line 1, column 10: > is missing");
  CHECK(why("root ::= <>", words) == "sluice: grammar, line 1, column 10: the name of a token is missing");
  CHECK(why("root ::= !\"a\"", words) ==
        "sluice: grammar, line 1, column 11: a token is missing: <name> or <[number]>");
  CHECK(why("root ::= <[99999999999]>", words) ==
        "sluice: grammar, line 1, column 12: is no token's number: it is too large");
}
