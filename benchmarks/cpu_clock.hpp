// SPDX-License-Identifier: Apache-2.0
/// \file
/// The calling thread's CPU time, which does not count time lost to other processes.
#pragma once

#include <ctime>

namespace sluice::bench {

/// Seconds since an arbitrary moment.
inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The CPU seconds of f().
template <class F>
double seconds(F&& f) {
  auto const start = cpu_seconds();
  f();
  return cpu_seconds() - start;
}

}  // namespace sluice::bench
