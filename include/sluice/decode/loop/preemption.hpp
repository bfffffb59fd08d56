// SPDX-License-Identifier: Apache-2.0
/// \file
/// The way back, for sentences that the model has no room for.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/decode/loop/loop_state.hpp>
#include <sluice/decode/loop/running.hpp>
#include <sluice/decode/loop/waiting_queue.hpp>

#include <exception>
#include <utility>

namespace sluice::inline v0::detail {

/// Whether that is what was thrown.
inline bool is_no_room(std::exception_ptr const& problem) {
  if (problem == nullptr) return false;
  try {
    std::rethrow_exception(problem);
  } catch (NoRoom const&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Puts sentences that run before those that wait. They will start again from nothing: a result does not depend on when
/// its sentence was run, so it is what it would have been.
template <class = void>
class LazyPreemption {
 public:
  LazyPreemption(LoopState& state, WaitingQueue& waiting) : state_(state), waiting_(waiting) {}

  /// Sends back one sentence; of several the youngest first, so that they come again in their order.
  void preempt(Running& s) {
    waiting_.push_front(s.id, std::move(s.request));
    s.ended = true;
    state_.cache.give_back(s.base, s.slot_count, false);
    ++state_.statistics.restarted;
  }

 private:
  LoopState& state_;
  WaitingQueue& waiting_;
};
using Preemption = LazyPreemption<>;

}  // namespace sluice::inline v0::detail
