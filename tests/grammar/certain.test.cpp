// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/guessing.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <grammar/random_grammar.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

Table const certain_table{.size = 14, .eos_bias = 1};
TokenBytes const certain_bytes{
    std::vector<std::string>{"", "", "", "a", "b", "c", "ab", "ba", "cc", "abc", "bca", "cab", "(", ")"}};

TokenTrie certain_trie() { return {certain_bytes, {.size = 14, .bos = bos, .eos = {eos}, .never = {pad, bos}}}; }

/// Grammars in which much text is certain.
std::string certain_grammar(std::mt19937_64& random) {
  auto const one_of = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  auto const word = [&] {
    std::string letters;
    for (auto i = 2 + one_of(6); i > 0; --i) letters.push_back("abc"[one_of(3)]);
    return '"' + letters + '"';
  };
  std::string text = "root ::= " + word();
  for (auto i = 1 + one_of(3); i > 0; --i)
    text += one_of(2) == 0 ? " ( " + word() + " | " + word() + " )" : " [abc]{0,3} " + word();
  return text + (one_of(3) == 0 ? " ( \"(\" root \")\" )?" : "");
}

template <Search S>
std::vector<Result> decode_certain(S const& search, auto&& schedule, std::uint64_t& calls, auto const& wrap) {
  std::vector<TableRequest<S>> requests;
  for (std::uint64_t source = 0; source < 9; ++source) requests.push_back({.source = source, .seed = source + 3});
  CheckedTable<everything> model{TableModel<everything>(certain_table)};
  std::vector<Result> results;
  wrap(model, [&](auto& wrapped) {
    calls += decode_each(
                 wrapped, std::move(requests), search, [&](Result&& result) { results.push_back(std::move(result)); },
                 schedule)
                 .model_calls;
  });
  CHECK(model.report() == "");
  return results;
}

}  // namespace

TEST_CASE("certain tokens are verified in blocks without a model that guesses, and change nothing", "[certain]") {
  auto const trie = certain_trie();
  std::mt19937_64 random(5);
  std::uint64_t one_by_one = 0, in_blocks = 0, guessed = 0;
  for (int i = 0; i < 60; ++i) {
    auto const text = certain_grammar(random);
    CAPTURE(text);
    auto const most = 14 + static_cast<std::int32_t>(random() % 12);
    for (auto const certain : {CertainText::any, CertainText::longest}) {
      Structure const structure(Grammar::from_gbnf(text), trie, {.certain = certain});
      auto const as_it_is = [](auto& model, auto const& use) { use(model); };
      auto const with_guesses = [](auto& model, auto const& use) {
        TableModel<everything> itself(certain_table);
        Speculated drafted(model, DraftModel(itself));
        Guessing guessing(drafted, Guesses::corrupted, 5);
        use(guessing);
      };
      Processed<Greedy> const greedy{Greedy{.length = {.max = most}}, structure};
      auto const expected = decode_certain(greedy, Batched{.size = 1}, one_by_one, as_it_is);
      auto const check = [&](std::vector<Result> const& found) {
        for (std::size_t k = 0; k < found.size(); ++k) {
          REQUIRE(found[k].message == expected[k].message);
          if (expected[k].hypotheses.empty()) continue;
          auto const &h = found[k].hypotheses[0], &e = expected[k].hypotheses[0];
          CHECK(h.tokens == e.tokens);
          CHECK(h.log_probs == e.log_probs);
          CHECK(h.finished == e.finished);
        }
      };
      std::uint64_t unused = 0;
      Processed<Blockwise<>> const blocks{Blockwise<>{.block = 5, .length = {.max = most}}, structure};
      check(decode_certain(blocks, Batched{.size = 1}, in_blocks, as_it_is));
      check(decode_certain(blocks, Streaming{}, unused, as_it_is));
      check(decode_certain(blocks, Batched{.size = 4}, guessed, with_guesses));
      auto adaptive = blocks;
      adaptive.search.adaptive = true;
      check(decode_certain(adaptive, Batched{.size = 4}, unused, with_guesses));
      Processed<Sample> const sample{Sample{.length = {.max = most}}, structure};
      auto const drawn = decode_certain(sample, Batched{.size = 4}, unused, as_it_is);
      Processed<Blockwise<acceptance::Sampling>> const samples{
          Blockwise<acceptance::Sampling>{.block = 5, .length = {.max = most}}, structure};
      auto const drawn_in_blocks = decode_certain(samples, Batched{.size = 4}, unused, as_it_is);
      for (std::size_t k = 0; k < drawn.size(); ++k)
        if (!drawn[k].hypotheses.empty())
          CHECK(drawn[k].hypotheses[0].tokens == drawn_in_blocks[k].hypotheses[0].tokens);
    }
  }
  INFO(one_by_one << " calls one by one, " << in_blocks << " in blocks");
  CHECK(in_blocks * 3 < one_by_one * 2);
}

TEST_CASE("the longest tokens spell certain text, and outputs stay whole", "[certain]") {
  auto const trie = certain_trie();
  std::mt19937_64 random(8);
  std::size_t fewer = 0;
  for (int i = 0; i < 150; ++i) {
    auto const text = certain_grammar(random);
    CAPTURE(text);
    auto const grammar = Grammar::from_gbnf(text);
    Structure const any(grammar, trie), longest(grammar, trie, {.certain = CertainText::longest});
    for (auto const most : {8, 13, 25}) {
      BeamSearch const beam{.width = 3, .n_best = 3, .length = {.max = most}};
      std::uint64_t unused = 0;
      auto const as_it_is = [](auto& model, auto const& use) { use(model); };
      auto const free = decode_certain(Processed<BeamSearch>{beam, any}, Batched{.size = 4}, unused, as_it_is);
      auto const found = decode_certain(Processed<BeamSearch>{beam, longest}, Batched{.size = 4}, unused, as_it_is);
      for (std::size_t k = 0; k < found.size(); ++k) {
        REQUIRE(found[k].message == free[k].message);
        for (auto const& h : found[k].hypotheses) {
          REQUIRE(h.finished);
          REQUIRE(h.tokens.size() <= static_cast<std::size_t>(most));
          REQUIRE(grammar.matches(certain_bytes.text(h.tokens)));
        }
        if (!found[k].hypotheses.empty())
          fewer += found[k].hypotheses[0].tokens != free[k].hypotheses[0].tokens ? 1 : 0;
      }
    }
  }
  CHECK(fewer > 100);
}

TEST_CASE("the longest token is chosen as far as none reaches beyond what is certain", "[certain]") {
  auto const trie = certain_trie();
  auto const only = [&](std::string const& gbnf, std::vector<Token> const& before = {}) {
    Structure const structure(Grammar::from_gbnf(gbnf), trie, {.certain = CertainText::longest});
    auto state = structure.start();
    for (auto const token : before) state = structure.next(state, token);
    return structure.may_follow(state, Limits::unlimited)->only();
  };
  CHECK(only(R"(root ::= "abcab" [()])") == 9);        // abc
  CHECK(only(R"(root ::= "abcab" [()])", {9}) == 6);   // ab
  CHECK(only(R"(root ::= "ab" [abc]*)") == -1);        // abc extends beyond
  CHECK(only(R"(root ::= "ab" [ab]*)") == 6);          // abc is not allowed
  CHECK(only(R"(root ::= "ab" "c"?)") == -1);          // the text may end after ab
  CHECK(only(R"(root ::= "(" [abc])") == 12);          // only one token
  CHECK(only(R"(root ::= "a" "(")", {3, 12}) == eos);  // only eos is left
  CHECK(only(R"(root ::= [ab] "c")") == -1);
}

TEST_CASE("what is worked out at once is what is worked out later", "[certain]") {
  auto const trie = certain_trie();
  std::mt19937_64 random(11);
  for (int i = 0; i < 40; ++i) {
    auto const grammar = Grammar::from_gbnf(certain_grammar(random));
    Structure const eager(grammar, trie, {.eager = true}), lazy(grammar, trie);
    auto now = eager.start(), later = lazy.start();
    for (auto left = 20; left > 0; --left) {
      auto const set = lazy.may_follow(later, left);
      REQUIRE(std::ranges::equal(set->words(), eager.may_follow(now, left)->words()));
      std::vector<Token> some;
      for (Token t = 0; t < 14; ++t)
        if (set->contains(t)) some.push_back(t);
      if (some.empty()) break;
      auto const token = some[random() % some.size()];
      now = eager.next(now, token), later = lazy.next(later, token);
    }
  }
  auto const counting = Grammar::from_gbnf("root ::= [abc]{0,900}");
  CHECK_THROWS_AS(Structure(counting, trie, {.memory = 1000, .eager = true}), std::length_error);
}
