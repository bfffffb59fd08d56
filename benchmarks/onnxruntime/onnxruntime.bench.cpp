// SPDX-License-Identifier: Apache-2.0
// sluice's loop over ONNX Runtime beside one written by hand: greedy and a beam, the shipped Transformer, outputs of a fixed length. The
// two decode the same sentences in turn, in one thread, over the same sessions; its CPU time. `cut` is sluice's loop over the graph
// whose last product tools/onnx-cut has cut off. Fails where the outputs are not the same.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/onnxruntime.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>

#include <support/onnxruntime_models.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <onnxruntime/by_hand.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::test;
using sluice::bench::cpu_seconds;

constexpr int steps = 32;
constexpr std::size_t sentences = 32;
std::vector<Token> const never{0, 1, 2};

double median(std::vector<double> times) {
  auto const middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

template <class M, class... E>
std::vector<Result> ours(M& model, std::vector<std::vector<Token>> const& sources, std::int32_t width,
                         std::size_t batch, E const&... expander) {
  Batched const schedule{.size = batch};
  if (width == 1) return decode(model, sources, Greedy{.length = {.max = steps}}, schedule, expander...);
  return decode(model, sources, BeamSearch{.width = width, .length = {.max = steps}}, schedule, expander...);
}

void loops(benchmark::State& state, std::int32_t width, std::size_t batch) {
  if (no_onnx()) return state.SkipWithError("no graphs");
  auto graphs = onnx_transformer();
  OnnxOptions const options{.bos = 1, .never = never, .size = 8000};
  OnnxEncoderDecoder model(graphs, options);
  bench::ByHand hand(*graphs.encoder.session, *graphs.decoder.session, never);
  auto const layer = onnx_output(onnx_graph("transformer/layer.onnx"));
  graphs.decoder = onnx_graph("transformer/hidden.onnx");
  OnnxEncoderDecoder<Hidden<float>> cut(graphs, options);
  DenseProjection const projection(layer.weights(), layer.bias);
  auto sources = with_eos(onnx_sources());
  sources.resize(sentences);

  std::vector<double> times[3];
  for ([[maybe_unused]] auto const& _ : state) {
    std::vector<std::vector<Token>> expected;
    auto const begin = cpu_seconds();
    for (std::size_t i = 0; i < sentences; i += batch) {
      std::vector<std::vector<Token>> const some(sources.begin() + static_cast<std::ptrdiff_t>(i),
                                                 sources.begin() + static_cast<std::ptrdiff_t>(i + batch));
      for (auto& output : hand.decode(some, width, steps, 1)) expected.push_back(std::move(output));
    }
    auto const first = cpu_seconds();
    auto const results = ours(model, sources, width, batch);
    auto const second = cpu_seconds();
    auto const others = ours(cut, sources, width, batch, projection);
    auto const end = cpu_seconds();
    times[0].push_back(first - begin), times[1].push_back(second - first), times[2].push_back(end - second);
    state.SetIterationTime(second - first);
    for (std::size_t i = 0; i < sentences; ++i)
      if (!results[i].ok() || results[i].hypotheses[0].tokens != expected[i] || !others[i].ok() ||
          others[i].hypotheses[0].tokens != expected[i])
        return state.SkipWithError(("sentence " + std::to_string(i) + " is decoded differently").c_str());
  }
  std::vector<double> ratios, cuts;
  for (std::size_t i = 0; i < times[0].size(); ++i)
    ratios.push_back(times[1][i] / times[0][i]), cuts.push_back(times[2][i] / times[0][i]);
  constexpr auto per = 1e6 / static_cast<double>(sentences * steps);
  state.counters["us/token by hand"] = median(times[0]) * per;
  state.counters["us/token"] = median(times[1]) * per;
  state.counters["us/token cut"] = median(times[2]) * per;
  state.counters["ratio"] = median(ratios);
  state.counters["ratio cut"] = median(cuts);
}

/// The bookkeeping alone: a decoder so small that a step is little else.
void tiny(benchmark::State& state, std::int64_t prompts) {
  if (no_onnx()) return state.SkipWithError("no graphs");
  OnnxDecoder model({.decoder = onnx_graph("tiny/model.onnx")}, onnx_drawn_options());
  std::vector<Request<std::monostate, Greedy>> const requests(static_cast<std::size_t>(prompts));
  constexpr int length = 100;
  std::vector<double> times;
  for ([[maybe_unused]] auto const& _ : state) {
    auto const begin = cpu_seconds();
    benchmark::DoNotOptimize(
        decode(model, requests, Greedy{.length = {.max = length}}, Batched{.size = requests.size()}));
    times.push_back(cpu_seconds() - begin);
    state.SetIterationTime(times.back());
  }
  state.counters["us/step"] = median(times) * 1e6 / length;
}

BENCHMARK_CAPTURE(tiny, one, 1)->UseManualTime();
BENCHMARK_CAPTURE(tiny, sixteen, 16)->UseManualTime();
BENCHMARK_CAPTURE(loops, greedy_batch_1, 1, 1)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(loops, greedy_batch_8, 1, 8)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(loops, greedy_batch_32, 1, 32)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(loops, beam_4_batch_1, 4, 1)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(loops, beam_4_batch_8, 4, 8)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(loops, beam_4_batch_32, 4, 32)->UseManualTime()->Iterations(5);

}  // namespace

BENCHMARK_MAIN();
