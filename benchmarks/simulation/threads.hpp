// SPDX-License-Identifier: Apache-2.0
/// \file
/// Threads that take the lines of one text and give their translations back, in virtual time.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>

#include "distributions.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace simulation {

/// A queue of lines with a lock, an output with another, and the threads that need both. All times in seconds.
struct Queue {
  double sentences = 1e6;
  std::size_t threads = 1;
  std::size_t taken = 4096;  ///< lines at once
  double decode = 0.01;      ///< of a mean sentence
  double variation = 0.57;   ///< of that: standard deviation / mean
  double read = 5e-7;        ///< of a line, under the lock of the input
  double prepare = 1e-5;     ///< of a line: its pieces
  double format = 5e-6;      ///< of a result: its text
  double write = 1e-6;       ///< of a result, under the lock of the output
  bool locked = false;       ///< lines are prepared and results formatted under the locks, too
  std::uint64_t seed = 1;

  /// Throws std::invalid_argument naming the member and its value.
  void check() const {
    sluice::require(sentences >= 1 && sentences <= 1e8, "sentences", sentences, "must be from 1 to 1e8");
    sluice::require(threads >= 1 && threads <= 4096, "threads", threads, "must be from 1 to 4096");
    sluice::require(taken >= 1 && taken <= 1000000, "taken", taken, "must be from 1 to 1000000");
    sluice::require(decode > 0 && std::isfinite(decode), "decode", decode, "must be more than 0");
    for (auto const& [name, value] : {std::pair{"variation", variation},
                                      {"read", read},
                                      {"prepare", prepare},
                                      {"format", format},
                                      {"write", write}})
      sluice::require(value >= 0 && std::isfinite(value), name, value, "must be 0 or more");
  }
  /// Of one sentence in one thread that never waits.
  double work() const { return decode + read + prepare + format + write; }
  /// Sentences a second that the locks let through, however many threads there are.
  double limit() const {
    auto const input = read + (locked ? prepare : 0), output = write + (locked ? format : 0);
    return 1 / std::max({input, output, 1e-300});
  }
};

/// Seconds; all but the first are sums over threads, and their sum is threads * total.
struct Queued {
  double total = 0;    ///< until the last line is written
  double work = 0;     ///< of all kinds
  double waiting = 0;  ///< for either lock
  double idle = 0;     ///< at the end, until the last thread is done
};

/// Each thread takes lines, then decodes one after another and gives each back. Whoever asks first has a lock first.
inline Queued work_off(Queue const& q) {
  q.check();
  struct Thread {
    double when;
    std::size_t which;
    bool takes;  // else it gives a result back
    bool operator>(Thread const& other) const { return std::pair(when, which) > std::pair(other.when, other.which); }
  };
  std::priority_queue<Thread, std::vector<Thread>, std::greater<>> threads;
  for (std::size_t i = 0; i < q.threads; ++i) threads.push({.when = 0, .which = i, .takes = true});
  std::vector<double> ends(q.threads);
  std::vector<std::size_t> lines(q.threads);  // taken and not yet decoded
  auto left = static_cast<std::size_t>(q.sentences);
  std::size_t drawn = 0;
  double input = 0, output = 0;  // when the locks are free again
  Queued sum;

  // Of one thing under a lock: when it is done.
  auto const under = [&](double& lock, double now, double seconds) {
    auto const begin = std::max(lock, now);
    sum.waiting += begin - now, sum.work += seconds;
    return lock = begin + seconds;
  };
  auto const decode = [&](Thread thread, double before) {
    --lines[thread.which];
    auto const noise = normal(sluice::derive(q.seed, drawn++), 0);
    auto const seconds = before + log_normal(q.decode, q.variation, noise) + (q.locked ? 0 : q.format);
    sum.work += seconds;
    threads.push({.when = thread.when + seconds, .which = thread.which, .takes = false});
  };
  while (!threads.empty()) {
    auto thread = threads.top();
    threads.pop();
    if (!thread.takes) {
      thread.when = under(output, thread.when, q.write + (q.locked ? q.format : 0));
      sum.total = std::max(sum.total, thread.when);
      if (lines[thread.which] > 0) decode(thread, 0);
      else threads.push({.when = thread.when, .which = thread.which, .takes = true});
      continue;
    }
    // As translate does, a thread leaves some for the others near the end.
    auto const count = std::min(q.taken, (left + q.threads - 1) / q.threads);
    if (count == 0) {
      ends[thread.which] = thread.when;
      continue;
    }
    left -= count, lines[thread.which] = count;
    auto const n = static_cast<double>(count);
    thread.when = under(input, thread.when, n * (q.read + (q.locked ? q.prepare : 0)));
    decode(thread, q.locked ? 0 : n * q.prepare);
  }
  for (auto const end : ends) sum.idle += sum.total - end;
  return sum;
}

}  // namespace simulation
