// SPDX-License-Identifier: Apache-2.0
/// \file
/// Output on standard error: a progress bar, and messages.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>

namespace translate {

/// Any thread may call.
class Progress {
 public:
  /// \param units  what is counted
  explicit Progress(bool force, std::string program = "translate", std::string units = "sentences")
      : program_(std::move(program)), units_(std::move(units)), shown_(force || isatty(STDERR_FILENO) != 0) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() { clear(); }

  /// Adds so many sentences to the total; with none, it is unknown.
  void expect(std::size_t sentences) {
    std::lock_guard const lock(mutex_);
    if (!following_) total_ += sentences;
  }
  /// \param resumed  whether an earlier run did them: they do not count for the rate
  void add(std::size_t sentences, bool resumed = false) {
    std::lock_guard const lock(mutex_);
    if (!following_) done_ += sentences, resumed_ += resumed ? sentences : 0;
    auto const now = Clock::now();
    if (!shown_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    draw(now);
  }
  /// This program is one of several: the bar shows the progress of all of them, as told to reach().
  void follow() {
    std::lock_guard const lock(mutex_);
    following_ = true;
  }
  void reach(std::size_t done, std::size_t total) {
    std::lock_guard const lock(mutex_);
    if (following_) done_ = std::max(done_, done), total_ = total;
  }
  /// Another program shows the bar.
  void hide() {
    std::lock_guard const lock(mutex_);
    shown_ = false;
  }
  /// Ends the bar; messages may still follow.
  void finish() {
    std::lock_guard const lock(mutex_);
    if (!shown_) return;
    if (following_) done_ = total_;  // but for what others still have
    draw(Clock::now());
    std::fputc('\n', stderr);
    width_ = 0, shown_ = false;
  }
  void say(std::string const& message) {
    std::lock_guard const lock(mutex_);
    clear();
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), message.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// "1:02:03", "4:05"
  static std::string duration(double seconds) {
    auto const whole = static_cast<long long>(seconds);
    char text[48];
    if (whole < 3600) std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
    else std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    return text;
  }

  void draw(Clock::time_point now) {
    auto const seconds = std::chrono::duration<double>(now - begun_).count();
    auto const rate = static_cast<double>(done_ - resumed_) / std::max(seconds, 1e-3);
    char rates[64];
    std::snprintf(rates, sizeof rates, "%.1f/s", rate);
    std::string line;
    if (total_ > 0) {
      constexpr std::size_t cells = 30;
      auto const filled = std::min(done_, total_) * cells / total_;
      line.append("[").append(filled, '#').append(cells - filled, ' ').append("] ");
      line.append(std::to_string(done_)).append("/").append(std::to_string(total_));
    } else {
      line = std::to_string(done_);
    }
    line.append(" ").append(units_).append(", ").append(rates);
    if (total_ > done_ && rate > 0)
      line.append(", ").append(duration(static_cast<double>(total_ - done_) / rate)).append(" left");
    else if (total_ > 0 && done_ >= total_) line.append(", in ").append(duration(seconds));
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
  std::string program_, units_;
  bool shown_, following_ = false;
  std::size_t total_ = 0, done_ = 0, resumed_ = 0;
  std::size_t width_ = 0;  // of what stands on the line
  Clock::time_point begun_ = Clock::now(), drawn_ = begun_;
};

}  // namespace translate
