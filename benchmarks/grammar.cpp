// SPDX-License-Identifier: Apache-2.0
// The cost of a grammar: compiling it, and the set of allowed tokens of a state, on the first visit and later. Outputs
// are drawn at random from the allowed tokens, over a vocabulary of byte strings made by random merges.
//
//   sluice.bench.grammar [tokens] [outputs] [file of a vocabulary: one token a line, in hexadecimal; empty: control] [eager]
//
// A file named - means none.
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include "grammar_schemas.hpp"
#include "grammar_vocabulary.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using bench::merged_tokens, bench::milliseconds, bench::read_tokens, bench::Times;
using sluice::Token;

void measure(std::string const& name, auto const& compile, sluice::TokenTrie const& trie, int outputs, bool eager) {
  sluice::Grammar grammar;
  sluice::Structure structure;
  auto const compiling = milliseconds([&] { grammar = compile(); });
  auto const joining = milliseconds([&] {
    structure = sluice::Structure(grammar, trie, {.memory = std::size_t{1} << 30, .masks = 1 << 16, .eager = eager});
  });
  std::mt19937_64 random(2);
  Times first, warm, tight, tight_warm, next;
  std::size_t wrong = 0;
  for (int output = 0; output < outputs; ++output) {
    auto state = structure.start();
    std::int32_t const most = 300;
    std::string text;
    for (std::int32_t left = most; left > 0; --left) {
      std::shared_ptr<sluice::TokenSet const> set;
      auto const once = 1000 * milliseconds([&] { set = structure.may_follow(state, sluice::Limits::unlimited); });
      auto const again = 1000 * milliseconds([&] { set = structure.may_follow(state, sluice::Limits::unlimited); });
      if (once > 3 * again + 0.3) first.all.push_back(once);
      warm.all.push_back(again);
      auto const limited = 1000 * milliseconds([&] { set = structure.may_follow(state, left); });
      auto const repeated = 1000 * milliseconds([&] { set = structure.may_follow(state, left); });
      if (left < 60) tight.all.push_back(limited), tight_warm.all.push_back(repeated);
      std::vector<Token> some;
      auto const words = set->words();
      for (std::size_t w = 0; w < words.size(); ++w)
        for (auto bits = words[w]; bits != 0; bits &= bits - 1)
          some.push_back(static_cast<Token>(w * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
      if (some.empty()) break;
      auto const token = some[random() % some.size()];
      text += trie.bytes(token);
      next.all.push_back(1000 * milliseconds([&] { state = structure.next(state, token); }));
      if (token == trie.vocabulary().eos[0]) break;
    }
    wrong += grammar.matches(text) ? 0 : 1;
  }
  std::printf("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f | %.1f | %.2f | %.2f | %zu |\n", name.c_str(),
              structure.sizes().first, compiling, joining, first.at(0.5), first.at(0.99), warm.at(0.5), warm.at(0.99),
              tight.at(0.5), tight.at(0.99), tight_warm.at(0.99), next.at(0.5), wrong);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  auto const size = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : std::size_t{128'000};
  auto const outputs = argc > 2 ? std::atoi(argv[2]) : 50;
  auto const eager = argc > 4 && std::string(argv[4]) == "eager";
  auto const tokens = argc > 3 && std::string(argv[3]) != "-" ? read_tokens(argv[3]) : merged_tokens(size);
  sluice::TokenBytes const bytes(tokens);
  sluice::TokenTrie trie;
  auto const sorting = milliseconds([&] {
    trie = sluice::TokenTrie(bytes, {.size = static_cast<std::int32_t>(tokens.size()), .bos = 0, .eos = {0}});
  });
  std::printf("%zu tokens, %d nodes, trie in %.0f ms; times of sets in microseconds\n\n", tokens.size(), trie.size(),
              sorting);
  std::printf("| | nodes | compiled ms | joined ms | first median | first 99 %% | warm median | warm 99 %% | last 60 "
              "tokens, first: "
              "median | 99 %% | last 60, warm: 99 %% | next median | wrong |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (auto const& [name, text] : bench::schemas())
    measure(
        name, [&] { return sluice::Grammar::from_json_schema(text); }, trie, outputs, eager);
  measure(
      "JSON in GBNF", [&] { return sluice::Grammar::from_gbnf(bench::json_gbnf); }, trie, outputs, eager);
  measure(
      "date in a regex", [&] { return sluice::Grammar::from_regex("\\d{4}-\\d\\d-\\d\\d( [a-z]+)*"); }, trie, outputs,
      eager);
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
