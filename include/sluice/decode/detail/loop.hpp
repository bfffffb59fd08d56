// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop of continuous batching: joins the plans of the sentences that step into one call of the model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/at_end.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/admission.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/preemption.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/speculation.hpp>
#include <sluice/decode/detail/step.hpp>
#include <sluice/decode/detail/step_capacity.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The decoder without its types. See Decoder for the members.
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): AtEnd destroys
class Loop {
 public:
  SLUICE_LAZY Loop(AnyModelSide& model, AnySearches const& searches, AnySchedule const& schedule, AnyTrace* trace,
                   Intake const& intake)
      : state_(model, searches, schedule, trace, intake),
        admission_(state_, results_, intake),
        capacity_(state_, preemption_, intake.prompt_chunk) {}
  Loop(Loop const&) = delete;
  Loop& operator=(Loop const&) = delete;

  SLUICE_LAZY std::uint64_t submit(std::unique_ptr<AnyRequest> request) {
    auto const id = next_id_++;
    try {
      admission_.push(id, std::move(request));
    } catch (...) {
      results_.refuse_by_exception(id, Failure::bad_request);
    }
    return id;
  }
  /// Sets where more requests come from. The supply must outlive the loop, or be reset (nullptr).
  void draw_from(Supply* supply) { admission_.waiting.supply = supply; }

  SLUICE_LAZY bool step() {
    alone("step()");
    auto& seconds = state_.statistics.seconds;
    state_.stopwatch.restart();
    auto const answered = state_.statistics.sentences;
    step_.look();
    admission_.admit();
    step_.choose();
    if (step_.chosen().empty()) {
      state_.stopwatch.book(seconds.search);
      return !admission_.waiting.empty() &&
             state_.statistics.sentences > answered;  // the sentences that would have stepped have failed
    }
    step_.make_plan();
    step_.run();
    if (step_.no_room()) {
      step_.preempt_step();
      state_.running.sweep();
      state_.stopwatch.book(seconds.search);
      return true;
    }
    speculation_.learn(step_);
    for (auto* s : step_.chosen())
      if (step_.advance(*s)) speculation_.ask(*s);
    speculation_.propose(step_);
    state_.running.sweep();
    ++state_.statistics.steps;
    state_.stopwatch.book(seconds.search);
    if (step_.problem() != nullptr) std::rethrow_exception(step_.problem());
    return true;
  }

  /// The first exception of the trace since the last call, or null; step() does not throw it.
  SLUICE_LAZY std::exception_ptr take_trace_problem() { return std::exchange(state_.trace_problem, nullptr); }

  SLUICE_LAZY bool poll(Result& result) { return results_.poll(result); }

  SLUICE_LAZY bool cancel(std::uint64_t id, Failure why, std::string const& message = {}) {
    auto const what = [&](char const* when) { return message.empty() ? std::string(name(why)) + when : message; };
    if (admission_.waiting.remove(id)) {
      results_.refuse(id, why, what(" while waiting"));
      return true;
    }
    for (auto const& s : state_.running)
      if (s->id == id && !s->ended) {
        results_.finish(*s, why, what(" while running"));
        state_.running.sweep();
        return true;
      }
    return false;
  }

  /// Lets `change` add to the source of a request; false if it has ended, or never existed.
  SLUICE_LAZY bool append(std::uint64_t id, std::function<void(AnyRequest&)> const& change) {
    for (std::size_t i = 0; i < admission_.waiting.size(); ++i)
      if (auto& one = admission_.waiting[i]; one.id == id) return change(*one.request), true;
    for (auto const& s : state_.running)
      if (s->id == id && !s->ended) return change(*s->request), true;
    return false;
  }

  SLUICE_LAZY void end_all(Failure why, std::string const& message, std::exception_ptr const& cause) {
    for (auto const& s : state_.running)
      if (!s->ended) results_.finish(*s, why, message, cause);
    state_.running.sweep();
    while (admission_.waiting.any()) {
      auto const id = admission_.waiting[0].id;
      admission_.waiting.remove(id);
      results_.refuse(id, why, message, cause);
    }
  }

  /// See Decoder::settled. Both functions are called once per sentence, and may submit, poll, cancel and end_all.
  template <class Wanted, class F>
  void settled(Wanted&& wanted, F&& f) {
    alone("settled()");
    Roster::Visit const visit(state_.running);  // ends also where f throws
    for (auto const& s : state_.running)
      if (s->idle == 0 && s->age > 0 && !s->ended && wanted(s->id) && !s->ended && settle(*s))
        f(s->id, std::span<Token const>(settled_));
  }

  std::size_t waiting() const { return admission_.waiting.size(); }
  SLUICE_LAZY std::size_t running() const {
    auto const& all = state_.running;
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](auto const& s) { return !s->ended; }));
  }
  Statistics const& statistics() const { return state_.statistics; }

 private:
  friend AtEnd<Loop>;

  SLUICE_LAZY void end() {
    for (auto const& s : state_.running) state_.cache.give_back(s->base, s->slot_count, false);
    while (state_.cache.evict()) {
    }
  }

  /// Throws if a function that settled() calls calls `function`.
  SLUICE_LAZY void alone(char const* function) const {
    if (state_.running.visited())
      throw std::logic_error(std::string("sluice: ") + function +
                             " from a function that settled() calls: call it when settled() has returned");
  }
  SLUICE_LAZY bool settle(Running& s) {
    settled_.clear();
    if (!s.prefill.done()) return true;
    try {
      s.search->settled(settled_);
    } catch (...) {
      results_.finish_by_exception(s, Failure::search);
      return false;
    }
    if (!state_.searches.takes_prefix) s.prefill.complete(settled_);
    return true;
  }

  LoopState state_;
  Results results_{state_};
  Admission admission_;
  Preemption preemption_{state_, admission_.waiting};
  StepCapacity capacity_;
  Step step_{state_, results_, capacity_, preemption_};
  Speculation speculation_{state_, results_};
  std::uint64_t next_id_ = 0;
  std::vector<Token> settled_;
  AtEnd<Loop> at_end_{*this};
};

}  // namespace sluice::inline v0::detail
