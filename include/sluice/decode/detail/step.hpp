// SPDX-License-Identifier: Apache-2.0
/// \file
/// One step: choose sentences, plan, run the model, advance the searches.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/list_running.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/planning.hpp>
#include <sluice/decode/detail/preemption.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/detail/sorting.hpp>
#include <sluice/decode/detail/step_capacity.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Joins the plans of the sentences that the schedule chose into one call of the model.
class Step {
 public:
  SLUICE_LAZY Step(LoopState& state, Results& results, StepCapacity& capacity, Preemption& preemption)
      : state_(state), results_(results), capacity_(capacity), preemption_(preemption), planning_(state, results) {}

  /// The sentences in the step; empty if none is running.
  Buffer<Running*> const& chosen() const { return chosen_; }
  SLUICE_LAZY StepPlan const& plan() const { return planning_.plan(); }
  /// The exception of model or expander in this step, or null.
  std::exception_ptr const& problem() const { return problem_; }
  /// Whether the step was not run because the KV cache has no room for it.
  bool no_room() const { return no_room_; }

  /// Looks how far the sources of all sentences have grown.
  SLUICE_LAZY void look() {
    if (!state_.model.grows) return;
    for (auto const& s : state_.running)
      if (!s->growth.over) s->growth = state_.model.growth(s->request->source());
  }
  /// Lets the schedule choose the sentences of the step. None: all wait for more of their sources, or none is running.
  SLUICE_LAZY void choose() {
    auto& running = state_.running;
    do pick();
    while (!capacity_.fit(live_, picked_));
    chosen_.clear();
    if (picked_.empty()) return;
    keys_.clear();
    for (auto const& one : live_) keys_.push_back(one.turn);
    sort_by(picked_, keys_);
    front_ -= static_cast<std::ptrdiff_t>(picked_.size());
    for (std::ptrdiff_t turn = front_; auto const i : picked_) running[static_cast<std::size_t>(i)].turn = turn++;
    keys_.clear();
    for (auto const& s : running) keys_.push_back(s->base);
    sort_by(picked_, keys_);
    for (auto const i : picked_) {
      chosen_.push_back(&running[static_cast<std::size_t>(i)]);
      chosen_.back()->idle = -1;
      state_.statistics.expansions += static_cast<std::uint64_t>(live_[static_cast<std::size_t>(i)].width);
    }
    for (auto const& s : running) ++s->age, ++s->idle;
  }

  /// Makes the plan of the step.
  SLUICE_LAZY void make_plan() { planning_.make(chosen_); }

  /// Runs the model and the expander.
  SLUICE_LAZY void run() {
    answers_ = {}, problem_ = nullptr, no_room_ = false, refusal_ = nullptr;
    if (plan().rows.empty()) return;
    state_.cache.slot_blocks.follow(plan().rows);
    if (state_.cache.free_tokens() < (state_.cache.limited() ? discarded_tokens() : 0)) {
      no_room_ = true;
      return;
    }
    state_.cache.slot_blocks.hold(plan().rows);
    state_.statistics.count(plan());
    state_.stopwatch.book(state_.statistics.seconds.search);
    try {
      answers_ = state_.model.step(plan(), extra_queries(), state_.statistics.seconds, state_.stopwatch);
      if (answers_.size() != plan().queries.size())
        throw std::logic_error("sluice: the expander was asked for " + std::to_string(plan().queries.size()) +
                               " lines and answered " + std::to_string(answers_.size()));
      if (state_.model.attaches) attach();
    } catch (NoRoom const&) {
      answers_ = {}, no_room_ = true, refusal_ = std::current_exception();
      return;
    } catch (...) {
      answers_ = {}, problem_ = std::current_exception();
      return;
    }
    state_.tell([&](AnyTrace& trace) { trace.answered(plan(), answers_); });
  }

  /// Gives one sentence its part of the answer; false if it has ended.
  SLUICE_LAZY bool advance(Running& s) {
    if (s.ended) return false;
    if (problem_ != nullptr && s.rows() > 0) {
      results_.finish(s, Failure::model, describe(problem_), problem_);
      return false;
    }
    auto answer = s.lines() > 0 ? answers_.window(s.part.from.queries, s.lines()) : Expansion{};
    if (!answer.valid()) {
      results_.finish(
          s, Failure::not_a_number,
          "the model's scores hold a NaN or +infinity, or leave the range of floats when divided by the temperature");
      return false;
    }
    auto over = false;
    try {
      if (!s.prefill.done()) {
        answer = s.prefill.advance(answer);
        if (!s.prefill.done()) return true;
        over = s.search->advance(answer);
        if (!over && s.rows() == 0)
          throw std::logic_error("sluice: plan: the first plan has no rows, so the sentence must be over");
      } else {
        over = s.search->advance(answer);
      }
    } catch (...) {
      results_.finish_by_exception(s, Failure::search);
      return false;
    }
    if (over) results_.finish(s);
    return !over;
  }

  /// After a step for which there was no room: preempts the sentences in it. A sentence that was alone ends.
  SLUICE_LAZY void preempt_step() {
    auto const alive = state_.running.size();
    auto const alone = alive == 1 && state_.cache.kept().empty();
    while (state_.cache.evict()) {
    }
    if (!alone) state_.cache.halve_running(alive);
    for (auto i = alive; i-- > 0;)  // the youngest first
      if (auto& s = state_.running[i]; s.idle == 0 && !s.ended) {
        if (alone) results_.finish(s, Failure::no_room, refusal_ ? describe(refusal_) : capacity_.too_long());
        else preemption_.preempt(s);
      }
  }

  /// Model::propose threw: ends or preempts a sentence that asked for guesses, and notes the exception.
  SLUICE_LAZY void fail(Running& s, std::exception_ptr const& problem) {
    if (is_no_room(problem)) {
      if (state_.running.size() == 1) return results_.finish(s, Failure::no_room, describe(problem));
      state_.cache.stop_admission();
      return preemption_.preempt(s);
    }
    problem_ = problem;
    results_.finish(s, Failure::model, describe(problem), problem);
  }

 private:
  /// Tokens of trees that no slot holds after the step.
  SLUICE_LAZY std::int64_t discarded_tokens() const {
    std::int64_t sum = 0;
    for (auto const& row : plan().rows) sum += static_cast<std::int64_t>(row.tokens.size() - row.kept());
    return sum;
  }

  /// The queries of Request::confidence; nullptr: no request in the step asks.
  SLUICE_LAZY ExtraQueries const* extra_queries() {
    auto const asks = [](Running const* s) { return s->confidence.asks() && s->lines() > 0 && !s->ended; };
    if (std::none_of(chosen_.begin(), chosen_.end(), asks)) return nullptr;
    extra_.queries.assign(plan().queries.size(), {.best = 0, .normalise = false});
    extra_.groups = plan().groups;
    for (auto& group : extra_.groups) group.keep = 0;
    for (auto const* s : chosen_)
      for (auto i = s->part.from.queries; asks(s) && i < s->part.to.queries; ++i)
        extra_.queries[i] = s->confidence.query(plan().queries[i].shortlist);
    extra_.receive = [this, asks](Expansion const& answer) {
      for (auto* s : chosen_)
        if (asks(s))
          s->confidence.apply(std::span<Row const>(plan().rows).subspan(s->part.from.rows, s->rows()),
                              answer.window(s->part.from.queries, s->lines()));
    };
    return &extra_;
  }

  /// Gives sentences what the model attached to their lines.
  SLUICE_LAZY void attach() {
    auto const attached = state_.model.attachments(plan().queries.size());
    if (attached.values.rows == 0) return;
    for (auto* s : chosen_)
      if (!s->ended)
        s->attachments.apply(std::span<Row const>(plan().rows).subspan(s->part.from.rows, s->rows()), attached,
                             static_cast<std::ptrdiff_t>(s->part.from.queries));
  }

  /// Asks the schedule, and checks its choice.
  SLUICE_LAZY void pick() {
    picked_.clear();
    list_running(state_, results_, live_);
    if (state_.running.empty()) return;
    if (state_.model.grows) return pick_awake();
    pick(live_);
  }
  /// Leaves out sentences that wait for more of their source.
  SLUICE_LAZY void pick_awake() {
    awake_.clear(), awake_live_.clear();
    for (std::size_t i = 0; i < live_.size(); ++i) {
      auto const& s = state_.running[i];
      if (!s.growth.over && s.search->waits()) continue;
      awake_.push_back(static_cast<std::int32_t>(i)), awake_live_.push_back(live_[i]);
    }
    if (awake_.empty()) return;
    pick(awake_live_);
    for (auto& i : picked_) i = awake_[static_cast<std::size_t>(i)];
  }
  SLUICE_LAZY void pick(Buffer<Live> const& live) {
    auto const alive = live.size();
    state_.schedule.select(live, picked_);
    if (picked_.empty())
      throw std::logic_error("sluice: the schedule chose none of the " + std::to_string(alive) + " live sentences");
    for (std::size_t n = 0; n < picked_.size(); ++n) {
      auto const i = picked_[n];
      if (i < 0 || static_cast<std::size_t>(i) >= alive)
        throw std::logic_error("sluice: the schedule chose sentence " + std::to_string(i) + " of " +
                               std::to_string(alive));
      if (n > 0 && i <= picked_[n - 1])
        throw std::logic_error("sluice: the schedule chose sentence " + std::to_string(i) + " behind sentence " +
                               std::to_string(picked_[n - 1]) + ": `chosen` must ascend, without repeats");
    }
    if (!state_.model.abilities.ragged) keep_alike(picked_, live);
  }

  LoopState& state_;
  Results& results_;
  StepCapacity& capacity_;
  Preemption& preemption_;
  Planning planning_;
  Buffer<Live> live_, awake_live_;
  std::vector<std::int32_t> picked_, awake_;
  Buffer<std::int64_t> keys_;
  Buffer<Running*> chosen_;
  ExtraQueries extra_;
  Expansion answers_;
  std::exception_ptr problem_;
  std::exception_ptr refusal_;  // the NoRoom that the engine threw; null: the budget foresaw it
  bool no_room_ = false;
  std::int64_t front_ = 0;  // the lowest Live::turn so far
};

}  // namespace sluice::inline v0::detail
