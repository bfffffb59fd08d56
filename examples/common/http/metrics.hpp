// SPDX-License-Identifier: Apache-2.0
/// \file
/// What happened, in Prometheus' text format.
#pragma once

#include <sluice/core/result.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <http/admission.hpp>
#include <http/backend.hpp>
#include <http/memory.hpp>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>

namespace serve {

/// Counts of seconds.
class Histogram {
 public:
  static constexpr std::array bounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0};

  void add(double seconds);
  /// \param labels  as `name="value",`; may be empty
  void write(std::ostream& out, std::string const& name, std::string const& labels) const;

 private:
  std::array<std::uint64_t, bounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// Any thread may call.
class Metrics {
 public:
  using Seconds = std::chrono::duration<double>;

  void request(std::string const& path, int status, Seconds took);
  void sentence(sluice::Failure failure, Seconds took);
  /// The rounds of blockwise decoding in a result.
  void blocks(sluice::Result const& result);
  /// The time until the first text of a stream.
  void first_text(Seconds took);

  std::string write(Backend const& backend, Admission const& admission, MemoryPool const& memory) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::string, Histogram> request_seconds_;
  std::map<std::string, std::uint64_t> sentences_;  // by failure
  Histogram sentence_seconds_, first_seconds_;
  std::uint64_t rounds_ = 0, round_tokens_ = 0;
};

}  // namespace serve
