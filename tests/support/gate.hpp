// SPDX-License-Identifier: Apache-2.0
/// \file
/// Synchronisation for tests with several threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sluice::test {

/// A gate that stays open once opened. A thread that waits is released after a minute anyway, and told so: the test
/// then fails instead of hanging.
class Gate {
 public:
  void open() {
    {
      std::lock_guard const lock(mutex_);
      open_ = true;
    }
    change_.notify_all();
  }
  bool pass() {
    std::unique_lock lock(mutex_);
    return change_.wait_for(lock, std::chrono::seconds(60), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  bool open_ = false;
};

}  // namespace sluice::test
