// SPDX-License-Identifier: Apache-2.0
// A beam over an RNN-T beside greedy decoding: 32 utterances of 60 to 140 frames in one batch. The network has
// the cost of a small real one, and random weights into which labels were planted: joiner of width 512 with 1,025 labels (tanh, then
// DenseProjection), predictor a product of 512 x 2,048 (the gates of an LSTM), encoder a chain of products of 512 x 512 over all frames. In
// four of five frames blank has more than 0.9.
//
// transducer/search/encoder: encoder: millions of its weights, 0: frames are there. search:
//   0 greedy                           3 ALSD, width 10
//   1 time-synchronous, width 10       4 ALSD, width 10, threshold 4
//   2 the same, threshold 4            5 modified AES, width 10, threshold 4
//
// Counters, medians of the thread's CPU time, greedy decoding and the search by turns: ms_utterance; ratio to greedy; rows: of the joiner for
// each frame; steps: calls of the network, over greedy decoding's; search_percent: of the time that is neither network nor projection;
// better: utterances whose output is another than greedy's and more probable.

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace sluice;

constexpr std::int32_t labels = 1025, blank = 1024, width = 512, gates = 2048;
constexpr auto d = static_cast<std::size_t>(width);

std::vector<float> normal(std::uint64_t seed, std::size_t count, float deviation) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> all(count);
  for (auto& x : all) x = draw(random);
  return all;
}
MatrixView<float const> matrix(std::vector<float> const& numbers, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return {numbers.data(), rows, columns, columns};
}

/// What all networks share.
struct Weights {
  std::vector<float> output = normal(1, d* labels, 4 / std::sqrt(512.0f));
  PackedMatrix encoder{matrix(normal(2, d* d, 1 / std::sqrt(512.0f)), width, width)};
  PackedMatrix recurrent{matrix(normal(3, d* gates, 1 / std::sqrt(512.0f)), gates, width)};
};

struct Utterance {
  std::int32_t frames = 0;
  std::vector<float> features;  // [frames, width]
};

/// Labels planted into one frame of five, every fifth with another label that sounds alike.
Utterance utterance(Weights const& weights, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Utterance made{60 + static_cast<std::int32_t>(random() % 81), {}};
  made.features = normal(seed + 100, d * static_cast<std::size_t>(made.frames), 0.075f);
  for (std::size_t t = 0; t < static_cast<std::size_t>(made.frames); ++t) {
    if (random() % 5 != 0) continue;
    auto const add = [&](float strength) {
      auto const label = random() % (labels - 1);
      for (std::size_t i = 0; i < d; ++i) made.features[t * d + i] += strength / 16 * weights.output[label * d + i];
    };
    add(14 + static_cast<float>(random() % 100) / 8);
    if (random() % 5 == 0) add(12 + static_cast<float>(random() % 100) / 8);
  }
  return made;
}

class Network {
 public:
  using Source = Utterance;
  Network(Weights const& weights, std::int32_t layers) : weights_(&weights), layers_(layers) {}

  TransducerTokens tokens() const { return {.labels = labels, .blank = blank}; }
  std::int32_t frames(Source const& source) const { return source.frames; }
  void start(std::span<Source const* const> sources, std::span<std::int32_t const> numbers) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const n = static_cast<std::size_t>(numbers[i]);
      if (n >= sources_.size()) sources_.resize(n + 1);
      sources_[n] = sources[i];
    }
    if (layers_ == 0) return;
    input_.clear();
    for (auto const* source : sources) input_.insert(input_.end(), source->features.begin(), source->features.end());
    auto const rows = std::ssize(input_) / width;
    encoded_.resize(input_.size());
    for (std::int32_t layer = 0; layer < layers_; ++layer) {
      weights_->encoder.multiply(matrix(input_, rows, width), {encoded_.data(), rows, width, width});
      for (auto& x : encoded_) x = std::clamp(x, 0.0f, 1.0f);
      std::swap(input_, encoded_);
    }
    benchmark::DoNotOptimize(input_.data());
  }
  void predict(std::span<PredictorRow const> rows) {
    auto const count = std::ssize(rows);
    input_.assign(rows.size() * d, 0), encoded_.resize(rows.size() * gates);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].from >= 0) std::copy_n(&states_[static_cast<std::size_t>(rows[i].from) * d], d, &input_[i * d]);
    weights_->recurrent.multiply(matrix(input_, count, width), {encoded_.data(), count, gates, gates});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const to = static_cast<std::size_t>(rows[i].to) * d;
      if (to >= states_.size()) states_.resize(to + d);
      for (std::size_t j = 0; j < d; ++j) {  // what was written is not written again soon
        auto const gate = encoded_[i * gates + j] * encoded_[i * gates + d + j];
        auto const label = weights_->output[static_cast<std::size_t>(rows[i].label) * d + j];
        auto const written = rows[i].from < 0 ? 0 : 0.8f * input_[i * d + j] - 1.25f * label;
        states_[to + j] = written + 1e-3f * std::clamp(gate, -1.0f, 1.0f);
      }
    }
  }
  Hidden<float> join(std::span<JoinerRow const> rows) {
    hidden_.resize(rows.size() * d);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const* const frame =
          &sources_[static_cast<std::size_t>(rows[i].utterance)]->features[static_cast<std::size_t>(rows[i].frame) * d];
      auto const* const state = &states_[static_cast<std::size_t>(rows[i].state) * d];
      for (std::size_t j = 0; j < d; ++j) {  // tanh, near enough
        auto const x = std::clamp(frame[j] + state[j], -3.0f, 3.0f);
        hidden_[i * d + j] = x * (27 + x * x) / (27 + 9 * x * x);
      }
    }
    return hidden(hidden_.data(), std::ssize(rows), std::ptrdiff_t{width});
  }

 private:
  Weights const* weights_;
  std::int32_t layers_;
  std::vector<Utterance const*> sources_;
  std::vector<float> states_, input_, encoded_, hidden_;
};

struct Outcome {
  double seconds = 0, rows = 0, steps = 0, search = 0;
  std::vector<Result> results;
};

template <class Search>
Outcome decode_all(Transducer<Network>& model, std::shared_ptr<PackedMatrix const> const& projection,
                   std::vector<Utterance> const& utterances, Search const& search) {
  Outcome outcome;
  outcome.results.resize(utterances.size());
  outcome.seconds = sluice::bench::seconds([&] {
    Decoder decoder(model, search, Batched{.size = 32}, DenseProjection(projection));
    for (auto const& one : utterances) decoder.submit({.source = one});
    while (decoder.step()) {
    }
    for (Result result; decoder.poll(result);) outcome.results[result.id] = std::move(result);
    auto const& told = decoder.statistics();
    outcome.rows = static_cast<double>(told.rows), outcome.steps = static_cast<double>(told.steps);
    outcome.search = 1 - (told.seconds.model + told.seconds.output + told.seconds.encode) / told.seconds.total();
  });
  return outcome;
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void transducer(benchmark::State& state) {
  static Weights const weights;
  static std::vector<float> const bias = [] {
    std::vector<float> all(labels, 0);
    all[blank] = 11.5f;
    return all;
  }();
  static auto const projection = std::make_shared<PackedMatrix const>(matrix(weights.output, labels, width), bias);
  static std::vector<Utterance> const utterances = [] {
    std::vector<Utterance> all;
    for (std::uint64_t seed = 0; seed < 32; ++seed) all.push_back(utterance(weights, seed));
    return all;
  }();
  Transducer model{Network(weights, static_cast<std::int32_t>(state.range(1)) * 4)};
  TransducerGreedy<> const greedy{.tokens = model.tokens()};
  TransducerBeam<> beam{.tokens = model.tokens(), .width = 10};
  auto const kind = state.range(0);
  if (kind == 5) beam = TransducerBeam<>::adaptive(model.tokens(), 10);
  if (kind == 3 || kind == 4) beam.order = TransducerOrder::alignment;
  if (kind == 2 || kind == 4 || kind == 5) beam.threshold = 4;

  double frames = 0, better = 0;
  for (auto const& one : utterances) frames += one.frames;
  std::vector<double> times, ratios;
  Outcome first, one;
  for (auto _ : state) {
    first = decode_all(model, projection, utterances, greedy);
    one = kind == 0 ? first : decode_all(model, projection, utterances, beam);
    times.push_back(one.seconds), ratios.push_back(one.seconds / first.seconds);
  }
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    auto const &a = first.results[i].hypotheses.at(0), &b = one.results[i].hypotheses.at(0);
    better += a.tokens != b.tokens && b.log_prob > a.log_prob ? 1 : 0;
  }
  state.counters["ms_utterance"] = 1e3 * median(times) / static_cast<double>(utterances.size());
  state.counters["ratio"] = median(ratios), state.counters["rows"] = one.rows / frames;
  state.counters["steps"] = one.steps / first.steps;
  state.counters["search_percent"] = 100 * one.search, state.counters["better"] = better;
}

BENCHMARK(transducer)
    ->ArgNames({"search", "encoder"})
    ->ArgsProduct({{0, 1, 2, 3, 4, 5}, {0}})
    ->ArgsProduct({{1, 2, 5}, {30}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
