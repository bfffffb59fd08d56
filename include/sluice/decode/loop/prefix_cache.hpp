// SPDX-License-Identifier: Apache-2.0
/// \file
/// Who begins like whom: prompts that are forked rather than fed again.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/plan.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/loop/cache_budget.hpp>
#include <sluice/decode/loop/loop_state.hpp>
#include <sluice/decode/loop/running.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A slot, and how much of a prompt it begins with.
struct PrefixMatch {
  std::optional<Slot> slot{};
  std::int32_t length = 0;
};

/// Looks for a slot that holds the beginning of a prompt. For models that cut (`roll_back`) and step rows of any length.
template <class = void>
class LazyPrefixCache {
 public:
  explicit LazyPrefixCache(LoopState& state) : state_(state) {}

  /// The best among kept slots and those of the sentences that run.
  PrefixMatch find(std::span<Token const> prompt) {
    return best(prompt, [&](auto&& look) {
      for (auto const slot : state_.cache.kept()) look(slot);
      for (auto const& s : state_.running) all_of(*s, look);
    });
  }

  /// The best that can be read while the step runs which is planned: kept slots, what a row of it goes on from, and slots of
  /// sentences that take no part.
  PrefixMatch find_during_step(std::span<Token const> prompt, StepPlan const& step) {
    return best(prompt, [&](auto&& look) {
      for (auto const slot : state_.cache.kept()) look(slot);
      for (auto const& row : step.rows) look(row.from);
      for (auto const& s : state_.running)
        if (s->idle > 0) all_of(*s, look);
    });
  }

  /// How much of a prompt those before `s` are about to feed.
  std::int32_t about_to_be_fed(Running const& s) const {
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
    PrefixMatch found;
    tree.fresh();
    each([&](Slot slot) {
      auto const length = tree.common(slot, prompt);
      if (length > found.length) found = {slot, length};
    });
    return found.length >= CacheBudget::min_prefix ? found : PrefixMatch{};
  }

  LoopState& state_;
};
using PrefixCache = LazyPrefixCache<>;

}  // namespace sluice::inline v0::detail
