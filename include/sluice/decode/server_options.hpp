// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a Server is told: its options, and what goes with a request.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/schedule/intake.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sluice::inline v0 {

struct ServerOptions {
  /// What submit() does while the queue is full.
  enum class Full : std::uint8_t { wait, refuse };

  std::size_t queue = 1024;  ///< requests that may wait to be admitted; >= 1
  Full full = Full::wait;
  Intake intake{};  ///< a server's steps do not wait for its encoder thread while sentences run, whatever
                    ///< Intake::wait_for_encoder says

  /// Throws std::invalid_argument naming the option and its value.
  void check() const {
    require(queue >= 1, "queue", queue, "must be at least 1");
    intake.check();
  }
};

using ServerClock = std::chrono::steady_clock;

/// What goes with one request of a Server. Callbacks run in the worker's thread, one at a time: keep them short. They may
/// call the server's functions (submit() refuses there instead of waiting), but not destroy it. What they throw is dropped.
struct Delivery {
  std::function<void(Result)> done;  ///< called exactly once
  /// Where given: called whenever more of the output is certain, with all that is (see SettlingSearch); the result's
  /// hypotheses begin with it.
  std::function<void(std::uint64_t id, std::span<Token const> tokens)> settled{};
  /// When it passes, the result is what there is, with Failure::late. Looked at between steps.
  ServerClock::time_point deadline = (ServerClock::time_point::max)();
};

}  // namespace sluice::inline v0
