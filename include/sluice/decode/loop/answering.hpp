// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ends of sentences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/loop/cache_budget.hpp>
#include <sluice/decode/loop/parts.hpp>
#include <sluice/decode/loop/running.hpp>
#include <sluice/schedule/intake.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace sluice::inline v0::detail {

/// What the parts of the loop share. Model, searches, schedule and trace are somebody else's; no trace: nullptr.
struct Shared {
  Shared(AnyModelSide& m, AnySearches const& s, AnySchedule const& p, AnyTrace* t, Intake const& intake)
      : model(m), searches(s), schedule(p), trace(t), cache(m, intake), running(s) {}

  /// Calls f(trace) where there is one. What it throws, the first time, is kept: see NoTrace.
  template <class F>
  void tell(F&& f) {
    if (trace == nullptr) return;
    try {
      f(*trace);
    } catch (...) {
      if (trace_problem == nullptr) trace_problem = std::current_exception();
    }
  }

  AnyModelSide& model;
  AnySearches const& searches;
  AnySchedule const& schedule;
  AnyTrace* trace;
  CacheBudget cache;
  Roster running;
  Statistics statistics{};
  Stopwatch stopwatch{};
  std::exception_ptr trace_problem{};
};

/// Writes results, in the order in which sentences end.
template <class = void>
class LazyAnswering {
 public:
  explicit LazyAnswering(Shared& shared) : shared_(shared) {}

  /// Ends a sentence, with what hypotheses there are if its state can be trusted.
  void end(Running& s, Failure why = Failure::none, std::string message = {}, std::exception_ptr cause = {},
           bool usable = true) {
    Result result{.id = s.id};
    if (usable && s.prefill.done()) try {
        s.search->finish(result);
        if (!shared_.searches.takes_prefix) s.prefill.complete(result);
        if (shared_.model.attaches) s.attachments.complete(result.hypotheses);
        s.confidence.complete(result.hypotheses);
        if (why == Failure::none && result.ok() && result.hypotheses.empty() && result.message.empty())
          throw std::logic_error("sluice: the search's `finish` wrote neither hypotheses nor a failure (Result::fail)");
      } catch (...) {
        why = Failure::search, message = describe(std::current_exception()), cause = std::current_exception();
      }
    if (why != Failure::none) result.fail(why, std::move(message), std::move(cause));
    if (!result.hypotheses.empty()) shared_.statistics.tokens += result.hypotheses.front().tokens.size();
    s.ended = true;  // whatever throws from here on, there is one result
    give(std::move(result));
    shared_.cache.give_back(s.base, s.slot_count, holds(why) && s.prefill.done());
    shared_.cache.resume_admission();
  }

  /// Ends a sentence whose search, or whose source, has just thrown.
  void end_by_exception(Running& s, Failure why) {
    end(s, why, describe(std::current_exception()), std::current_exception(), false);
  }

  /// Answers a request that has never been started.
  void refuse(std::uint64_t id, Failure why, std::string message, std::exception_ptr cause = {}) {
    Result result{.id = id};
    result.fail(why, std::move(message), std::move(cause));
    give(std::move(result));
  }
  void refuse_by_exception(std::uint64_t id, Failure why) {
    refuse(id, why, describe(std::current_exception()), std::current_exception());
  }

  bool poll(Result& result) {
    if (results_.empty()) return false;
    result = std::move(results_.front());
    results_.pop_front();
    return true;
  }

 private:
  /// Whether the model holds what it was told.
  static bool holds(Failure why) {
    return why == Failure::none || why == Failure::late || why == Failure::cancelled || why == Failure::no_token_left;
  }
  void give(Result result) {
    ++shared_.statistics.sentences;
    shared_.tell([&](AnyTrace& trace) { trace.ended(result); });
    results_.push_back(std::move(result));
  }

  Shared& shared_;
  std::deque<Result> results_;
};
using Answering = LazyAnswering<>;

}  // namespace sluice::inline v0::detail
