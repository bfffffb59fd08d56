// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes one call of the model out of the plans of many sentences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/detail/check_plan.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/prefix_cache.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/running.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Joins the plans of the sentences that take part in a step.
class Planning {
 public:
  Planning(LoopState& state, Results& results) : state_(state), results_(results), prefix_cache_(state) {}

  /// The plan of the step.
  StepPlan& plan() { return step_; }
  StepPlan const& plan() const { return step_; }

  /// Makes the plan of a step. `chosen` is in the order of slots. If a search throws or plans what cannot be run, its sentence
  /// ends; the others are not affected.
  SLUICE_LAZY void make(Buffer<Running*> const& chosen) {
    step_.clear();
    forking_.clear();
    for (auto* s : chosen)
      if (s->share > 0 && s->prefill.fresh()) forking_.push_back(s);
      else add_plan(*s, {});
    for (auto* s : forking_) {
      auto const found = prefix_cache_.find_during_step(s->prefill.prompt().first(s->prefill.shareable()), step_);
      if (found.slot) state_.cache.touch(*found.slot);
      s->prefill.skip(static_cast<std::size_t>(found.length));
      state_.statistics.shared += static_cast<std::uint64_t>(found.length);
      add_plan(*s, found.slot);
    }
    if (!forking_.empty()) arrange(chosen);
    state_.cache.slot_blocks.release(step_.released);
    if (state_.model.answers_entropy)
      state_.tell([&](AnyTrace& trace) {
        if (!trace.wants_entropy()) return;
        for (auto& query : step_.queries) query.entropy = query.entropy || query.normalise;
      });
    state_.tell([&](AnyTrace& trace) { trace.planned(step_); });
  }

 private:
  /// Adds a sentence's plan to the step's, or ends the sentence. `parent`: the slot from which a prefix of its prompt is
  /// forked, if any.
  SLUICE_LAZY void add_plan(Running& s, std::optional<Slot> parent) {
    auto const mark = PlanMark::of(step_);
    try {
      plan_one(s, mark);
      if (parent)
        for (auto& row : std::span(step_.rows).subspan(mark.rows)) row.from = *parent;
    } catch (NoRoom const&) {
      mark.restore(step_);
      results_.finish_by_exception(s, Failure::no_room);
    } catch (...) {
      mark.restore(step_);
      results_.finish_by_exception(s, Failure::search);
    }
    s.part = {mark, PlanMark::of(step_)};
  }

  /// Sorts the parts of the sentences by their slots.
  SLUICE_LAZY void arrange(Buffer<Running*> const& chosen) {
    sorted_.clear();
    for (auto* s : chosen) {
      auto const [from, to] = s->part;
      s->part.from = PlanMark::of(sorted_);
      auto const take = [](auto& into, auto const& all, std::size_t first, std::size_t last) {
        into.append(std::span(all).subspan(first, last - first));
      };
      take(sorted_.rows, step_.rows, from.rows, to.rows),
          take(sorted_.queries, step_.queries, from.queries, to.queries);
      take(sorted_.groups, step_.groups, from.groups, to.groups),
          take(sorted_.released, step_.released, from.released, to.released);
      s->part.to = PlanMark::of(sorted_);
    }
    std::swap(step_, sorted_);
  }

  /// Adds the plan of one sentence, and checks it.
  SLUICE_LAZY void plan_one(Running& s, PlanMark const& mark) {
    PlanRules const rules{.base = s.base,
                          .slot_count = s.slot_count,
                          .abilities = state_.model.abilities,
                          .vocabulary = state_.model.vocabulary.size,
                          .length = state_.model.limits.length,
                          .first = !s.prefill.done(),
                          .begun = s.prefill.progress().length,
                          .held = state_.cache.slot_blocks.held(s.base),
                          .seen = &seen_};
    if (s.prefill.done()) {
      Plan own(step_, s.base);
      s.search->plan(own);
    } else {
      s.prefill.plan(*s.search, step_, rules, static_cast<std::size_t>(s.chunk));
    }
    check_plan(step_, mark, rules);
    if (!rules.abilities.ragged) check_alike(step_, mark, s.base);
    auto const& request = *s.request;
    for (auto i = mark.queries; request.shortlist && i < step_.queries.size(); ++i)
      step_.queries[i].shortlist = &s.shortlist;
    for (auto i = mark.groups; i < step_.groups.size(); ++i) step_.groups[i].direction = request.direction;
  }

  LoopState& state_;
  Results& results_;
  PrefixCache prefix_cache_;
  std::vector<std::uint8_t> seen_;  // of check_plan()
  Buffer<Running*> forking_;        // sentences that fork a prefix of their prompts
  StepPlan step_, sorted_;
};

}  // namespace sluice::inline v0::detail
