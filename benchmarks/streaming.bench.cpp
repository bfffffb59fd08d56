// SPDX-License-Identifier: Apache-2.0
// Streaming against Batched, both over the same model in one process, taking turns. Sentences in the order of the file,
// encoded ahead in groups of 64 between the steps, so that both encode in the same way.
//
// One iteration decodes all sentences by either schedule. Counters: x_decoder, x_total = seconds of Batched / seconds of
// Streaming (medians over the iterations; decoder = all but encoding); steps, steps_batched; full = mean rows of a step /
// capacity, as long as requests wait (greedy: capacity = size). SLUICE_ROUNDS: iterations. SLUICE_TRAFFIC: a folder for
// the sentences' lengths and rows, which benchmarks/simulation reads.

#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
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
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <shipped_model.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Cost {
  double decoder = 0, total = 0;  // CPU seconds of the thread, as measured by the decoder
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

/// Records how many rows each sentence has in each of its steps.
class RowsOfSentences {
 public:
  void admitted(std::uint64_t id, sluice::Slot base, std::int32_t slots) {
    for (auto slot = base; slot < base + slots; ++slot) holder_[slot] = id;
    rows_.resize(std::max(rows_.size(), static_cast<std::size_t>(id) + 1));
  }
  void planned(sluice::StepPlan const& step) {
    auto last = std::numeric_limits<std::uint64_t>::max();
    for (auto const& row : step.rows) {
      auto const id = holder_.at(row.to);
      if (id != last) rows_[id].push_back(0);
      ++rows_[id].back(), last = id;
    }
  }
  std::vector<std::vector<int>> const& rows() const { return rows_; }

 private:
  std::map<sluice::Slot, std::uint64_t> holder_;
  std::vector<std::vector<int>> rows_;  // [sentence][step]
};

/// Input for benchmarks/simulation: source tokens, steps, rows of each step.
template <class S>
void write_traffic(std::filesystem::path const& file, S const& search) {
  auto const& data = bench::data();
  sluice::example::Transformer model(data.weights);
  sluice::Decoder decoder(model, search, sluice::Batched{}, *data.projection, RowsOfSentences());
  for (auto const& sentence : data.unsorted) decoder.submit({.source = sentence});
  while (decoder.step()) {
  }
  std::ofstream out(file);
  for (std::size_t i = 0; i < data.unsorted.size(); ++i) {
    auto const& rows = decoder.trace().rows()[i];
    out << data.unsorted[i].size() << ' ' << rows.size();
    for (auto const n : rows) out << ' ' << n;
    out << '\n';
  }
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

/// SLUICE_ROUNDS: the number of rounds; medians are taken over them.
int rounds() {
  auto const* const number = std::getenv("SLUICE_ROUNDS");
  return number != nullptr ? std::max(1, std::atoi(number)) : 1;
}

void add(std::string const& name, auto const& search, sluice::Streaming const& streaming, std::size_t window) {
  auto const full = "streaming/" + name + "/size:" + std::to_string(streaming.size) +
                    "/refill:" + std::to_string(streaming.refill_below).substr(0, 4) +
                    (streaming.order == sluice::Streaming::Order::shortest_only ? "/shortest" : "") +
                    "/window:" + std::to_string(window);
  benchmark::RegisterBenchmark(full.c_str(),
                               [=](benchmark::State& state) { compare(state, search, streaming, window); })
      ->Iterations(rounds())
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
  if (auto const* const folder = std::getenv("SLUICE_TRAFFIC")) {
    std::filesystem::path const to = folder;
    write_traffic(to / "greedy", greedy), write_traffic(to / "beam5", beam);
    write_traffic(to / "variable10", variable), write_traffic(to / "sample", sample);
  }
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
