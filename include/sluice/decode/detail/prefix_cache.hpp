// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prefix caching: finds slots that hold a prefix of a prompt, so that it is forked rather than fed again.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/plan.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/cache_budget.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/running.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A slot, and how many tokens of a prompt it begins with.
struct PrefixMatch {
  std::optional<Slot> slot{};
  std::int32_t length = 0;
};

/// Finds the slot that holds the longest prefix of a prompt. For models that claim `roll_back` and `ragged`.
class PrefixCache {
 public:
  explicit PrefixCache(LoopState& state) : state_(state) {}

  /// The longest match among kept slots and the slots of running sentences, which come first where they lack few tokens.
  SLUICE_LAZY PrefixMatch find(std::span<Token const> prompt) {
    return best(prompt, [&](auto&& look) {
      for (auto const slot : state_.cache.kept()) look(slot);
      for (auto const& s : state_.running) all_of(*s, look);
    });
  }

  /// The longest match among the slots that the planned step may fork from: kept slots, slots that a row of the step continues,
  /// and slots of sentences that are not in the step.
  SLUICE_LAZY PrefixMatch find_during_step(std::span<Token const> prompt, StepPlan const& step) {
    return best(prompt, [&](auto&& look) {
      for (auto const slot : state_.cache.kept()) look(slot);
      for (auto const& row : step.rows) look(row.from);
      for (auto const& s : state_.running)
        if (s->idle > 0) all_of(*s, look);
    });
  }

  /// How many tokens of the prompt of `s` older sentences are about to feed.
  SLUICE_LAZY std::int32_t about_to_be_fed(Running const& s) const {
    std::size_t most = 0;
    auto const mine = s.prefill.prompt().first(s.prefill.shareable());
    for (auto const& other : state_.running) {
      if (other.get() == &s) break;
      if (other->prefill.done()) continue;
      auto const theirs = other->prefill.prompt();
      auto const end = theirs.begin() + std::ssize(theirs.first((std::min)(theirs.size(), mine.size())));
      most = (std::max)(
          most, static_cast<std::size_t>(std::mismatch(theirs.begin(), end, mine.begin()).first - theirs.begin()));
    }
    return static_cast<std::int32_t>(most);
  }

 private:
  template <class F>
  static void all_of(Running const& s, F&& look) {
    for (auto slot = s.base; slot < s.base + s.slot_count; ++slot) look(slot);
  }
  template <class F>
  PrefixMatch best(std::span<Token const> prompt, F&& each) {
    auto& tree = state_.cache.slot_blocks.tree();
    PrefixMatch kept, running;
    tree.fresh();
    std::size_t seen = 0;
    each([&](Slot slot) {
      auto const length = tree.common(slot, prompt);
      auto& best = seen++ < state_.cache.kept().size() ? kept : running;
      if (length > best.length) best = {slot, length};
    });
    // A running one is surely in the cache; an engine may have moved what waits elsewhere (Llama), and would have it twice.
    constexpr auto least = CacheBudget::min_prefix;
    if (running.length >= least && running.length + least > kept.length) return running;
    return kept.length >= least ? kept : PrefixMatch{};
  }

  LoopState& state_;
};

}  // namespace sluice::inline v0::detail
