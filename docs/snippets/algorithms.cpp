// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/algorithms.md.
#include <sluice/core/logits_processor_list.hpp>
#include <sluice/core/search.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/model/fused.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/result/alignment.hpp>
#include <sluice/result/minimum_bayes_risk.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>

#include "typist.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <variant>

namespace {

using sluice::decode;
using sluice::Token;

std::vector<std::string> const sources{"sluice"};

std::string only;  // the snippet to show; empty: all

bool wanted(std::string const& what) { return only.empty() || only == what; }

void show(std::string const& what, sluice::Result const& result) {
  if (!wanted(what)) return;
  std::cout << what << ':';
  for (auto const& hypothesis : result.hypotheses)
    std::cout << ' ' << Typist::text(hypothesis.tokens) << ' ' << hypothesis.score;
  std::cout << '\n';
}

void searches(Typist& model, sluice::DenseProjection const& keyboard) {
  auto const run = [&](std::string const& what, auto const& search,
                       sluice::LogitsProcessorList const& processors = {}) {
    show(what, decode(model, sources, search, processors, sluice::Batched{}, keyboard)[0]);
  };
  // [greedy]
  run("greedy", sluice::Greedy{.length{.max = 100}});
  // [/greedy]
  // [beam]
  run("beam", sluice::BeamSearch{.width = 5,
                                 .n_best = 3,
                                 .length{.min = 2, .max_factor = 2, .extra = 5},
                                 .penalty{.kind = sluice::LengthPenalty::Kind::gnmt, .alpha = 0.6}});
  // [/beam]
  // [variable]
  run("variable", sluice::BeamSearch{.width = 50, .pruning{.absolute_threshold = 1.5, .max_per_parent = 5}});
  // [/variable]
  // [presets]
  auto search = sluice::presets::ctranslate2(5);
  search.n_best = 3;
  search.length.max = 200;
  run("ctranslate2", search);
  // [/presets]
  // [rules]
  std::vector<std::vector<Token>> const phrases{Typist::tokens("lu"), Typist::tokens("ice.")};
  run("rules", sluice::BeamSearch{.width = 5}, {sluice::Forbidden(phrases), sluice::NoRepeatNgram{.n = 2}});
  // [/rules]
  // [sample]
  run("sample", sluice::Sample{.temperature = 1.5f, .top_p = 0.95f, .samples = 4});
  // [/sample]
  // [samplers]
  auto chain = sluice::presets::llama_cpp_sample();  // llama.cpp's samplers, order and defaults
  chain.temperature = 2, chain.xtc = {.probability = 0.5f, .threshold = 0.05f}, chain.samples = 3;
  run("samplers", chain);
  run("samplers", chain, {sluice::Penalties{.frequency = 0.5f, .window = 64}, sluice::Dry{.multiplier = 0.8f}});
  chain = {.temperature = 2, .top_k = 8, .min_p = 0.1f, .samples = 3};  // samplers in your own order
  chain.order = {sluice::Sampler::top_k, sluice::Sampler::temperature, sluice::Sampler::min_p};
  run("samplers", chain);
  // [/samplers]
  // [stochastic]
  run("stochastic", sluice::StochasticBeam{.width = 4});
  // [/stochastic]
}

// [own-rule]
/// No letter twice in a row.
struct NoDouble {
  struct State {};
  State initial(sluice::Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, sluice::Output const& output, std::vector<sluice::Edit>& edits) const {
    if (!output.tokens.empty()) edits.push_back({.token = output.tokens.back(), .add = -INFINITY});
  }
};
// [/own-rule]

// [own-process]
/// Top-a: no token below `a` times the square of the best one's probability.
struct TopA {
  float a = 0.05f;
  struct State {};
  State initial(sluice::Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, sluice::Output const&, std::vector<sluice::Edit>&) const {}
  void process(State, sluice::Output const&, std::span<float> scores) const {
    auto const best = *std::max_element(scores.begin(), scores.end());
    auto sum = 0.0f;
    for (auto const x : scores) sum += std::exp(x - best);  // 1 / sum: the best one's probability
    for (auto& x : scores)
      if (std::exp(x - best) < a / sum) x = -INFINITY;
  }
};
// [/own-process]

void own_rule(Typist& model, sluice::DenseProjection const& keyboard) {
  std::vector<std::string> const words{"beer"};
  // [own-rule-used]
  auto const result = decode(model, words, sluice::Greedy{}, NoDouble{}, sluice::Batched{}, keyboard)[0];
  // [/own-rule-used]
  show("own", result);
  // [own-process-used]
  sluice::Sample const search{.temperature = 2, .samples = 4};
  auto const samples = decode(model, words, search, TopA{}, sluice::Batched{}, keyboard)[0];
  // [/own-process-used]
  show("top-a", samples);
}

void stops(Typist& model, sluice::DenseProjection const& keyboard) {
  // [stops]
  std::vector<std::string> letters(28);  // the bytes of every token; none for control tokens
  for (auto c = 'a'; c <= 'z'; ++c) letters[static_cast<std::size_t>(c - 'a' + 2)] = c;
  sluice::StopSequences const stop({.strings = {"ui", "x"}, .bytes = sluice::TokenBytes(letters)});

  auto const result = decode(model, sources, sluice::BeamSearch{.width = 5}, stop, sluice::Batched{}, keyboard)[0];
  auto const& best = result.hypotheses[0];
  std::cout << Typist::text(best.tokens) << ", by stop " << best.stop << ", so " << stop.text(best) << '\n';
  // [/stops]
}

void bayes(Typist& model, sluice::DenseProjection const& keyboard) {
  // [bayes]
  auto const result = decode(model, sources, sluice::Sample{.samples = 50}, {}, keyboard)[0];
  auto const choice = sluice::minimum_bayes_risk(result.hypotheses, sluice::TokenNgramF{.order = 2});
  auto const& best = result.hypotheses[choice.best];
  // [/bayes]
  if (wanted("bayes"))
    std::cout << "bayes: " << Typist::text(best.tokens) << ' ' << choice.expected_utility[choice.best] << '\n';
}

void score(Typist& model, sluice::DenseProjection const& keyboard) {
  // [score]
  std::vector<sluice::Request<std::string, sluice::ForcedScore>> requests;
  for (auto const* const typed : {"sluice.", "sljice.", "slu"})
    requests.push_back({.source = "sluice", .prefix = Typist::tokens(typed)});

  for (auto const& result : decode(model, requests, sluice::ForcedScore{}, {}, keyboard)) {
    auto const& given = result.hypotheses.at(0);
    std::cout << Typist::text(given.tokens) << ' ' << given.log_prob << (given.finished ? "" : " (unfinished)") << '\n';
  }
  // [/score]
}

void exact(Typist& model, sluice::DenseProjection& keyboard) {
  // [exact]
  auto const best = decode(model, sources, sluice::ExactSearch{.length = {.max = 12}}, {}, keyboard)[0];
  std::cout << Typist::text(best.hypotheses.at(0).tokens) << ' ' << best.hypotheses[0].score
            << ", and nothing scores more than " << best.bound << '\n';
  // [/exact]
}

void best_first(Typist& model, sluice::DenseProjection& keyboard) {
  // [best_first]
  sluice::BeamSearch const beam{
      .width = 5, .penalty{.alpha = 0}, .early_stopping{.rule = sluice::EarlyStopping::Rule::exact}};
  auto const run = [&](auto const& search) {
    std::vector<sluice::Result> results;
    auto const statistics = decode_each(
        model, sources, search, [&](sluice::Result&& result) { results.push_back(result); }, {}, keyboard);
    auto const& best = results[0].hypotheses.at(0);
    std::cout << Typist::text(best.tokens) << ' ' << best.score << ", rows: " << statistics.rows << '\n';
  };
  run(beam);
  run(sluice::BestFirstBeam::as_beam(beam));
  // [/best_first]
}

/// Knows which letters are common.
struct Letters {
  using Source = std::monostate;
  static constexpr sluice::Abilities abilities = Typist::abilities;
  std::vector<float> lines;
  sluice::Vocabulary vocabulary() const { return Typist().vocabulary(); }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    constexpr std::string_view common = "zjqxkvbpygfwmucldrhsnioate.";
    lines.clear();
    for (auto const& row : rows)
      for (int i = 0; i < row.lines; ++i)
        for (Token token = 0; token < 28; ++token) {
          auto const rank = common.find(Typist::text({&token, 1}));
          lines.push_back(rank == common.npos ? -INFINITY : 0.1f * static_cast<float>(rank));
        }
    return sluice::scores(lines.data(), std::ssize(lines) / 28, 28);
  }
};

void combine(Typist& model, sluice::DenseProjection& keyboard) {
  Typist other;
  auto other_keyboard = keyboard;
  Letters letters;
  // [ensemble]
  sluice::Projected one(model, keyboard), two(other, other_keyboard);  // models that return hidden vectors
  sluice::Ensemble ensemble({.weights = {2, 1}}, one, two);
  auto const together = decode(ensemble, sources, sluice::BeamSearch{})[0];
  // [/ensemble]
  // [interpolate]
  sluice::Fused fused(one, letters, {.weight = 0.3});  // letters: a language model without a source
  auto const corrected = decode(fused, sources, sluice::BeamSearch{})[0];
  // [/interpolate]
  show("ensemble", together);
  show("interpolate", corrected);
}

// [attaching]
/// Attaches attention to every letter: 0.75 for the same letter of the source word, 0.25 for the one before.
class Watched : public Typist {
 public:
  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    attention_.clear();
    for (auto const& row : rows)
      for (auto i = std::ssize(row.tokens) - row.lines; i < std::ssize(row.tokens); ++i) {
        attention_.resize(attention_.size() + length);
        auto* const line = &attention_[attention_.size() - length];
        auto const place = std::min<std::size_t>(static_cast<std::size_t>(row.length + i), length - 1);
        line[place] += 0.75f, line[place > 0 ? place - 1 : 0] += 0.25f;
      }
    return Typist::step(rows);
  }
  sluice::Attachments attachments() const {
    return {{attention_.data(), std::ssize(attention_) / length, length, length}};
  }

 private:
  static constexpr int length = 7;  // of "sluice" and eos
  std::vector<float> attention_;
};
// [/attaching]

void align(sluice::DenseProjection const& keyboard) {
  Watched model;
  // [align]
  auto const best = decode(model, sources, sluice::BeamSearch{}, {}, keyboard)[0].hypotheses[0];
  // Each letter is a word here; eos belongs to no word.
  std::vector<std::int32_t> const source_words{0, 1, 2, 3, 4, 5, -1}, target_words = source_words;
  auto const alignment = sluice::align_words(best, source_words, target_words);
  std::cout << sluice::to_pharaoh(sluice::hard_alignment(alignment)) << '\n'
            << sluice::to_pharaoh(sluice::alignment_above(alignment, 0.25f)) << '\n';
  // [/align]
}

}  // namespace

/// Runs all snippets; prints the one that is named, or all.
int main(int argc, char** argv) {
  std::cout << std::fixed << std::setprecision(3);
  if (argc > 1) only = argv[1];
  Typist model;
  auto keyboard = Typist::keyboard();
  searches(model, keyboard);
  own_rule(model, keyboard);
  if (wanted("stops")) stops(model, keyboard);
  bayes(model, keyboard);
  if (wanted("align")) align(keyboard);
  if (wanted("score")) score(model, keyboard);
  if (wanted("exact")) exact(model, keyboard);
  if (wanted("best_first")) best_first(model, keyboard);
  combine(model, keyboard);
  return 0;
}
