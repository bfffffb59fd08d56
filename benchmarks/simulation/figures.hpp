// SPDX-License-Identifier: Apache-2.0
/// \file
/// The figures of docs/benchmarks/simulation.md.
#pragma once

#include "cost_model.hpp"
#include "distributions.hpp"
#include "report.hpp"
#include "schedules.hpp"
#include "simulate.hpp"
#include "svg.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace simulation {

/// A histogram of the sentences in a step for each outcome.
inline void write_occupancy(std::span<Outcome const> outcomes, std::size_t size, std::string const& path) {
  constexpr std::size_t ranges = 16;
  Svg svg(3);
  for (auto const& o : outcomes) {
    std::array<double, ranges + 1> parts{};
    for (std::size_t n = 0; n < o.occupancy.size(); ++n)
      parts[n >= size ? ranges : n * ranges / size] +=
          100 * static_cast<double>(o.occupancy[n]) / static_cast<double>(o.steps);
    auto const most = *std::ranges::max_element(parts);
    Chart chart{.title = o.name,
                .x_label = "sentences in a step (the last bar: all " + std::to_string(size) + ")",
                .y_label = "% of the steps",
                .y_most = most <= 40 ? 40.0 : 100.0};
    for (std::size_t i = 0; i <= ranges; ++i)
      chart.bars.emplace_back(i % 4 == 0 ? std::to_string(i * size / ranges) : "", parts[i]);
    svg.add(chart);
  }
  svg.write(path);
}

/// Figure 2 of Yang et al. 2020, for the fitted cost: the time of a step at each length.
inline void write_step_time(std::string const& path) {
  Chart chart{.title = "A step of the fitted GPU",
              .x_label = "tokens in the longest row",
              .y_label = "seconds",
              .x_most = 40,
              .y_most = 0.2};
  for (auto const rows : {1, 300, 900}) {
    Chart::Line line{.name = std::to_string(rows) + (rows == 1 ? " row" : " rows"), .points = {}};
    for (std::int32_t length = 1; length <= 40; ++length)
      line.points.emplace_back(length, gpu().step({.rows = rows, .longest = length}));
    chart.lines.push_back(std::move(line));
  }
  Svg svg(1);
  svg.add(chart);
  svg.write(path);
}

/// Latency over load, for requests that arrive at random. Load 1 is the throughput of Batched if all requests are there
/// at the start.
inline void write_load(std::string const& path, std::size_t count, std::uint64_t seed) {
  Svg svg(2);
  auto const scripts = draw(test_sets[0], {}, count, seed);
  Sizes const sizes{};
  struct Machine {
    std::string name;
    Cost cost;
    std::string schedules;
  };
  std::vector<Machine> const machines{{"gpu-flat", flat_gpu(), "batched,fifo,top-up,continuous"},
                                      {"gpu", gpu(), "batched,var-stream,top-up,continuous"}};
  std::vector<std::vector<Chart>> charts(2);  // p50, p99
  for (auto const& machine : machines) {
    auto const most = simulate(scripts, machine.cost, to_plan("batched", sizes)).throughput();
    for (std::size_t i = 0; i < 2; ++i)
      charts[i].push_back({.title = std::string(i == 0 ? "median" : "99th percentile") + ", " + machine.name,
                           .x_label = "requests / what Batched can do",
                           .y_label = "seconds",
                           .x_least = 0,
                           .x_most = 1.6,
                           .y_least = 1,
                           .y_most = 1000,
                           .logarithmic = true});
    for (auto const& plan : to_plans(machine.schedules, sizes)) {
      std::array<Chart::Line, 2> lines{{{.name = plan.name, .points = {}}, {.name = plan.name, .points = {}}}};
      for (double load = 0.1; load < 1.65; load += 0.1) {
        auto const outcome = simulate(scripts, machine.cost, plan, {.rate = load * most, .seed = seed});
        lines[0].points.emplace_back(load, outcome.latency(0.5)),
            lines[1].points.emplace_back(load, outcome.latency(0.99));
      }
      for (std::size_t i = 0; i < 2; ++i) charts[i].back().lines.push_back(std::move(lines[i]));
    }
  }
  for (auto const& row : charts)
    for (auto const& chart : row) svg.add(chart);
  svg.write(path);
}

/// Writes all figures into a folder.
inline void write_figures(std::string const& folder, std::uint64_t seed) {
  Sizes const sizes{};
  for (auto const& traffic : {test_sets[0], test_sets[1]}) {
    auto const scripts = draw(traffic, {}, traffic.name == "europarl" ? 30000 : 50000, seed);
    std::vector<Outcome> outcomes;
    for (auto const& plan : to_plans("batched,batched/1280,fifo,var-stream,top-up,continuous", sizes))
      outcomes.push_back(simulate(scripts, flat_gpu(), plan));
    write_occupancy(outcomes, sizes.size, folder + "/occupancy-" + std::string(traffic.name) + ".svg");
  }
  write_step_time(folder + "/step-time.svg");
  write_load(folder + "/load.svg", 20000, seed);
}

}  // namespace simulation
