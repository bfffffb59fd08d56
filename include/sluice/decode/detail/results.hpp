// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finishing sentences, and the queue of results.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/running.hpp>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace sluice::inline v0::detail {

/// Makes results and hands them out in the order in which sentences end.
class Results {
 public:
  explicit Results(LoopState& state) : state_(state) {}

  /// Ends a sentence. The result has the hypotheses so far if the state is `usable`.
  SLUICE_LAZY void finish(Running& s, Failure why = Failure::none, std::string message = {},
                          std::exception_ptr cause = {}, bool usable = true) {
    Result result{.id = s.id};
    if (usable && s.prefill.done()) try {
        s.search->finish(result);
        if (!state_.searches.takes_prefix) s.prefill.complete(result);
        if (state_.model.attaches) s.attachments.complete(result.hypotheses);
        s.confidence.complete(result.hypotheses);
        if (why == Failure::none && result.ok() && result.hypotheses.empty() && result.message.empty())
          throw std::logic_error("sluice: the search's `finish` wrote neither hypotheses nor a failure (Result::fail)");
      } catch (...) {
        why = Failure::search, message = describe(std::current_exception()), cause = std::current_exception();
      }
    if (why != Failure::none) result.fail(why, std::move(message), std::move(cause));
    if (!result.hypotheses.empty()) state_.statistics.tokens += result.hypotheses.front().tokens.size();
    if (state_.model.remembers && s.request->remember && result.ok() && !result.hypotheses.empty())
      state_.model.remember({.slot = s.base, .prompt = s.request->prompt, .output = result.hypotheses.front().tokens});
    s.ended = true;  // set first: there is one result even if what follows throws
    deliver(std::move(result));
    state_.cache.give_back(s.base, s.slot_count, state_is_valid(why) && s.prefill.done());
    state_.cache.resume_admission();
  }

  /// Ends a sentence whose search or source has just thrown. To be called in the handler.
  SLUICE_LAZY void finish_by_exception(Running& s, Failure why) {
    finish(s, why, describe(std::current_exception()), std::current_exception(), false);
  }

  /// Gives a result to a request that has never been started.
  SLUICE_LAZY void refuse(std::uint64_t id, Failure why, std::string message, std::exception_ptr cause = {}) {
    Result result{.id = id};
    result.fail(why, std::move(message), std::move(cause));
    deliver(std::move(result));
  }
  SLUICE_LAZY void refuse_by_exception(std::uint64_t id, Failure why) {
    refuse(id, why, describe(std::current_exception()), std::current_exception());
  }

  SLUICE_LAZY bool poll(Result& result) {
    if (queue_.empty()) return false;
    result = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }

 private:
  /// Whether the slots still hold the tokens that were fed, so that they may be kept.
  static bool state_is_valid(Failure why) {
    return why == Failure::none || why == Failure::late || why == Failure::cancelled || why == Failure::no_token_left;
  }
  SLUICE_LAZY void deliver(Result result) {
    ++state_.statistics.sentences;
    state_.tell([&](AnyTrace& trace) { trace.ended(result); });
    queue_.push_back(std::move(result));
  }

  LoopState& state_;
  Queue<Result> queue_;
};

}  // namespace sluice::inline v0::detail
