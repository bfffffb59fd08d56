// SPDX-License-Identifier: Apache-2.0
// The shipped Transformer from source tokens to results, one thread. Sentences: the repository's sample, or the file that
// the environment variable SLUICE_SENTENCES names (one sentence a line); weights: SLUICE_MODEL, a folder, or the shipped.
//
// Counters:
//   sentences/s          all of start, step, expand, search
//   per_eigen_gflops     that, for each GF/s of one Eigen float product 1024 x 1024 x 1024 in this process
//   of_eigen             2 x parameters touched x rows per second in the decoder (model + output) over that product's flops
//   weights_read         time of the decoder for one row over the time to read the weights it touches once (batch 1)
//   steps, rows          of one pass over the sentences
//   search_percent       of all time; search_us: per sentence and step

#include <sluice/sluice.hpp>

#include "shipped_model.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace {

namespace example = sluice::example;
using bench::data;

double seconds(auto const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return (numbers[(numbers.size() - 1) / 2] + numbers[numbers.size() / 2]) / 2;
}

template <class Work>
double median_seconds(Work const& work) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(seconds(work));
  return median(times);
}

/// GF/s of one Eigen product, in one thread as everything else here.
double eigen_gflops() {
  Eigen::setNbThreads(1);
  Eigen::MatrixXf const a = Eigen::MatrixXf::Random(1024, 1024), b = Eigen::MatrixXf::Random(1024, 1024);
  Eigen::MatrixXf c(1024, 1024);
  auto const time = median_seconds([&] {
    c.noalias() = a * b;
    benchmark::DoNotOptimize(c.data());
  });
  return 2.0 * 1024 * 1024 * 1024 / time / 1e9;
}

/// Time to read as many floats as the decoder has parameters, from where they lie.
double read_seconds() {
  std::vector<float> memory(static_cast<std::size_t>(data().parameters), 1.0f);
  return median_seconds([&] {
    auto sum = Eigen::Map<Eigen::ArrayXf const>(memory.data(), static_cast<Eigen::Index>(memory.size())).sum();
    benchmark::DoNotOptimize(sum);
  });
}

template <class Search>
void decode(benchmark::State& state, Search const& search) {
  auto const& d = data();
  auto const batch = static_cast<std::size_t>(state.range(0));
  std::vector<double> products{eigen_gflops()},
      reads{read_seconds()};  // the machine's speed drifts: asked again and again
  sluice::Statistics total;
  double time = 0;
  std::uint64_t sentence_steps = 0;
  for (auto _ : state) {
    example::Transformer model(d.weights);
    sluice::Decoder decoder(model, search, sluice::Batched{.size = batch}, *d.projection);
    time += seconds([&] {
      for (auto const& sentence : d.sentences) decoder.submit({.source = sentence});
      sluice::Result result;
      while (decoder.step()) {
        sentence_steps += decoder.running();
        while (decoder.poll(result)) benchmark::DoNotOptimize(result.hypotheses.data());
      }
    });
    total += decoder.statistics();
    products.push_back(eigen_gflops()), reads.push_back(read_seconds());
  }
  auto const gflops = median(products), read = median(reads);
  auto const& s = total.seconds;
  auto const count = static_cast<double>(total.sentences);
  auto const decoder_seconds = s.model + s.output;
  state.counters["sentences/s"] = count / time;
  state.counters["eigen_gflops"] = gflops;
  state.counters["per_eigen_gflops"] = count / time / gflops;
  state.counters["of_eigen"] = 2 * d.parameters * static_cast<double>(total.rows) / decoder_seconds / 1e9 / gflops;
  state.counters["weights_read"] = decoder_seconds / static_cast<double>(total.model_calls) / read;
  state.counters["search_percent"] = 100 * s.search / s.total();
  state.counters["search_us"] = 1e6 * s.search / static_cast<double>(std::max<std::uint64_t>(sentence_steps, 1));
  state.counters["steps"] = static_cast<double>(total.steps) / static_cast<double>(state.iterations());
  state.counters["rows"] = static_cast<double>(total.rows) / static_cast<double>(state.iterations());
  state.counters["encode_percent"] = 100 * s.encode / s.total();
  state.counters["output_percent"] = 100 * s.output / s.total();
}

void beam(benchmark::State& state) {
  decode(state, sluice::BeamSearch{.width = static_cast<std::int32_t>(state.range(1)), .length = {.min = 1}});
}
// The same beam under other stopping rules: how many steps and rows the proof saves against running to the end.
void beam_exact(benchmark::State& state) {
  decode(state,
         sluice::BeamSearch{.width = 5, .length = {.min = 1, .max = 60}, .stop = {.rule = sluice::Stop::Rule::exact}});
}
void beam_to_the_end(benchmark::State& state) {
  decode(state, sluice::BeamSearch{.width = 5, .length = {.min = 1, .max = 60}, .stop = {.finished = 1 << 30}});
}
void greedy(benchmark::State& state) { decode(state, sluice::Greedy{.length = {.min = 1}, .scores = false}); }

BENCHMARK(beam)
    ->ArgNames({"batch", "width"})
    ->Args({64, 5})
    ->Args({1, 5})
    ->Args({8, 50})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(beam_exact)->ArgNames({"batch"})->Arg(64)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(beam_to_the_end)->ArgNames({"batch"})->Arg(64)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(greedy)->ArgNames({"batch"})->Arg(64)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
