// SPDX-License-Identifier: Apache-2.0
// The tables of "Faster Neural Machine Translation Inference": an output layer in separate passes over the whole matrix
// of scores (product, bias, softmax, search: as Amun did before) against the fused one, one thread. The passes use
// Eigen's vectors, and both use the same packed product, so only the fusion is compared.
//
// output_layer (tables 2 and 3): V = 85,000, d = 512, 128 sentences; the k best of each row for beam k. Milliseconds of
// the separate multiply_ms, bias_ms, softmax_ms (maximum, sum, log-probabilities), search_ms; fused_ms; product_ms of
// the fastest packed product, nothing written; scores_ms of LogSoftmaxTopK over given scores with their bias.
// rest = bias + softmax + search:
//   x_rest     rest / (fused - multiply), what the paper's tables compare
//   x_scores   rest / LogSoftmaxTopK over given scores
//   x_total    all four passes / fused
// For beam 1, argmax_ms is the fused layer without a softmax (the paper's algorithm 3).
//
// fused_decode (figures 3 and 4): the shipped Transformer, batches of 64 sentences sorted by length, beam 1 = greedy
// without scores. sentences/s of both, x = the quotient, output_percent = the output layer's part of the time.
//
// fused_streaming (figures 9 and 10): fused or not, Batched or Streaming (refilled when half empty), with and without
// a sorting window. sentences/s of neither, and how many times as fast x_fused, x_streaming and x_both are.
//
// Before a time counts, results must be equal, token for token. SLUICE_ROUNDS: rounds of which the medians are taken.
// SLUICE_BENCH_ALL: more beams of fused_streaming. SLUICE_SENTENCES, SLUICE_MODEL: see shipped_model.hpp.

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/packed_matrix.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include "separate_passes.hpp"
#include "shipped_model.hpp"
#include "yardstick.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::bench;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// An expander in separate passes over the scores of all lines.
class SeparatePasses {
 public:
  /// \param weights  without a bias
  SeparatePasses(std::shared_ptr<PackedMatrix const> weights, std::span<float const> bias)
      : weights_(std::move(weights)), bias_(bias) {}

  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const>) {
    multiply(hidden);
    add_bias();
    softmax();
    return search(queries);
  }

  void multiply(Hidden<float> const& hidden) {
    rows_ = hidden.rows;
    auto const outputs = weights_->outputs();
    if (std::ssize(scores_) < rows_ * outputs) scores_.resize(static_cast<std::size_t>(rows_ * outputs));
    weights_->multiply(hidden, {scores_.data(), rows_, outputs, outputs});
  }
  void add_bias() {
    for (std::ptrdiff_t i = 0; i < rows_; ++i) array(line(i)) += array(bias_);
  }
  void softmax() {
    for (std::ptrdiff_t i = 0; i < rows_; ++i) eigen_softmax_pass(line(i));
  }
  Expansion search(std::span<Query const> queries) {
    entries_.clear(), best_.clear(), probes_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& query = queries[i];
      require(query.edits.empty() || query.stage == Stage::after_softmax, "SeparatePasses: query.stage",
              "before_softmax", "is not supported");
      auto const log_probs = line(static_cast<std::ptrdiff_t>(i));
      for (auto const& e : query.edits) {
        auto& x = log_probs[static_cast<std::size_t>(e.token)];
        x = (x > 0 ? x / e.penalty : x * e.penalty) + e.add;
      }
      auto& entry = entries_.emplace_back();
      entry.best = best_.size(), entry.probes = probes_.size();
      if (query.best > 0) {
        heap_top_k(log_probs, static_cast<std::size_t>(query.best), found_);
        best_.insert(best_.end(), found_.begin(), found_.end());
      }
      for (auto const token : query.probes) probes_.push_back(log_probs[static_cast<std::size_t>(token)]);
      entry.best_count = best_.size() - entry.best, entry.probe_count = probes_.size() - entry.probes;
    }
    return {entries_, best_, probes_};
  }

  std::ptrdiff_t vocabulary_size() const { return weights_->outputs(); }

 private:
  std::span<float> line(std::ptrdiff_t i) {
    return std::span(scores_).subspan(static_cast<std::size_t>(i * weights_->outputs()), bias_.size());
  }

  std::shared_ptr<PackedMatrix const> weights_;
  std::span<float const> bias_;
  std::ptrdiff_t rows_ = 0;
  AlignedVector<float> scores_;
  std::vector<Expansion::Entry> entries_;
  std::vector<Candidate> best_, found_;
  std::vector<float> probes_;
};

// ---- Tables 2 and 3

/// The paper's output layer, with random weights.
struct Layer {
  static constexpr std::ptrdiff_t vocabulary = 85000, depth = 512;
  Eigen::ArrayXf bias = 0.1f * Eigen::ArrayXf::Random(vocabulary);
  std::shared_ptr<PackedMatrix const> plain, with_bias;

  std::span<float const> biases() const { return {bias.data(), static_cast<std::size_t>(vocabulary)}; }
  Layer() {
    Matrix const weights = Matrix::Random(vocabulary, depth) * (6 / std::sqrt(static_cast<float>(depth)));
    MatrixView<float const> const view{weights.data(), vocabulary, depth, depth};
    plain = std::make_shared<PackedMatrix const>(view);
    with_bias = std::make_shared<PackedMatrix const>(view, biases());
  }
};

bool same(Expansion const& a, Expansion const& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const equal = [](Candidate x, Candidate y) {
      return x.token == y.token && std::abs(x.log_prob - y.log_prob) <= 1e-4f;
    };
    if (!std::ranges::equal(a[i].best, b[i].best, equal)) return false;
  }
  return true;
}

void output_layer(benchmark::State& state) {
  one_thread();
  static Layer const layer;
  auto const beam = static_cast<std::int32_t>(state.range(0));
  std::ptrdiff_t const rows = 128 * beam;
  Matrix const x = Matrix::Random(rows, Layer::depth);
  auto const in = hidden(x.data(), rows, Layer::depth);
  std::vector<Query> const queries(static_cast<std::size_t>(rows), Query{.best = beam});
  std::vector<Query> const plain(static_cast<std::size_t>(rows), Query{.best = 1, .normalise = false});

  SeparatePasses separate(layer.plain, layer.biases());
  DenseProjection fused(layer.with_bias);
  ProductAlone product_alone;
  LogSoftmaxTopK selection(layer.biases());
  AlignedVector<float> scores(static_cast<std::size_t>(rows * Layer::vocabulary));
  layer.plain->multiply(in, {scores.data(), rows, Layer::vocabulary, Layer::vocabulary});
  auto const given = sluice::scores<float>(scores.data(), rows, Layer::vocabulary);
  auto const expected = separate.expand(in, queries, {});
  if (!same(expected, fused.expand(in, queries, {}))) return state.SkipWithError("the fused layer differs");
  if (!same(expected, selection.expand(given, queries, {}))) return state.SkipWithError("LogSoftmaxTopK differs");

  std::array<std::vector<double>, 4> parts;
  Turns turns;
  auto const all = turns.add([&] {
    parts[0].push_back(seconds([&] { separate.multiply(in); }));
    parts[1].push_back(seconds([&] { separate.add_bias(); }));
    parts[2].push_back(seconds([&] { separate.softmax(); }));
    parts[3].push_back(seconds([&] { benchmark::DoNotOptimize(separate.search(queries)[0].best.data()); }));
  });
  auto const one = turns.add([&] { benchmark::DoNotOptimize(fused.expand(in, queries, {})[0].best.data()); });
  auto const product = turns.add([&] { product_alone(*layer.with_bias, in); });
  auto const selected =
      turns.add([&] { benchmark::DoNotOptimize(selection.expand(given, queries, {})[0].best.data()); });
  auto const argmax = turns.add([&] { benchmark::DoNotOptimize(fused.expand(in, plain, {})[0].best.data()); });
  for (auto _ : state) turns.round();

  auto const rest = median(parts[1]) + median(parts[2]) + median(parts[3]);
  auto const beyond = turns.seconds(one) - median(parts[0]);
  state.counters["multiply_ms"] = 1e3 * median(parts[0]);
  state.counters["bias_ms"] = 1e3 * median(parts[1]);
  state.counters["softmax_ms"] = 1e3 * median(parts[2]);
  state.counters["search_ms"] = 1e3 * median(parts[3]);
  state.counters["fused_ms"] = 1e3 * turns.seconds(one);
  state.counters["product_ms"] = 1e3 * turns.seconds(product);
  state.counters["scores_ms"] = 1e3 * turns.seconds(selected);
  if (beyond > 0) state.counters["x_rest"] = rest / beyond;
  state.counters["x_scores"] = rest / turns.seconds(selected);
  state.counters["x_total"] = turns.ratio(all, one);
  if (beam == 1) state.counters["argmax_ms"] = 1e3 * turns.seconds(argmax);
}
BENCHMARK(output_layer)->ArgNames({"beam"})->Arg(1)->Arg(5)->Iterations(rounds())->Unit(benchmark::kMillisecond);

// ---- Figures 3, 4, 9 and 10

constexpr std::size_t batch = 64;

SeparatePasses separate_passes() {
  auto const& weights = *::bench::data().weights;
  static auto const packed = std::make_shared<PackedMatrix const>(weights.projection());
  return {packed, weights.bias};
}

/// One pass over the sentences.
struct Pass {
  std::vector<std::vector<std::vector<Token>>> tokens;  // [sentence][hypothesis]
  double output = 0;                                    // the output layer's part of the time
};

template <class S, class P, class E>
Pass decode(std::vector<::bench::Sentence> const& sentences, S const& search, P const& schedule, E const& expander,
            Intake const& intake = {.encoder_thread = false}) {
  example::Transformer model(::bench::data().weights);
  Decoder decoder(model, search, schedule, expander, {}, intake);
  for (auto const& sentence : sentences) decoder.submit({.source = sentence});
  Pass pass;
  pass.tokens.resize(sentences.size());
  Result result;
  while (decoder.step())
    while (decoder.poll(result))
      for (auto& hypothesis : result.hypotheses) pass.tokens[result.id].push_back(std::move(hypothesis.tokens));
  pass.output = decoder.statistics().seconds.output / decoder.statistics().seconds.total();
  return pass;
}

/// Calls f(search) with the search for a beam. The paper's beam of one needs no softmax.
template <class F>
void with_beam(std::int64_t beam, F const& f) {
  if (beam == 1) f(Greedy{.length = {.min = 1, .max = 256}, .scores = false});
  else f(BeamSearch{.width = static_cast<std::int32_t>(beam), .length = {.min = 1, .max = 256}});
}

void fused_decode(benchmark::State& state) {
  one_thread();
  auto const& data = ::bench::data();
  with_beam(state.range(0), [&](auto const& search) {
    Pass separate, fused;
    Turns turns;
    auto const before =
        turns.add([&] { separate = decode(data.sentences, search, Batched{.size = batch}, separate_passes()); });
    auto const after =
        turns.add([&] { fused = decode(data.sentences, search, Batched{.size = batch}, *data.projection); });
    for (auto _ : state) turns.round();
    if (separate.tokens != fused.tokens) return state.SkipWithError("the translations differ");
    auto const count = static_cast<double>(data.sentences.size());
    state.counters["separate/s"] = count / turns.seconds(before);
    state.counters["fused/s"] = count / turns.seconds(after);
    state.counters["x"] = turns.ratio(before, after);
    state.counters["output_percent_separate"] = 100 * separate.output;
    state.counters["output_percent"] = 100 * fused.output;
  });
}
BENCHMARK(fused_decode)
    ->ArgNames({"beam"})
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Arg(6)
    ->Arg(8)
    ->Arg(10)
    ->Iterations(rounds())
    ->Unit(benchmark::kMillisecond);

void fused_streaming(benchmark::State& state) {
  one_thread();
  auto const& data = ::bench::data();
  Intake const intake{
      .window = static_cast<std::size_t>(state.range(1)), .encode_ahead = batch, .encoder_thread = false};
  Batched const batched{.size = batch};
  Streaming const streaming{.size = batch, .refill_below = 0.5};
  with_beam(state.range(0), [&](auto const& search) {
    std::array<Pass, 4> passes;
    auto const run = [&](auto const& schedule, auto const& expander) {
      return decode(data.unsorted, search, schedule, expander, intake);
    };
    Turns turns;
    auto const neither = turns.add([&] { passes[0] = run(batched, separate_passes()); });
    auto const fused = turns.add([&] { passes[1] = run(batched, *data.projection); });
    auto const streamed = turns.add([&] { passes[2] = run(streaming, separate_passes()); });
    auto const both = turns.add([&] { passes[3] = run(streaming, *data.projection); });
    for (auto _ : state) turns.round();
    for (auto const& pass : passes)
      if (pass.tokens != passes[0].tokens) return state.SkipWithError("the translations differ");
    state.counters["neither/s"] = static_cast<double>(data.unsorted.size()) / turns.seconds(neither);
    state.counters["x_fused"] = turns.ratio(neither, fused);
    state.counters["x_streaming"] = turns.ratio(neither, streamed);
    state.counters["x_both"] = turns.ratio(neither, both);
  });
}
BENCHMARK(fused_streaming)
    ->ArgNames({"beam", "window"})
    ->ArgsProduct({all_shapes() ? std::vector<std::int64_t>{1, 2, 5, 10} : std::vector<std::int64_t>{1, 5}, {0, 640}})
    ->Iterations(rounds())
    ->Unit(benchmark::kMillisecond);

}  // namespace
