// SPDX-License-Identifier: Apache-2.0
// Memory of the paged KV cache under a beam of 50 with long outputs, compared with full copies.
//
// Sources are sentences joined to at least 64 tokens. Counters: peak_MB of pages in use; full_copy_MB: the largest sum,
// over the rows of a step, of what a slot that owns its cache alone would hold; ratio of the two; copies of pages and forks
// per row; positions of a page.

#include <sluice/core/plan.hpp>
#include <sluice/sluice.hpp>

#include "shipped_model.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

struct Longest {
  std::size_t positions = 0;  // of all rows of a step
  void planned(sluice::StepPlan const& step) {
    std::size_t sum = 0;
    for (auto const& row : step.rows) sum += static_cast<std::size_t>(row.length) + row.tokens.size();
    positions = std::max(positions, sum);
  }
};

std::vector<bench::Sentence> joined(std::size_t count) {
  std::vector<bench::Sentence> all;
  bench::Sentence now;
  for (auto const& sentence : bench::data().sentences) {
    now.insert(now.end(), sentence.begin(), sentence.end());
    if (now.size() < 64) continue;
    all.push_back(now);
    now.clear();
    if (all.size() == count) break;
  }
  return all;
}

void beam(benchmark::State& state) {
  auto const& d = bench::data();
  auto const sources = joined(4);
  auto const width = static_cast<std::int32_t>(state.range(0));
  for (auto _ : state) {
    sluice::example::Transformer model(d.weights);
    sluice::BeamSearch const search{.width = width, .length = {.min = 64, .max = 96}};
    sluice::Decoder decoder(model, search, sluice::Batched{.size = 4}, *d.projection, Longest{});
    for (auto const& source : sources) decoder.submit({.source = source});
    while (decoder.step()) {
    }
    auto const& use = model.cache_use();
    auto const bytes_per_position =
        static_cast<double>(d.weights->decoder.size()) * 2 * static_cast<double>(d.weights->d) * 4;
    auto const page = static_cast<double>(use.bytes) / static_cast<double>(std::max(use.allocated, 1));
    auto const peak = page * static_cast<double>(use.peak);
    auto const full = bytes_per_position * static_cast<double>(decoder.trace().positions);
    state.counters["peak_MB"] = peak / 1e6;
    state.counters["full_copy_MB"] = full / 1e6;
    state.counters["ratio"] = peak / full;
    state.counters["forks/row"] = static_cast<double>(use.forks) / static_cast<double>(decoder.statistics().rows);
    state.counters["copies/row"] = static_cast<double>(use.copies) / static_cast<double>(decoder.statistics().rows);
    state.counters["page_positions"] = page / bytes_per_position;
  }
}
BENCHMARK(beam)->ArgName("width")->Arg(5)->Arg(50)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
