// SPDX-License-Identifier: Apache-2.0
/// \file
/// How many more tokens the KV cache has room for, and which slots of ended sentences are kept for prefix caching.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/decode/detail/slot_blocks.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Counts tokens against Limits::tokens, keeps slots of ended sentences (evicts the least recently used first), and stops
/// admission after a preemption.
class CacheBudget {
 public:
  static constexpr std::int32_t min_prefix = 8;  ///< the shortest prefix that is worth a fork

  SLUICE_LAZY CacheBudget(AnyModelSide& model, Intake const& intake)
      : slot_blocks(model, model.limits.tokens != no_limit || intake.shared_tokens > 0),
        tokens_(model.limits.tokens),
        max_kept_(intake.shared_tokens) {}

  SlotBlocks slot_blocks;

  bool caches_prefixes() const { return max_kept_ > 0; }
  bool limited() const { return tokens_ != no_limit; }
  /// Tokens that the model can hold.
  std::int64_t capacity() const { return tokens_; }
  SLUICE_LAZY std::int64_t free_tokens() const { return limited() ? tokens_ - slot_blocks.tree().used() : no_limit; }

  /// Whether another sentence may join the `alive` running ones.
  bool can_admit(std::size_t alive) const { return alive == 0 || (!admission_stopped_ && alive < max_running_); }
  /// A sentence was preempted: none is admitted until one has ended.
  void stop_admission() { admission_stopped_ = true; }
  /// The engine itself had no room for so many sentences: at most half of them may run.
  SLUICE_LAZY void halve_running(std::size_t alive) {
    stop_admission(), max_running_ = std::max<std::size_t>(1, alive / 2);
  }
  /// A sentence has ended. Each one raises the limit of halve_running() by one.
  SLUICE_LAZY void resume_admission() {
    admission_stopped_ = false;
    if (max_running_ != (std::numeric_limits<std::size_t>::max)()) ++max_running_;
  }

  /// Gives back a sentence's slots. With `keep`, and if prefixes are cached, keeps the slot that holds most.
  SLUICE_LAZY void give_back(Slot first, std::int32_t size, bool keep) {
    auto const best = keep && caches_prefixes() ? longest(first, size) : first;
    if (!keep || !caches_prefixes() || slot_blocks.tree().length(best) < min_prefix || covered(best))
      return slot_blocks.give_back(first, size);
    slot_blocks.give_back(first, best - first);
    slot_blocks.give_back(best + 1, first + size - best - 1);
    for (auto i = kept_.size(); i-- > 0;)
      if (slot_blocks.tree().within(kept_[i], best)) drop(i);
    kept_.push_back(best);
    while (slot_blocks.tree().together(kept_) > max_kept_) drop(0);
  }

  std::span<Slot const> kept() const { return kept_; }
  /// Marks a slot as just used: it was forked from.
  SLUICE_LAZY void touch(Slot slot) {
    if (auto const one = std::find(kept_.begin(), kept_.end(), slot); one != kept_.end())
      std::rotate(one, one + 1, kept_.end());
  }
  /// Makes a kept slot a sentence's own; false if it is not a kept one.
  SLUICE_LAZY bool take_over(Slot slot) { return std::erase(kept_, slot) > 0; }
  /// Evicts the least recently used slot other than `spared`; false if there is none.
  SLUICE_LAZY bool evict(std::optional<Slot> spared = {}) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i] != spared) return drop(i), true;
    return false;
  }

 private:
  static constexpr auto no_limit = Limits{}.tokens;

  SLUICE_LAZY Slot longest(Slot first, std::int32_t size) {
    auto best = first;
    for (auto slot = first; slot < first + size; ++slot)
      if (slot_blocks.tree().length(slot) > slot_blocks.tree().length(best)) best = slot;
    return best;
  }
  SLUICE_LAZY bool covered(Slot slot) {
    return std::any_of(kept_.begin(), kept_.end(), [&](Slot one) { return slot_blocks.tree().within(slot, one); });
  }
  SLUICE_LAZY void drop(std::size_t i) {
    auto const slot = kept_[i];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    slot_blocks.give_back(slot, 1);
  }

  std::int64_t tokens_, max_kept_;
  std::vector<Slot> kept_;  // least recently used first
  bool admission_stopped_ = false;
  std::size_t max_running_ = (std::numeric_limits<std::size_t>::max)();
};

}  // namespace sluice::inline v0::detail
