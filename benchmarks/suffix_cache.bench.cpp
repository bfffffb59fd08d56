// SPDX-License-Identifier: Apache-2.0
// Look-ups in a SuffixCache, and insertions. Texts of 200 tokens (vocabulary of 32,000): words drawn so that the k-th is about 1/k as
// frequent and depends on the one before it, and pieces of earlier texts, so that matches of all lengths occur; or forms, of which
// nine tokens in ten are always the same. suffix_guess: one guess of up to 16 tokens for a text that continues an earlier one, or goes
// on in a new way, after another place of the cache each time; bytes_per_token is what the cache takes, us_per_insert what a token cost
// when it was filled.

#include <sluice/core/noise.hpp>
#include <sluice/speculative/detail/suffix_guesses.hpp>
#include <sluice/speculative/suffix_cache.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace {

using sluice::Token;

constexpr std::size_t length = 200;
constexpr Token vocabulary = 32000;

double uniform(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(sluice::derive(a, b) >> 11) / 9007199254740992.0;
}

/// Text `number`: `forms`, or words and pieces of other texts.
void write(std::uint64_t number, bool forms, std::vector<Token>& text) {
  text.clear();
  for (std::uint64_t n = 0; n < length; ++n) {
    auto const x = uniform(number, n);
    if (forms) {
      text.push_back(n % 10 == 9 ? static_cast<Token>(x * vocabulary) : static_cast<Token>(100 + n));
      continue;
    }
    auto const rank = static_cast<Token>(std::pow(static_cast<double>(vocabulary), x)) - 1;
    auto const before = text.empty() ? Token{0} : text.back();
    text.push_back(n % 3 == 0 ? rank : static_cast<Token>((before * 7 + rank % 40) % vocabulary));
  }
  if (forms || number < 10 || number % 4 != 0) return;
  std::vector<Token> other;  // every fourth repeats a piece of an earlier one
  write(sluice::derive(number, 1000) % number / 4 * 4 + 1, false, other);
  auto const begin = sluice::derive(number, 1001) % 100;
  for (std::size_t i = begin; i < begin + 80; ++i) text[i] = other[i];
}

struct Filled {
  std::unique_ptr<sluice::SuffixCache> cache;
  double seconds = 0, slowest = 0;
};

Filled const& filled(std::int64_t tokens, bool forms) {
  static std::map<std::pair<std::int64_t, bool>, Filled> all;
  auto& made = all[{tokens, forms}];
  if (made.cache) return made;
  made.cache = std::make_unique<sluice::SuffixCache>(tokens * 4 / 3);
  std::vector<Token> text;
  for (std::uint64_t number = 0; static_cast<std::int64_t>(number * length) < tokens; ++number) {
    write(number, forms, text);
    auto const start = std::chrono::steady_clock::now();
    made.cache->insert({}, text);
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    made.seconds += seconds;
    if (seconds > made.slowest) made.slowest = seconds;
  }
  return made;
}

void suffix_guess(benchmark::State& state) {
  auto const tokens = state.range(0);
  auto const forms = state.range(1) != 0;
  auto const leaves = static_cast<std::int32_t>(state.range(2));
  auto const& [cache, seconds, slowest] = filled(tokens, forms);
  std::uint64_t const texts = static_cast<std::uint64_t>(tokens) / length;
  // Contexts: an earlier text, of which the last tokens may be others.
  constexpr std::size_t asked = 4096;
  std::vector<std::vector<Token>> contexts(asked);
  for (std::size_t i = 0; i < asked; ++i) {
    write(sluice::derive(i, 5) % texts, forms, contexts[i]);
    contexts[i].resize(40 + sluice::derive(i, 6) % 120);
    if (i % 2 == 0) contexts[i][contexts[i].size() - 1 - i / 2 % 6] = static_cast<Token>(sluice::derive(i, 7) % 30000);
  }
  sluice::detail::SuffixGuesses finder;
  sluice::detail::PathGuesses guesses;
  std::size_t i = 0;
  double made = 0, expected = 0;
  for (auto _ : state) {
    auto const places = cache->places();
    finder.of_others(*places, contexts[i++ % asked], {}, {.depth = 16, .nodes = 16, .leaves = leaves, .least = 0.1},
                     guesses);
    made += static_cast<double>(guesses.tokens.size()), expected += guesses.expected;
    benchmark::DoNotOptimize(guesses.tokens.data());
  }
  auto const rounds = static_cast<double>(state.iterations());
  state.counters["guesses"] = made / rounds, state.counters["expected"] = expected / rounds;
  state.counters["bytes_per_token"] = static_cast<double>(cache->bytes()) / static_cast<double>(cache->tokens());
  state.counters["us_per_insert"] = 1e6 * seconds / static_cast<double>(tokens);
  state.counters["ms_slowest_insert"] = 1e3 * slowest;
}
BENCHMARK(suffix_guess)
    ->ArgNames({"tokens", "forms", "paths"})
    ->ArgsProduct({{100'000, 1'000'000, 10'000'000}, {0, 1}, {1, 4}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
