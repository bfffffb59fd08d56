// SPDX-License-Identifier: Apache-2.0
/// \file
/// One decoder step of the example's Transformer, output projection included, beside its limits: one Eigen product of
/// 1024 x 1024 x 1024 in operations a second, one pass over all weights in bytes a second.
#include <sluice/output/packed_matrix.hpp>

#include "cpu_clock.hpp"
#include "yardstick.hpp"
#include <transformer/transformer.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::example;
using sluice::bench::seconds;

/// Arbitrary numbers: speed does not depend on them.
std::shared_ptr<Weights const> weights() {
  static auto const shared =
      Weights::load(std::string(SLUICE_SOURCE_DIR) + "/examples/apps/translate/model/model.safetensors");
  return shared;
}

/// 64 sentences (or as few as rows) of 12 to 20 pieces, `rows` hypotheses, 20 steps; a third of the rows forks.
void transformer_step(benchmark::State& state) {
  sluice::bench::one_thread();
  auto const rows = static_cast<Slot>(state.range(0));
  auto const beam = rows % 5 == 0 ? 5 : 1;
  Transformer model(weights());
  auto const& w = model.weights();
  PackedMatrix const projection(w.projection(), w.bias);
  std::vector<std::vector<Token>> sources;
  for (Slot slot = 0; slot < rows; slot += beam) sources.emplace_back(12 + slot % 9, 100 + slot);
  std::vector<Transformer::Source const*> pointers;
  std::vector<Slot> slots;
  for (auto const& source : sources)
    slots.push_back(static_cast<Slot>(pointers.size()) * beam), pointers.push_back(&source);

  std::vector<Token> const token{17};
  std::vector<float> logits(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.vocabulary.size));
  std::vector<Row> plan;
  double layers = 0, output = 0, best = std::numeric_limits<double>::infinity();
  std::int64_t steps = 0;
  for (auto _ : state) {
    state.PauseTiming();
    model.start(pointers, slots);
    state.ResumeTiming();
    for (std::int32_t length = 0; length < 20; ++length, ++steps) {
      plan.clear();
      for (Slot slot = 0; slot < rows; ++slot) {
        auto const first = slot / beam * beam;
        auto const fork = length == 0 || (slot - first >= 3 && slot - first < 5);
        plan.push_back({fork ? first : slot, slot, length, token});
      }
      double projected = 0;
      auto const total = seconds([&] {
        auto const answer = model.step(plan);
        projected = seconds([&] {
          projection.multiply(answer, {logits.data(), rows, w.vocabulary.size, w.vocabulary.size});
        });
      });
      benchmark::DoNotOptimize(logits.data());
      layers += total - projected, output += projected, best = std::min(best, total);
    }
  }
  auto const d = static_cast<double>(w.d), ff = static_cast<double>(w.ff);
  auto const parameters = static_cast<double>(w.decoder.size()) * (6 * d * d + 2 * d * ff) + w.vocabulary.size * d;
  auto const mean = (layers + output) / static_cast<double>(steps);
  state.counters["layers_ms"] = 1e3 * layers / static_cast<double>(steps);
  state.counters["output_ms"] = 1e3 * output / static_cast<double>(steps);
  state.counters["best_ms"] = 1e3 * best;
  state.counters["GF/s"] = 2 * parameters * rows / mean / 1e9;
  state.counters["of_1024"] = 2 * parameters * rows / mean / 1e9 / sluice::bench::eigen_gflops();
  if (rows == 1)
    state.counters["of_reading"] = mean / sluice::bench::read_seconds(static_cast<std::size_t>(parameters * 4));
}

BENCHMARK(transformer_step)->ArgNames({"rows"})->Arg(1)->Arg(5)->Arg(64)->Arg(320)->Unit(benchmark::kMillisecond);

}  // namespace
