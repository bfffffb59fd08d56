// SPDX-License-Identifier: Apache-2.0
/// \file
/// How tests of several threads wait for each other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sluice::test {

/// A door that stays open once it is. Who waits for it is let through after a minute all the same, and told so: a test
/// fails then, and does not hang.
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
