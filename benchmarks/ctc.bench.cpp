// SPDX-License-Identifier: Apache-2.0
// CTC: an utterance of 1,000 frames, whose best labels are a text with blanks between. ctc/labels/width/language:
// 0: none; 1: 3-grams of labels; 2: 3-grams of words, over a lexicon of 200,000.
//
// Counters: us_frame, the median of the thread's CPU time for a frame, expander and loop included; score, of the best text.
//
// Beside flashlight/text, in one run (the folders are where its sources and KenLM's are, and their objects):
//   g++ -std=c++20 -O3 -march=native -DNDEBUG -DSLUICE_FLASHLIGHT -DKENLM_MAX_ORDER=6 -Iinclude -Ibenchmarks -I<text> -I<kenlm>
//       benchmarks/ctc.bench.cpp <objects> -lbenchmark_main -lbenchmark
// Both then have the same frames, labels (the best 40 of a frame), n-grams and lexicon; counters flashlight_us_frame, ratio, and
// flashlight_score. Log-add is on there, and neither has a threshold.

#include <sluice/decode/decode.hpp>
#include <sluice/frames/ctc_beam_search.hpp>
#include <sluice/frames/ctc_frames.hpp>
#include <sluice/frames/lexicon.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <ctc_flashlight.hpp>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using sluice::Token;

constexpr std::int32_t frame_count = 1000, listed = 40;
constexpr Token blank = 0, separator = 1;  // separator: between words, where there are any
constexpr double weight = 0.8, bonus = 0.5;

/// Labels that are letters of words of a lexicon, and a text of these.
struct Language {
  std::int32_t labels = 0;
  std::vector<sluice::Spelling> words;
  std::vector<std::int32_t> text;  // of words
  sluice::NGramTable table;        // of words, or of labels

  static std::string name(Token label) { return "l" + std::to_string(label); }
};

Language const& language_of(std::int32_t labels, bool of_words) {
  static std::map<std::pair<std::int32_t, bool>, Language> made;
  if (auto const found = made.find({labels, of_words}); found != made.end()) return found->second;
  std::mt19937_64 random(3);
  std::vector<sluice::Spelling> words;
  std::set<std::vector<Token>> spellings;
  auto const count = of_words ? 200000u : 2000u;
  while (spellings.size() < count) {
    std::vector<Token> spelling(3 + random() % 7);
    for (auto& label : spelling) label = static_cast<Token>(2 + random() % static_cast<std::uint64_t>(labels - 2));
    if (!spellings.insert(spelling).second) continue;
    std::string word;
    for (auto const label : spelling) word += Language::name(label);
    words.push_back({word, spelling});
  }
  std::vector<std::int32_t> text;
  for (int i = 0; i < 400000; ++i)  // Zipf's law, roughly
    text.push_back(static_cast<std::int32_t>(
        std::pow(static_cast<double>(count), static_cast<double>(random() % 100000) / 100000.0) - 1));
  sluice::NGramTrainer trainer({.order = 3, .fallback = true});
  for (std::size_t i = 0; i + 8 <= text.size(); i += 8) {
    std::string sentence;
    for (std::size_t k = i; k < i + 8; ++k) {
      auto const& word = words[static_cast<std::size_t>(text[k])];
      if (of_words) {
        sentence += word.word + " ";
        continue;
      }
      for (auto const label : word.tokens) sentence += Language::name(label) + " ";
      sentence += Language::name(separator) + " ";
    }
    trainer.add(sentence);
  }
  return made.emplace(std::pair(labels, of_words), Language{labels, std::move(words), std::move(text), trainer.build()})
      .first->second;
}

/// [frame_count, labels] log-probabilities.
std::vector<float> frames_of(Language const& language) {
  std::mt19937_64 random(5);
  std::normal_distribution<float> noise(0, 1.5f);
  std::vector<Token> best;
  for (auto const word : language.text) {
    auto spelling = language.words[static_cast<std::size_t>(word)].tokens;
    spelling.push_back(separator);
    auto const before = best.size();
    for (auto const label : spelling) {
      for (auto i = random() % 2; i < 2; ++i) best.push_back(label);
      for (auto i = random() % 5; i < 5; ++i) best.push_back(blank);
    }
    if (std::ssize(best) < frame_count) continue;
    best.resize(before), best.resize(frame_count, blank);  // whole words
    break;
  }
  std::vector<float> all;
  std::vector<float> line(static_cast<std::size_t>(language.labels));
  for (std::int32_t frame = 0; frame < frame_count; ++frame) {
    double sum = 0;
    for (Token v = 0; v < language.labels; ++v) {
      line[static_cast<std::size_t>(v)] = noise(random) + (v == best[static_cast<std::size_t>(frame)] ? 7.0f : 0.0f);
      sum += std::exp(static_cast<double>(line[static_cast<std::size_t>(v)]));
    }
    for (auto const x : line) all.push_back(x - static_cast<float>(std::log(sum)));
  }
  return all;
}

/// The median time of f() for a frame, in microseconds of the thread.
double microseconds(std::function<void()> const& f, int rounds = 3) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) times.push_back(1e6 * sluice::bench::seconds(f) / frame_count);
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

struct Measured {
  double us_frame, score;
};

template <class S>
Measured measure(std::vector<float> const& frames, std::int32_t labels, S search, std::int32_t width) {
  search.width = width, search.top_tokens = listed;
  sluice::CtcFrames<> model(labels, blank, sluice::Kind::log_probs);
  std::vector<sluice::MatrixView<float const>> const sources{{frames.data(), frame_count, labels, labels}};
  double score = 0;
  auto const us = microseconds([&] { score = sluice::decode(model, sources, search).at(0).hypotheses.at(0).score; });
  return {us, score};
}

void ctc(benchmark::State& state) {
  auto const labels = static_cast<std::int32_t>(state.range(0)), width = static_cast<std::int32_t>(state.range(1));
  auto const which = state.range(2);
  auto const& language = language_of(labels, which == 2);
  auto const frames = frames_of(language);
  Measured own{};
  for (auto _ : state) {
    if (which == 0) own = measure(frames, labels, sluice::CtcBeamSearch<>{}, width);
    if (which == 1) {
      std::vector<sluice::Word> words;
      for (Token label = 0; label < labels; ++label) words.push_back(language.table.word(Language::name(label)));
      own = measure(frames, labels,
                    sluice::CtcBeamSearch<sluice::NoRule, sluice::NGramModel<>>{
                        .language_model = {language.table, words, {.weight = weight}}},
                    width);
    }
    if (which == 2)
      own = measure(frames, labels,
                    sluice::CtcBeamSearch<sluice::NoRule, sluice::LexiconNGrams>{
                        .language_model = {sluice::Lexicon(language.words, {separator}),
                                           language.table,
                                           {.weight = weight, .bonus = bonus}}},
                    width);
  }
  state.counters["us_frame"] = own.us_frame, state.counters["score"] = own.score;
#ifdef SLUICE_FLASHLIGHT
  std::vector<std::string> names;
  std::vector<std::vector<Token>> spellings;
  if (which < 2)
    for (Token label = 0; label < labels; ++label) names.push_back(Language::name(label));
  else
    for (auto const& word : language.words) names.push_back(word.word), spellings.push_back(word.tokens);
  ctc_flashlight::Decoder other({.labels = labels,
                                 .width = width,
                                 .listed = listed,
                                 .blank = blank,
                                 .separator = separator,
                                 .weight = weight,
                                 .bonus = bonus},
                                which == 0 ? nullptr : &language.table, names, spellings);
  double score = 0;
  auto const us = microseconds([&] { score = other.decode(frames.data(), frame_count); }, 1);
  state.counters["flashlight_us_frame"] = us, state.counters["flashlight_score"] = score;
  state.counters["ratio"] = own.us_frame / us;
#endif
}

BENCHMARK(ctc)
    ->ArgNames({"labels", "width", "language"})
    ->ArgsProduct({{32, 1024}, {25, 100, 500}, {0, 1}})
    ->ArgsProduct({{32, 1024}, {25, 100, 500}, {2}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
