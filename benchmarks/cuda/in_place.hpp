// SPDX-License-Identifier: Apache-2.0
/// \file
/// The product of few lines with some tokens' weights, read in place: by FMA and on matrix units, side by side.
#pragma once

#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <device_array.hpp>
#include <iostream>
#include <map>
#include <program.hpp>
#include <record.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

/// For weights [columns, depth] and hidden vectors [rows, depth], in half precision. Every token of an evenly spread
/// list is active for every line; lists alternate, so that together they are larger than the cache.
class InPlace {
 public:
  using Format = cuda::detail::Float16;

  std::int32_t columns = 1, depth = 1;
  Format::Bits const* weights = nullptr;
  Format::Bits const* hidden = nullptr;
  std::span<std::pair<std::int32_t, std::vector<float>> const>
      logits;  ///< of some lines, all tokens, in double precision

  /// \param lines  at most the number of hidden vectors
  /// \param share  share of active tokens
  void run(Machine& machine, std::int32_t lines, double share) const {
    auto const active = static_cast<std::int32_t>(std::lround(share * columns));
    auto const bytes = static_cast<std::size_t>(active) * static_cast<std::size_t>(depth) * sizeof(Format::Bits);
    auto const sets = std::min(cold_sets(bytes, machine.cache), columns / active);
    std::vector<Token> tokens;
    for (std::int32_t set = 0; set < sets; ++set)
      for (std::int32_t i = 0; i < active; ++i) tokens.push_back(token(set, i, active));
    DeviceArray<Token> const there = filled(tokens);
    DeviceArray<cuda::detail::UnionResult> const results =
        filled(std::vector<cuda::detail::UnionResult>{{active, 0, 0}, {0, 0, 0}});
    DeviceArray<float> made(static_cast<std::size_t>(lines) * static_cast<std::size_t>(columns));

    cuda::detail::SkinnyLaunch<Format> launch{weights, depth, hidden, depth, lines, depth, nullptr, results.data()};
    launch.size = launch.columns = columns;
    launch.active.each = lines, launch.active.results = results.data() + 1;  // no union decides
    launch.logits = made.data(), launch.stride = columns;
    std::map<std::string_view, double> by_fma;
    for (auto const on_matrix_units : {false, true}) {
      launch.matrix_lines = on_matrix_units ? 1 : cuda::detail::most_skinny_lines + 1;
      launch.share_among(machine.processors);
      auto const work = [&](int set, cudaStream_t stream) {
        launch.tokens = there.data() + static_cast<std::ptrdiff_t>(set) * active;
        cuda::detail::launch_skinny(launch, stream, cuda::detail::Start::after);
      };
      Record record(on_matrix_units ? "matrix units" : "FMA");
      record.add("experiment", "product in place").add("rows", lines).add("V", columns).add("active", active);
      record.add("type", "float16").add("bytes", bytes).add("d", depth).add("timed", "graph");
      made.poison();
      work(0, machine.timer.stream());
      cuda::check(cudaStreamSynchronize(machine.timer.stream()), "a product in place");
      if (!right(made, lines, active)) {
        machine.wrong = true;
        record.add("error", "a logit is wrong").write(std::cout);
        continue;
      }
      auto const time = [&](int turns, std::string_view cache) {
        auto const spent = machine.timer(turns, work);
        auto one = record;
        if (on_matrix_units) one.add("FMA / this", by_fma[cache] / spent.median);
        else by_fma[cache] = spent.median;
        one.add("of limit", machine.reading(bytes) / spent.median).add(cache, spent).write(std::cout);
      };
      if (bytes * static_cast<std::size_t>(sets) >= 2 * machine.cache) time(sets, "cold");
      if (bytes <= machine.cache / 4 * 3) time(1, "warm");
    }
  }

 private:
  template <class T>
  static DeviceArray<T> filled(std::vector<T> const& from) {
    DeviceArray<T> array(from.size());
    array.set(from);
    return array;
  }
  Token token(std::int32_t set, std::int32_t i, std::int32_t active) const {
    return static_cast<Token>(std::int64_t{i} * columns / active) + set;
  }
  bool right(DeviceArray<float> const& made, std::int32_t lines, std::int32_t active) const {
    auto const size = static_cast<std::size_t>(columns);
    for (auto const& [line, expected] : logits) {
      if (line >= lines) continue;
      auto const got = made.get(static_cast<std::size_t>(line) * size, size);
      for (std::int32_t i = 0; i < active; ++i) {
        auto const at = static_cast<std::size_t>(token(0, i, active));
        if (!(std::abs(got[at] - expected[at]) <= 1e-3f)) return false;  // NaN fails too
      }
    }
    return true;
  }
};

}  // namespace sluice::bench
