// SPDX-License-Identifier: Apache-2.0
// The cost of a grammar: compiling it, and the set of allowed tokens of a state, on the first visit and later. Outputs
// are drawn at random from the allowed tokens, over a vocabulary of byte strings made by random merges. Then the memory of
// compiled grammars (glibc only), and how one Structure for two threads scales.
//
//   sluice.bench.grammar [tokens] [outputs] [file of a vocabulary: one token a line, in hexadecimal; empty: control] [eager]
//                        [file of JSON schemas: one a line]
//
// A file named - means none; without schemas, those of the first table are taken.
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include "cpu_clock.hpp"
#include "grammar_schemas.hpp"
#include "grammar_vocabulary.hpp"

#if defined(__linux__)
#include <sys/resource.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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
      if (token == trie.data().vocabulary().eos[0]) break;
    }
    wrong += grammar.matches(text) ? 0 : 1;
  }
  std::printf("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f | %.1f | %.2f | %.2f | %zu |\n", name.c_str(),
              structure.sizes().first, compiling, joining, first.at(0.5), first.at(0.99), warm.at(0.5), warm.at(0.99),
              tight.at(0.5), tight.at(0.99), tight_warm.at(0.99), next.at(0.5), wrong);
  std::fflush(stdout);
}

using Schemas = std::vector<std::pair<std::string, std::string>>;

/// Bytes that are allocated now; 0: unknown.
std::size_t allocated() {
#if defined(__GLIBC__)
  auto const now = mallinfo2();
  return now.uordblks + now.hblkhd;
#else
  return 0;
#endif
}

/// The memory of compiled grammars; returns the grammars.
std::vector<sluice::Grammar> memory(Schemas const& schemas) {
  std::vector<sluice::Grammar> grammars;
  grammars.reserve(schemas.size());
  Times kibibytes;
  for (auto const& [name, text] : schemas) {
    auto const before = allocated();
    try {
      grammars.push_back(sluice::Grammar::from_json_schema(text, {.white_space = -1}));
      kibibytes.all.push_back(static_cast<double>(allocated() - before) / 1024);
    } catch (std::invalid_argument const&) {  // refused
    }
  }
  if (allocated() > 0 && !kibibytes.all.empty())
    std::printf("\n%zu compiled grammars, KiB each: median %.0f, 99 %% %.0f, most %.0f\n", grammars.size(),
                kibibytes.at(0.5), kibibytes.at(0.99), kibibytes.at(1));
  return grammars;
}

/// What a thread did: CPU seconds, masks, and how often it waited (for another thread, say).
struct Work {
  double seconds = 0;
  std::int64_t masks = 0, waits = 0;
};

/// Draws every n-th output of at most 100 tokens under each grammar. \param limited  it must be complete by then
Work draw(std::vector<sluice::Structure> const& structures, int outputs, int first, int step, bool limited) {
  Work out;
#if defined(__linux__)
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
#endif
  out.seconds = sluice::bench::seconds([&] {
    for (auto const& structure : structures)
      for (auto output = first; output < outputs; output += step) {
        std::mt19937_64 random(static_cast<unsigned>(output));
        auto state = structure.start();
        for (int i = 0; i < 100; ++i, ++out.masks) {
          auto const set = structure.may_follow(state, limited ? 100 - i : sluice::Limits::unlimited);
          auto const words = set->words();
          if (words.empty()) break;  // behind the end
          auto w = random() % words.size();
          for (std::size_t tried = 0; tried < words.size() && words[w] == 0; ++tried) w = (w + 1) % words.size();
          if (words[w] == 0) break;
          state =
              structure.next(state, static_cast<Token>(w * 64 + static_cast<std::size_t>(std::countr_zero(words[w]))));
        }
      }
  });
#if defined(__linux__)
  getrusage(RUSAGE_THREAD, &after);
  out.waits = after.ru_nvcsw - before.ru_nvcsw;
#endif
  return out;
}

/// The same outputs by one thread and by two, with fresh states: how much less CPU time each of the two needs.
void scaling(std::vector<sluice::Grammar> const& grammars, sluice::TokenTrie const& trie, int outputs, bool limited) {
  auto const fresh = [&] {
    std::vector<sluice::Structure> all;
    all.reserve(grammars.size());
    for (auto const& grammar : grammars) all.emplace_back(grammar, trie);
    return all;
  };
  (void)draw(fresh(), outputs, 0, 1, limited);  // what all grammars share is made
  auto const one = draw(fresh(), outputs, 0, 1, limited);
  auto const shared = fresh();
  std::array<Work, 2> two;
  std::thread other([&] { two[1] = draw(shared, outputs, 1, 2, limited); });
  two[0] = draw(shared, outputs, 0, 2, limited);
  other.join();
  auto const most = (std::max)(two[0].seconds, two[1].seconds);
  std::printf("\n%lld masks%s: one thread %.3f s, two %.3f s and %.3f s (CPU): times %.2f; a thread waited %lld and "
              "%lld times\n",
              static_cast<long long>(one.masks), limited ? " within 100 tokens" : "", one.seconds, two[0].seconds,
              two[1].seconds, one.seconds / most, static_cast<long long>(two[0].waits),
              static_cast<long long>(two[1].waits));
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
  std::printf("%zu tokens, %d nodes, trie in %.0f ms; times of sets in microseconds\n\n", tokens.size(),
              trie.data().size(), sorting);
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
  Schemas schemas;
  if (argc > 5) {
    std::ifstream file(argv[5]);
    for (std::string line; std::getline(file, line);) schemas.emplace_back("", line);
  } else {
    for (auto const& [name, text] : bench::schemas()) schemas.emplace_back(name, text);
  }
  auto const grammars = memory(schemas);
  for (auto const limited : {false, true}) scaling(grammars, trie, outputs, limited);
  return 0;
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
