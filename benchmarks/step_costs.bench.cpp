// SPDX-License-Identifier: Apache-2.0
// The cost of one greedy step of the shipped model, including the output layer, by rows and by the tokens that each row
// holds: step/rows/length (Yang et al. 2020, figure 2). Input of benchmarks/simulation.

#include <sluice/core/plan.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <shipped_model.hpp>
#include <vector>

namespace {

using sluice::Slot, sluice::Token;

void step(benchmark::State& state) {
  Eigen::setNbThreads(1);
  auto const& data = bench::data();
  auto const rows = static_cast<std::size_t>(state.range(0));
  auto const length = static_cast<std::int32_t>(state.range(1));
  sluice::example::Transformer model(data.weights);
  auto projection = *data.projection;

  // Sources spread evenly over the file; every row gets the same tokens.
  std::vector<bench::Sentence const*> sources;
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < rows; ++i) {
    sources.push_back(&data.unsorted[i * data.unsorted.size() / rows]);
    slots.push_back(static_cast<Slot>(i));
  }
  model.start(sources, slots);
  std::vector<Token> const held(static_cast<std::size_t>(length), 5);
  Token const next = 7;
  sluice::StepPlan plan;
  auto const feed = [&](std::int32_t from, std::span<Token const> tokens) {
    plan.clear();
    for (auto const slot : slots) {
      sluice::Plan one(plan, slot);
      one.row(0, 0, from, tokens);
      one.ask({.best = 1});
      one.keep(1);
    }
    auto const answer = model.step(std::span<sluice::Row const>(plan.rows));
    benchmark::DoNotOptimize(projection.expand(answer, plan.queries, plan.groups));
  };
  if (length > 0) feed(0, held);
  auto total = 0.0;
  for (auto _ : state) {
    auto const seconds = sluice::bench::seconds([&] { feed(length, {&next, 1}); });
    state.SetIterationTime(seconds);
    total += seconds;
  }
  state.counters["us_row"] = 1e6 * total / static_cast<double>(state.iterations()) / static_cast<double>(rows);
}

BENCHMARK(step)
    ->ArgNames({"rows", "length"})
    ->ArgsProduct({{1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 320}, {1, 10, 20, 40}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
