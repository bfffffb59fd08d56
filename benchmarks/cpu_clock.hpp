// SPDX-License-Identifier: Apache-2.0
/// \file
/// Time that the calling thread has run: what a busy machine takes away does not count.
#pragma once

#include <ctime>

namespace sluice::bench {

/// Seconds since some moment.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Seconds that f() takes.
template <class F>
double seconds(F&& f) {
  auto const start = cpu_seconds();
  f();
  return cpu_seconds() - start;
}

}  // namespace sluice::bench
