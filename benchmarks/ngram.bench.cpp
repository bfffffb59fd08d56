// SPDX-License-Identifier: Apache-2.0
// Queries of n-grams, and whole lines of them. Text of 200,000 sentences, words drawn so that the k-th is about 1/k as frequent and
// depends on the one before it; 4-grams of it. ngram/query and ngram/line, coded or not; items are words scored, or lines of all words.

#include <sluice/core/noise.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

constexpr std::size_t vocabulary = 20000;

/// Word `n` of sentence `s`, which follows `before`.
std::size_t draw(std::uint64_t s, std::uint64_t n, std::size_t before) {
  auto const uniform = static_cast<double>(sluice::derive(s, n) >> 11) / 9007199254740992.0;
  auto const rank = static_cast<std::size_t>(std::pow(static_cast<double>(vocabulary), uniform)) - 1;
  return n % 3 == 0 ? rank : (before * 7 + rank % 40) % vocabulary;
}

std::vector<std::vector<std::size_t>> const& text() {
  static auto const all = [] {
    std::vector<std::vector<std::size_t>> sentences(200000);
    for (std::size_t s = 0; s < sentences.size(); ++s)
      for (std::uint64_t n = 0; n < 3 + sluice::derive(s, 99) % 12; ++n)
        sentences[s].push_back(draw(s, n, sentences[s].empty() ? 0 : sentences[s].back()));
    return sentences;
  }();
  return all;
}

sluice::NGramTable const& table(bool coded) {
  static auto const plain = [] {
    sluice::NGramTrainer trainer({.order = 4, .fallback = true});
    for (auto const& sentence : text()) {
      std::string words;
      for (auto const word : sentence) words.append(" w").append(std::to_string(word));
      trainer.add(std::string_view(words));
    }
    return trainer.build();
  }();
  static auto const quantised = sluice::quantise(plain);
  return coded ? quantised : plain;
}

/// The words of every seventh sentence, by number.
std::vector<sluice::Word> queries(sluice::NGramTable const& grams) {
  std::vector<sluice::Word> words;
  for (std::size_t s = 0; s < text().size(); s += 7) {
    for (auto const word : text()[s]) words.push_back(grams.word(std::string("w").append(std::to_string(word))));
    words.push_back(grams.end());
  }
  return words;
}

void query(benchmark::State& state, bool coded) {
  auto const& grams = table(coded);
  auto const words = queries(grams);
  for (auto _ : state) {
    auto const start = grams.start();
    auto at = start;
    float sum = 0;
    for (auto const word : words) {
      sum += grams.advance(at, word);
      if (word == grams.end()) at = start;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * std::ssize(words));
  state.counters["megabytes"] = static_cast<double>(grams.bytes().size()) / 1e6;
}

void line(benchmark::State& state, bool coded) {
  sluice::NGramModel<> model(table(coded));
  auto const words = queries(model.table());
  std::monostate const none;
  auto const* const source = &none;
  sluice::Slot const slot = 0;
  std::size_t at = 0;
  for (auto _ : state) {
    if (at == 0 || words[at] == model.table().end()) model.start({&source, 1}, {&slot, 1});
    sluice::Row const row{slot, slot, 0, std::span(words).subspan(at, 3)};
    benchmark::DoNotOptimize(model.step({&row, 1}).data);
    at = (at + 3) % (words.size() - 3);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(query, plain, false)->Name("ngram/query");
BENCHMARK_CAPTURE(query, quantised, true)->Name("ngram/query/quantised");
BENCHMARK_CAPTURE(line, plain, false)->Name("ngram/line");
BENCHMARK_CAPTURE(line, quantised, true)->Name("ngram/line/quantised");

}  // namespace
