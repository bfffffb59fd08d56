// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a Server and of one of its requests.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/schedule.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sluice::inline v0 {

/// Options of a Server.
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

/// The clock of deadlines.
using ServerClock = std::chrono::steady_clock;

/// Callbacks and deadline of one request of a Server. Callbacks run in the worker's thread, one at a time: keep them short. They
/// may call the server's functions (submit() refuses there instead of waiting), but not destroy it. Their exceptions are dropped.
struct Delivery {
  std::function<void(Result)> done;  ///< called exactly once
  /// Token streaming, optional: called whenever more of the output is certain (see SettlingSearch), with the tokens that are new since
  /// the last call. The hypotheses of the result begin with all of them.
  std::function<void(std::uint64_t id, std::span<Token const> tokens)> delta{};
  /// When it passes, the request ends with Failure::late and the hypotheses so far. Checked between steps.
  ServerClock::time_point deadline = (ServerClock::time_point::max)();
};

}  // namespace sluice::inline v0
