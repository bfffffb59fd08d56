// SPDX-License-Identifier: Apache-2.0
// Streaming against Batched, both over the same model in one process, taking turns. Sentences in the order of the file,
// encoded ahead in groups of 64 between the steps, so that both encode alike.
//
// One iteration decodes all sentences by either schedule. Counters: x_decoder, x_total = seconds of Batched / seconds of
// Streaming (medians over the iterations; decoder = all but encoding); steps, steps_batched; full = mean rows of a step /
// capacity, as long as somebody waits (greedy: capacity = size).

#include <sluice/decode/decoder.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/schedule/streaming.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <shipped_model.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Cost {
  double decoder = 0, total = 0;  // CPU seconds of the thread, by the decoder's own account of where they went
  std::uint64_t steps = 0, rows = 0;
  double full = 0;
};

template <class S, class P>
Cost cost(S const& search, P const& schedule, std::size_t size, std::size_t window) {
  auto const& data = bench::data();
  sluice::example::Transformer model(data.weights);
  sluice::Decoder decoder(model, search, schedule, *data.projection, {},
                          {.window = window, .encode_ahead = 64, .encoder_thread = false});
  for (auto const& sentence : data.unsorted) decoder.submit({.source = sentence});
  std::uint64_t waited_steps = 0, waited_rows = 0;
  auto const begin = sluice::bench::cpu_seconds();
  for (auto waiting = decoder.waiting(), rows = std::size_t{0}; decoder.step(); waiting = decoder.waiting()) {
    if (waiting > 0) ++waited_steps, waited_rows += decoder.statistics().rows - rows;
    rows = decoder.statistics().rows;
  }
  auto const total = sluice::bench::cpu_seconds() - begin;
  auto const& s = decoder.statistics();
  return {.decoder = total * (1 - s.seconds.encode / s.seconds.total()),
          .total = total,
          .steps = s.steps,
          .rows = s.rows,
          .full = waited_steps == 0 ? 0
                                    : static_cast<double>(waited_rows) / static_cast<double>(waited_steps) /
                                          static_cast<double>(size)};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <class S>
void compare(benchmark::State& state, S const& search, sluice::Streaming streaming, std::size_t window) {
  Eigen::setNbThreads(1);
  auto const size = streaming.size;
  std::vector<double> decoder, total;
  Cost batched, streamed;
  for (auto _ : state) {
    batched = cost(search, sluice::Batched{.size = size}, size, window);
    streamed = cost(search, streaming, size, window);
    decoder.push_back(batched.decoder / streamed.decoder), total.push_back(batched.total / streamed.total);
  }
  state.counters["x_decoder"] = median(decoder), state.counters["x_total"] = median(total);
  state.counters["steps"] = static_cast<double>(streamed.steps);
  state.counters["steps_batched"] = static_cast<double>(batched.steps);
  state.counters["full"] = streamed.full;
  state.counters["us_decoder"] = 1e6 * streamed.decoder / static_cast<double>(bench::data().unsorted.size());
  if (batched.rows != streamed.rows) state.SkipWithError("the schedules ran different rows");
}

void add(std::string const& name, auto const& search, sluice::Streaming const& streaming, std::size_t window) {
  auto const full = "streaming/" + name + "/size:" + std::to_string(streaming.size) +
                    "/refill:" + std::to_string(streaming.refill_below).substr(0, 4) +
                    (streaming.order == sluice::Streaming::Order::shortest_only ? "/shortest" : "") +
                    "/window:" + std::to_string(window);
  benchmark::RegisterBenchmark(full.c_str(),
                               [=](benchmark::State& state) { compare(state, search, streaming, window); })
      ->Unit(benchmark::kMillisecond)
      ->MeasureProcessCPUTime();
}

bool const registered = [] {
  auto const cut = 256;
  sluice::Greedy const greedy{.length = {.min = 1, .max = cut}};
  sluice::BeamSearch const beam{.width = 5, .length = {.min = 1, .max = cut}};
  auto variable = sluice::presets::varstream(10);
  variable.length = {.min = 1, .max = cut};
  sluice::Sample const sample{.length = {.min = 1, .max = cut}};
  for (std::size_t const window : {0u, 640u}) {
    for (std::size_t const size : {64u, 16u}) {
      for (double const refill : {1.0, 0.5, 1.0 / 6})
        add("greedy", greedy, {.size = size, .refill_below = refill}, window);
      add("greedy", greedy, {.size = size, .order = sluice::Streaming::Order::shortest_only}, window);
      add("beam5", beam, {.size = size, .refill_below = 1}, window);
      add("variable10", variable, {.size = size, .refill_below = 1}, window);
      add("sample", sample, {.size = size, .refill_below = 1}, window);
    }
  }
  return true;
}();

}  // namespace
