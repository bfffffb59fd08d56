// SPDX-License-Identifier: Apache-2.0
// The cost of stop strings in a step, with a model of 32,000 tokens that costs nothing: softmax, selection, search and
// loop, with and without StopSequences, alternating. stops/width/batch; width 0: greedy. Outputs of 128 tokens of 1 to 8
// bytes; eight strings, one of which begins in every other token and none of which is completed.
//
// Counters, medians of the thread's CPU time: us_step, a step without stops, excluding the model; us_search, the part
// of it in search and loop; us_added, what StopSequences adds to that; percent, that relative to us_step.

#include <sluice/core/noise.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/search/length.hpp>
#include <sluice/sluice.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <free_lines.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

using sluice::Row, sluice::Slot, sluice::Token;

using free_lines::Lines, free_lines::size;

sluice::StopSequences stops() {
  std::vector<std::string> tokens(static_cast<std::size_t>(size));
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    for (std::size_t n = 0; n <= sluice::derive(1, i) % 8; ++n)
      tokens[i] += static_cast<char>('a' + sluice::derive(i, n) % 20);
    if (i % 2 == 0) tokens[i].back() = 'U';
  }
  return sluice::StopSequences(
      {.tokens = {{5, 6, 7}},
       .strings = {"\n\n", "User:", "U####", "UUUU.", "Assistant:", "</s>", "###", "Question:"},
       .bytes = sluice::TokenBytes(tokens)});
}

template <class Search>
sluice::Statistics run(Lines& model, Search const& search, std::size_t batch) {
  sluice::Decoder decoder(model, search, sluice::Batched{.size = batch});
  for (std::size_t i = 0; i < batch; ++i) decoder.submit({.source = i});
  sluice::Result result;
  while (decoder.step()) {
  }
  while (decoder.poll(result)) benchmark::DoNotOptimize(result.hypotheses.data());
  return decoder.statistics();
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

template <class Search>
void compare(benchmark::State& state, Search const& search) {
  auto const batch = static_cast<std::size_t>(state.range(1));
  Lines model;
  sluice::Processed const stopped{search, stops()};
  std::vector<double> plain, with, loop, loop_with;  // microseconds a step
  std::uint64_t steps = 0;
  auto const step = [&](auto const& which, std::vector<double>& all, std::vector<double>& of_search) {
    sluice::Statistics told;
    auto const time = sluice::bench::seconds([&] { told = run(model, which, batch); });
    steps = told.steps;
    auto const share = 1e6 * time / static_cast<double>(steps) / told.seconds.total();
    all.push_back(share * (told.seconds.total() - told.seconds.model)),
        of_search.push_back(share * told.seconds.search);
  };
  for (auto _ : state) step(search, plain, loop), step(stopped, with, loop_with);
  auto const us = median(plain), us_search = median(loop);
  state.counters["us_step"] = us, state.counters["us_search"] = us_search;
  auto const added = median(loop_with) - us_search;
  state.counters["us_added"] = added, state.counters["percent"] = 100 * added / us;
}

void stops(benchmark::State& state) {
  sluice::LengthLimits const length{.max = 128};
  if (state.range(0) == 0) compare(state, sluice::Greedy{.length = length});
  else compare(state, sluice::BeamSearch{.width = static_cast<std::int32_t>(state.range(0)), .length = length});
}

BENCHMARK(stops)->ArgNames({"width", "batch"})->ArgsProduct({{0, 4}, {1, 16}})->Unit(benchmark::kMillisecond);

}  // namespace
