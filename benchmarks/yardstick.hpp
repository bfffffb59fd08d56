// SPDX-License-Identifier: Apache-2.0
/// \file
/// The machine's own speed, by which other times are divided, and runs of work that alternate, in CPU time.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include "cpu_clock.hpp"

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace sluice::bench {

inline double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::ranges::sort(numbers);
  return (numbers[(numbers.size() - 1) / 2] + numbers[numbers.size() / 2]) / 2;
}

/// Runs everything in the calling thread from now on: CPU time is that thread's.
inline void one_thread() {
  Eigen::setNbThreads(1);
#if defined(_OPENMP)
  omp_set_num_threads(1);
#endif
}

/// The median of seven calls.
template <class F>
double median_seconds(F const& f) {
  std::vector<double> times(7);
  for (auto& time : times) time = seconds(f);
  return median(times);
}

/// GF/s of one Eigen product 1024 x 1024 x 1024.
inline double eigen_gflops() {
  one_thread();
  static Eigen::MatrixXf const a = Eigen::MatrixXf::Random(1024, 1024), b = Eigen::MatrixXf::Random(1024, 1024);
  static Eigen::MatrixXf c(1024, 1024);
  auto const time = median_seconds([] {
    c.noalias() = a * b;
    benchmark::DoNotOptimize(c.data());
  });
  return 2.0 * 1024 * 1024 * 1024 / time / 1e9;
}

/// Reads every number once, as fast as possible, with minimal work: the maximum. Reads four places at a time,
/// prefetched, since hardware prefetching stops at page boundaries.
inline void read(std::span<float const> memory) {
  constexpr std::size_t places = 4, vectors = 8, block = vectors * detail::simd::lanes, ahead = 1024;
  detail::simd::Vec best[vectors] = {};
  auto const take = [&](float const* from) {
    for (std::size_t v = 0; v < vectors; ++v) {
      best[v] = detail::simd::max(best[v], detail::simd::load(from + v * detail::simd::lanes));
      __builtin_prefetch(from + v * detail::simd::lanes + ahead);
    }
  };
  auto const part = memory.size() / places / block * block;
  for (std::size_t i = 0; i < part; i += block)
    for (std::size_t p = 0; p < places; ++p) take(memory.data() + p * part + i);
  for (auto i = places * part; i + block <= memory.size(); i += block) take(memory.data() + i);
  for (auto& numbers : best) benchmark::DoNotOptimize(numbers);
}

/// Seconds to read so many bytes once, from wherever the last read left them.
inline double read_seconds(std::size_t bytes) {
  AlignedVector<float> const memory(bytes / sizeof(float), 1.0f);
  return median_seconds([&] { read(memory); });
}

/// Runs several pieces of work in alternation, so that other load on the machine affects all of them.
///
///     Turns turns;
///     auto const ours = turns.add([] { f(); }), theirs = turns.add([] { g(); });
///     for (auto _ : state) turns.round();
///     turns.seconds(ours), turns.ratio(theirs, ours)
class Turns {
 public:
  /// \param warm  runs each piece of work once untimed before it is timed, so that the other work's effect on the
  ///              caches does not count. A step of a decoder finds its weights where its last step left them
  explicit Turns(bool warm = false) : warm_(warm) {}

  /// Each call of `work` is timed as a whole.
  std::size_t add(std::function<void()> work) {
    work_.push_back(std::move(work));
    times_.emplace_back();
    return work_.size() - 1;
  }

  /// Runs every piece once, starting with a different one in each round.
  void round() {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      auto const who = (first_ + i) % work_.size();
      if (warm_) work_[who]();
      times_[who].push_back(bench::seconds(work_[who]));
    }
    ++first_;
  }

  double seconds(std::size_t i) const { return median(times_[i]); }
  /// The median over the rounds of i's time divided by j's in the same round.
  double ratio(std::size_t i, std::size_t j) const {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < times_[i].size(); ++r) ratios.push_back(times_[i][r] / times_[j][r]);
    return median(ratios);
  }

 private:
  std::vector<std::function<void()>> work_;
  std::vector<std::vector<double>> times_;  // [work][round]
  std::size_t first_ = 0;
  bool warm_;
};

/// SLUICE_BENCH_ALL: the large shapes too.
inline bool all_shapes() { return std::getenv("SLUICE_BENCH_ALL") != nullptr; }

/// SLUICE_ROUNDS: the number of rounds for medians if one round takes seconds.
inline int rounds() {
  auto const* const number = std::getenv("SLUICE_ROUNDS");
  return number != nullptr ? std::max(1, std::atoi(number)) : 1;
}

}  // namespace sluice::bench
