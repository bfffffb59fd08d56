// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many may be inside.
#pragma once

#include <cstddef>
#include <mutex>

namespace serve {

/// Counts sentences and the requests that they belong to; all of a request's are let in, or none. Any thread may call.
class Admission {
 public:
  enum class Entry { granted, full, closed };

  /// \param most  sentences, waiting or running
  explicit Admission(std::size_t most) : most_(most) {}

  /// A request with so many sentences; leave() follows where it is granted.
  Entry enter(std::size_t sentences) {
    std::lock_guard const lock(mutex_);
    if (closed_) return Entry::closed;
    if (sentences > most_ - sentences_) return Entry::full;
    sentences_ += sentences, ++requests_;
    return Entry::granted;
  }
  /// One of them has its result.
  void answered() {
    std::lock_guard const lock(mutex_);
    --sentences_;
  }
  /// The request has its answer.
  void leave() {
    std::lock_guard const lock(mutex_);
    --requests_;
  }
  /// Nobody comes in any more.
  void close() {
    std::lock_guard const lock(mutex_);
    closed_ = true;
  }
  bool closed() const {
    std::lock_guard const lock(mutex_);
    return closed_;
  }
  std::size_t sentences() const {
    std::lock_guard const lock(mutex_);
    return sentences_;
  }
  std::size_t requests() const {
    std::lock_guard const lock(mutex_);
    return requests_;
  }
  std::size_t most() const { return most_; }

 private:
  std::size_t most_;
  mutable std::mutex mutex_;
  std::size_t sentences_ = 0, requests_ = 0;
  bool closed_ = false;
};

}  // namespace serve
