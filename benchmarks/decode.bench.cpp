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
// Times are the thread's CPU seconds, by the decoder's own account of where they went.

#include <sluice/core/statistics.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/sluice.hpp>

#include "shipped_model.hpp"
#include "yardstick.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

namespace example = sluice::example;
using ::bench::data;
using sluice::bench::eigen_gflops;
using sluice::bench::median;
using sluice::bench::read_seconds;
using sluice::bench::seconds;

template <class Search>
void decode(benchmark::State& state, Search const& search) {
  sluice::bench::one_thread();
  auto const& d = data();
  auto const batch = static_cast<std::size_t>(state.range(0));
  auto const bytes = static_cast<std::size_t>(d.parameters) * sizeof(float);
  // The machine's speed drifts, so it is measured repeatedly.
  std::vector<double> products{eigen_gflops()}, reads{read_seconds(bytes)};
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
    products.push_back(eigen_gflops()), reads.push_back(read_seconds(bytes));
  }
  auto const gflops = median(products), read = median(reads);
  auto const& s = total.seconds;
  auto const count = static_cast<double>(total.sentences);
  auto const decoder_seconds = time * (s.model + s.output) / s.total();
  state.counters["sentences/s"] = count / time;
  state.counters["eigen_gflops"] = gflops;
  state.counters["per_eigen_gflops"] = count / time / gflops;
  state.counters["of_eigen"] = 2 * d.parameters * static_cast<double>(total.rows) / decoder_seconds / 1e9 / gflops;
  state.counters["weights_read"] = decoder_seconds / static_cast<double>(total.model_calls) / read;
  state.counters["search_percent"] = 100 * s.search / s.total();
  state.counters["search_us"] =
      1e6 * time * s.search / s.total() / static_cast<double>(std::max<std::uint64_t>(sentence_steps, 1));
  state.counters["steps"] = static_cast<double>(total.steps) / static_cast<double>(state.iterations());
  state.counters["rows"] = static_cast<double>(total.rows) / static_cast<double>(state.iterations());
  state.counters["encode_percent"] = 100 * s.encode / s.total();
  state.counters["output_percent"] = 100 * s.output / s.total();
}

void beam(benchmark::State& state) {
  decode(state, sluice::BeamSearch{.width = static_cast<std::int32_t>(state.range(1)), .length = {.min = 1}});
}
// The same beam under other stopping rules: how many steps and rows the exact rule saves compared with running to the
// end.
void beam_exact(benchmark::State& state) {
  decode(state, sluice::BeamSearch{.width = 5,
                                   .length = {.min = 1, .max = 60},
                                   .early_stopping = {.rule = sluice::EarlyStopping::Rule::exact}});
}
void beam_to_the_end(benchmark::State& state) {
  decode(state,
         sluice::BeamSearch{.width = 5, .length = {.min = 1, .max = 60}, .early_stopping = {.finished = 1 << 30}});
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
