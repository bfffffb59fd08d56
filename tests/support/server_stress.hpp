// SPDX-License-Identifier: Apache-2.0
/// \file
/// Faults that occur while a server is under stress, and the system's figures about the process.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server_options.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace sluice::test {

inline constexpr std::uint64_t kinds = 256;  // different sentences
inline constexpr std::size_t writers = 64, failures = 11, moments = 8;

inline bool no_encoding(std::uint64_t seed) { return seed % 64 == 1; }
inline bool no_start(std::uint64_t seed) { return seed % 64 == 2; }
inline bool bad_prefix(std::uint64_t seed) { return seed % 64 == 3; }
inline bool breaks(std::uint64_t seed) { return seed % 64 == 4; }

inline std::size_t number(char const* variable, std::size_t usual) {
  auto const* const asked = std::getenv(variable);
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}
inline std::size_t sentences(std::size_t usual) { return std::max(usual, number("SLUICE_STRESS", 0)); }

/// The thread sanitizer's own memory grows with the work, so resident memory says nothing about ours.
#ifdef __SANITIZE_THREAD__
inline constexpr bool memory_is_ours = false;
#elif defined(__has_feature)
inline constexpr bool memory_is_ours = !__has_feature(thread_sanitizer);
#else
inline constexpr bool memory_is_ours = true;
#endif

inline std::size_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4;
}

/// What has been reported about one request.
struct Told {
  std::atomic<std::uint64_t> seed{0};
  std::vector<Token> tokens;  // used by the worker
  std::atomic<int> answers{0};
};

inline std::size_t threads_alive() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

struct Stress {
  std::size_t sentences = 10'000;
  ServerOptions options;
  bool worst = false;  ///< NaN, a schedule and a `release` that throw, and slow callbacks too
};

/// Streaming that throws occasionally.
struct Moody : Streaming {
  std::size_t every = 0;  ///< 0: never
  std::shared_ptr<std::size_t> calls = std::make_shared<std::size_t>(0);

  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const> waiting) const {
    if (every > 0 && ++*calls % every == 0) throw std::runtime_error("no schedule");
    return Streaming::admit(live, waiting);
  }
};

}  // namespace sluice::test
