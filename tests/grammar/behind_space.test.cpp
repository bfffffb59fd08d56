// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <grammar/random_grammar.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("one space at the beginning is not judged", "[grammar]") {
  std::mt19937_64 random(7);
  int compared = 0, matching = 0, spaced = 0;
  for (int round = 0; round < 600; ++round) {
    auto const rules = RandomGrammar(random, "a b").rules();
    auto const text = gbnf(rules);
    INFO(text);
    Grammar grammar;
    try {
      grammar = Grammar::from_gbnf(text);
    } catch (std::invalid_argument const&) {
      continue;
    }
    auto const behind = grammar.behind_space();
    for (auto number = 0; number < 5 * 81; ++number) {
      std::string output;  // all of up to four tokens, the shorter ones more than once
      for (auto i = number / 81, digits = number % 81; i > 0; --i, digits /= 3)
        output += "a b"[static_cast<std::size_t>(digits % 3)];
      auto const judged = output.starts_with(' ') ? output.substr(1) : output;
      auto const fits = recognises(rules, judged);
      INFO("'" << output << "'");
      REQUIRE(behind.matches(output) == fits);
      ++compared, matching += fits, spaced += fits && output != judged;
    }
  }
  INFO(compared << " compared, " << matching << " match, " << spaced << " behind a space");
  CHECK(matching > 1000);
  CHECK(spaced > 500);
}

TEST_CASE("behind a space: what may follow", "[grammar]") {
  std::vector<std::string> const tokens{" ", "a", " a", "  a", "b", " b", ""};
  Vocabulary const vocabulary{.size = 7, .bos = 6, .eos = {6}};
  TokenTrie const trie{TokenBytes(tokens), vocabulary};
  auto const allowed = [&](Grammar const& grammar, std::vector<Token> const& output) {
    Structure const structure(grammar, trie);
    auto state = structure.start();
    for (auto const token : output) state = structure.next(state, token);
    auto const set = structure.may_follow(state, Limits::unlimited);
    std::vector<Token> all;
    for (Token token = 0; token < vocabulary.size; ++token)
      if (set->contains(token)) all.push_back(token);
    return all;
  };
  auto const plain = Grammar::from_regex("a( b)*"), behind = plain.behind_space();
  CHECK(allowed(plain, {}) == std::vector<Token>{1});
  CHECK(allowed(behind, {}) == std::vector<Token>{0, 1, 2});
  CHECK(allowed(behind, {0}) == std::vector<Token>{1});
  CHECK(allowed(behind, {2}) == std::vector<Token>{0, 5, 6});
  CHECK(allowed(Grammar::from_regex(" a").behind_space(), {}) == std::vector<Token>{0, 3});
  CHECK(allowed(Grammar::from_regex("b?").behind_space(), {}) == std::vector<Token>{0, 4, 5, 6});
  CHECK(Grammar{}.behind_space().trivial());
}
