// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state that all parts of the loop use.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/statistics.hpp>
#include <sluice/decode/detail/cache_budget.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/detail/stopwatch.hpp>
#include <sluice/decode/schedule.hpp>

#include <exception>

namespace sluice::inline v0::detail {

/// What the parts of the loop share. It does not own model, searches, schedule and trace; a null trace: none.
struct LoopState {
  LoopState(AnyModelSide& m, AnySearches const& s, AnySchedule const& p, AnyTrace* t, Intake const& intake)
      : model(m), searches(s), schedule(p), trace(t), cache(m, intake), running(s) {}

  /// Calls f(trace) if there is a trace. Keeps the first exception that it throws, see NoTrace.
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

}  // namespace sluice::inline v0::detail
