// SPDX-License-Identifier: Apache-2.0
/// \file
/// Limits how many sentences are open.
#pragma once

#include <cstddef>
#include <mutex>

namespace serve {

/// Counts sentences and their requests; admits all sentences of a request or none. Any thread may call.
class Admission {
 public:
  enum class Entry { granted, full, closed };

  /// \param most  maximum number of sentences, waiting or running
  explicit Admission(std::size_t most) : most_(most) {}

  /// A request with so many sentences; if it is admitted, call leave() later.
  Entry enter(std::size_t sentences) {
    std::lock_guard const lock(mutex_);
    if (closed_) return Entry::closed;
    if (sentences > most_ - sentences_) return Entry::full;
    sentences_ += sentences, ++requests_;
    return Entry::granted;
  }
  /// One of the sentences has its result.
  void answered() {
    std::lock_guard const lock(mutex_);
    --sentences_;
  }
  /// The request has its answer.
  void leave() {
    std::lock_guard const lock(mutex_);
    --requests_;
  }
  /// Admits nothing more.
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
