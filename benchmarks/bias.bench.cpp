// SPDX-License-Identifier: Apache-2.0
// The cost of boosted phrases in a step, with a model of 32,000 tokens that costs nothing, and the time to build their
// graph. bias/width/phrases; width 0: greedy. A batch of 4 outputs of 64 tokens, with and without Bias, alternating.
// Phrases of one to six tokens; a word's first token is one of 2,000, as in a vocabulary of subwords.
//
// Counters, medians of the thread's CPU time: us_step, a step without phrases (softmax, selection, search and loop); ratio,
// one with phrases to that; edits, of a line after one of their beginnings; build_ms, to build the graph.

#include <sluice/core/noise.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/length.hpp>
#include <sluice/sluice.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <free_lines.hpp>
#include <memory>
#include <span>
#include <vector>

namespace {

using sluice::Row, sluice::Slot, sluice::Token;

using free_lines::Lines, free_lines::size;

std::vector<sluice::BiasedPhrase> phrases(std::size_t count) {
  std::vector<sluice::BiasedPhrase> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto& spelling = all[i].spellings.emplace_back();
    for (std::size_t n = 0; n <= sluice::derive(1, i) % 6; ++n)
      spelling.push_back(static_cast<Token>(2 + sluice::derive(i, n) % (n == 0 ? 2000 : size - 2)));
  }
  return all;
}

template <class Search>
double microseconds(Lines& model, Search const& search) {
  constexpr std::size_t batch = 4;
  sluice::Statistics told;
  auto const time = sluice::bench::seconds([&] {
    sluice::Decoder decoder(model, search, sluice::Batched{.size = batch});
    for (std::size_t i = 0; i < batch; ++i) decoder.submit({.source = i});
    sluice::Result result;
    while (decoder.step()) {
    }
    while (decoder.poll(result)) benchmark::DoNotOptimize(result.hypotheses.data());
    told = decoder.statistics();
  });
  auto const share = 1 - told.seconds.model / told.seconds.total();
  return 1e6 * time * share / static_cast<double>(told.steps);
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

template <class Search>
void compare(benchmark::State& state, Search const& search) {
  Lines model(true);
  auto const all = phrases(static_cast<std::size_t>(state.range(1)));
  std::vector<double> plain, with, builds;
  sluice::Bias bias;
  for (int i = 0; i < 3; ++i) builds.push_back(1e3 * sluice::bench::seconds([&] { bias = sluice::Bias(all); }));
  sluice::Processed<Search> const biased{search, bias};
  for (auto _ : state) plain.push_back(microseconds(model, search)), with.push_back(microseconds(model, biased));
  std::vector<sluice::Edit> edits;
  sluice::detail::ContextGraph const graph(all);
  graph.edit(all.empty() ? 0 : graph.next(0, all[0].spellings[0][0]), edits);
  auto const us = median(plain);
  state.counters["us_step"] = us, state.counters["ratio"] = median(with) / us;
  state.counters["edits"] = static_cast<double>(edits.size()), state.counters["build_ms"] = median(builds);
}

void bias(benchmark::State& state) {
  sluice::LengthLimits const length{.max = 64};
  if (state.range(0) == 0) compare(state, sluice::Greedy{.length = length});
  else compare(state, sluice::BeamSearch{.width = static_cast<std::int32_t>(state.range(0)), .length = length});
}

BENCHMARK(bias)
    ->ArgNames({"width", "phrases"})
    ->ArgsProduct({{0, 4}, {0, 1000, 20000, 100000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
