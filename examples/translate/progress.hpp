// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is said on standard error: a bar while the work goes on, and messages.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <unistd.h>

namespace translate {

/// Any thread may call.
class Progress {
 public:
  /// \param total  sentences to come; 0: unknown
  explicit Progress(bool force, std::size_t total) : shown_(force || isatty(STDERR_FILENO) != 0), total_(total) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() { clear(); }

  void add(std::size_t sentences) {
    std::lock_guard const lock(mutex_);
    done_ += sentences;
    auto const now = Clock::now();
    if (!shown_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    draw();
  }
  /// The last word on the work; messages may still follow.
  void finish() {
    std::lock_guard const lock(mutex_);
    if (!shown_) return;
    draw();
    std::fputc('\n', stderr);
    width_ = 0, shown_ = false;
  }
  void say(std::string const& message) {
    std::lock_guard const lock(mutex_);
    clear();
    std::fprintf(stderr, "translate: %s\n", message.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  void draw() {
    auto const seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    char rate[64];
    std::snprintf(rate, sizeof rate, "%.1f/s", static_cast<double>(done_) / std::max(seconds, 1e-3));
    std::string line;
    if (total_ > 0) {
      constexpr std::size_t cells = 30;
      auto const filled = std::min(done_, total_) * cells / total_;
      line.append("[").append(filled, '#').append(cells - filled, ' ').append("] ");
      line.append(std::to_string(done_)).append("/").append(std::to_string(total_));
    } else {
      line = std::to_string(done_);
    }
    line.append(" sentences, ").append(rate);
    auto const width = line.size();
    if (width < width_) line.append(width_ - width, ' ');
    std::fprintf(stderr, "\r%s", line.c_str());
    width_ = width;
  }
  void clear() {
    if (width_ > 0) std::fprintf(stderr, "\r%s\r", std::string(width_, ' ').c_str());
    width_ = 0;
  }

  std::mutex mutex_;
  bool shown_;
  std::size_t total_, done_ = 0;
  std::size_t width_ = 0;  // of what stands on the line
  Clock::time_point begun_ = Clock::now(), drawn_ = begun_;
};

}  // namespace translate
