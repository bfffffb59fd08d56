// SPDX-License-Identifier: Apache-2.0
/// \file
/// Preemption: sentences that the KV cache has no room for go back to the queue.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/detail/waiting_queue.hpp>

#include <exception>
#include <utility>

namespace sluice::inline v0::detail {

/// Whether the exception is NoRoom.
SLUICE_LAZY bool is_no_room(std::exception_ptr const& problem) {
  if (problem == nullptr) return false;
  try {
    std::rethrow_exception(problem);
  } catch (NoRoom const&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Preempts running sentences by recomputation: they go to the front of the queue, and start again from nothing. Results do not
/// change, since a result does not depend on when its sentence was run.
class Preemption {
 public:
  Preemption(LoopState& state, WaitingQueue& waiting) : state_(state), waiting_(waiting) {}

  /// Preempts one sentence. Call it for the youngest first, so that the queue has them in their order.
  SLUICE_LAZY void preempt(Running& s) {
    waiting_.push_front(s.id, std::move(s.request));
    s.ended = true;
    state_.cache.give_back(s.base, s.slot_count, false);
    ++state_.statistics.restarted;
  }

 private:
  LoopState& state_;
  WaitingQueue& waiting_;
};

}  // namespace sluice::inline v0::detail
