// SPDX-License-Identifier: Apache-2.0
/// \file
/// Outcomes as tables and as JSON.
#pragma once

#include "papers.hpp"
#include "simulate.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace simulation {

/// The share of the steps with sentences in each of up to eight ranges, and in a full batch of `size`.
struct Histogram {
  std::size_t size, ranges = std::min<std::size_t>(8, size);
  std::array<double, 9> parts{};

  std::size_t first(std::size_t range) const { return (range * size + ranges - 1) / ranges; }
};
inline Histogram histogram(Outcome const& outcome, std::size_t size) {
  Histogram h{.size = size};
  for (std::size_t n = 0; n < outcome.occupancy.size(); ++n)
    h.parts[n >= size ? h.ranges : n * h.ranges / size] +=
        static_cast<double>(outcome.occupancy[n]) / static_cast<double>(outcome.steps);
  return h;
}

/// Steps, occupancy and seconds of each, then the histograms. Ratios are relative to the first.
inline void print(std::span<Outcome const> outcomes, std::size_t size) {
  std::printf("%-16s %9s %9s %9s %7s %7s %11s %7s %11s %9s %7s %9s %9s %9s %7s\n", "schedule", "steps", "rows/step",
              "sent/step", "full %", "< 8 %", "decoder s", "ratio", "encoder s", "sent/s", "ratio", "p50 s", "p95 s",
              "p99 s", "took s");
  for (auto const& o : outcomes) {
    double taking_part = 0;
    for (std::size_t n = 0; n < o.occupancy.size(); ++n) taking_part += static_cast<double>(n * o.occupancy[n]);
    std::printf("%-16s %9llu %9.1f %9.1f %7.1f %7.1f %11.5g %7.3f %11.5g %9.4g %7.3f %9.4g %9.4g %9.4g %7.2f\n",
                o.name.c_str(), static_cast<unsigned long long>(o.steps), o.rows_per_step(),
                taking_part / static_cast<double>(o.steps), 100 * (1 - o.below(size)), 100 * o.below(8), o.decoder,
                o.decoder / outcomes[0].decoder, o.encoder, o.throughput(), o.throughput() / outcomes[0].throughput(),
                o.latency(0.5), o.latency(0.95), o.latency(0.99), o.wall);
  }
  std::printf("\nsentences in a step, %% of the steps\n%-16s", "");
  Histogram const ranges{.size = size};
  for (std::size_t i = 0; i < ranges.ranges; ++i) {
    auto const first = ranges.first(i), last = ranges.first(i + 1) - 1;
    std::printf(" %9s", (std::to_string(first) + (last > first ? "-" + std::to_string(last) : "")).c_str());
  }
  std::printf(" %9zu\n", size);
  for (auto const& o : outcomes) {
    std::printf("%-16s", o.name.c_str());
    auto const h = histogram(o, size);
    for (std::size_t i = 0; i <= h.ranges; ++i) std::printf(" %9.1f", 100 * h.parts[i]);
    std::printf("\n");
  }
}

/// The papers' numbers beside ours. Returns how many exceed their tolerance.
inline int print(std::span<Comparison const> comparisons) {
  int out = 0;
  std::printf("%-52s %10s %10s %8s  %s\n", "", "paper", "here", "off", "must be");
  for (auto const& c : comparisons) {
    char must[40] = "";
    switch (c.kind) {
      case Comparison::Kind::fitted: std::snprintf(must, sizeof must, "(fitted)"); break;
      case Comparison::Kind::relative: std::snprintf(must, sizeof must, "within %.0f %%", 100 * c.tolerance); break;
      case Comparison::Kind::absolute: std::snprintf(must, sizeof must, "within %g", c.tolerance); break;
      case Comparison::Kind::order: std::snprintf(must, sizeof must, c.tolerance < 0 ? "less" : "more"); break;
      case Comparison::Kind::shown: break;
    }
    std::printf("%-52s %10.5g %10.5g %7.1f%%  %s%s\n", c.what.c_str(), c.paper, c.ours, 100 * (c.ours / c.paper - 1),
                must, c.good() ? "" : "  OUT");
    out += !c.good();
  }
  return out;
}

/// One object per outcome.
inline nlohmann::ordered_json to_json(std::span<Outcome const> outcomes) {
  auto all = nlohmann::ordered_json::array();
  for (auto const& o : outcomes)
    all.push_back({{"schedule", o.name},
                   {"sentences", o.sentences},
                   {"tokens", o.tokens},
                   {"steps", o.steps},
                   {"rows", o.rows},
                   {"encoder_calls", o.encoder_calls},
                   {"seconds", o.seconds},
                   {"decoder_seconds", o.decoder},
                   {"encoder_seconds", o.encoder},
                   {"sentences_per_second", o.throughput()},
                   {"latency", {{"p50", o.latency(0.5)}, {"p95", o.latency(0.95)}, {"p99", o.latency(0.99)}}},
                   {"occupancy", o.occupancy},
                   {"wall_seconds", o.wall}});
  return all;
}

}  // namespace simulation
