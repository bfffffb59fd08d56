// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a model has room for more tokens, and what it keeps of sentences that have ended.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/decode/loop/slot_blocks.hpp>
#include <sluice/schedule/intake.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Counts tokens against Limits::tokens, keeps slots of ended sentences (the least recently used go first) and remembers that
/// somebody had to go back.
template <class = void>
class LazyCacheBudget {
 public:
  static constexpr std::int32_t min_prefix = 8;  ///< tokens in common that are worth a fork

  LazyCacheBudget(AnyModelSide& model, Intake const& intake)
      : slot_blocks(model, model.limits.tokens != no_limit || intake.shared_tokens > 0),
        tokens_(model.limits.tokens),
        max_kept_(intake.shared_tokens) {}

  SlotBlocks slot_blocks;

  bool caches_prefixes() const { return max_kept_ > 0; }
  bool limited() const { return tokens_ != no_limit; }
  std::int64_t capacity() const { return tokens_; }
  std::int64_t free_tokens() const { return limited() ? tokens_ - slot_blocks.tree().used() : no_limit; }

  /// Whether one more may join those alive.
  bool can_admit(std::size_t alive) const { return alive == 0 || (!admission_stopped_ && alive < max_running_); }
  /// Somebody had to go back: nobody comes until somebody has ended.
  void stop_admission() { admission_stopped_ = true; }
  /// The engine itself had no room for so many.
  void halve_running(std::size_t alive) { stop_admission(), max_running_ = std::max<std::size_t>(1, alive / 2); }
  /// Somebody has ended.
  void resume_admission() {
    admission_stopped_ = false;
    if (max_running_ != (std::numeric_limits<std::size_t>::max)()) ++max_running_;
  }

  /// Gives back a sentence's slots. The one that holds most is kept for those who begin alike, if that is asked for.
  void give_back(Slot first, std::int32_t size, bool keep) {
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
  /// It has just been forked from.
  void touch(Slot slot) {
    if (auto const one = std::find(kept_.begin(), kept_.end(), slot); one != kept_.end())
      std::rotate(one, one + 1, kept_.end());
  }
  /// A kept slot becomes a sentence's own; false if it is not a kept one.
  bool take_over(Slot slot) { return std::erase(kept_, slot) > 0; }
  /// Lets the least recently used go, but for one; false if there is none.
  bool evict(std::optional<Slot> spared = {}) {
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i] != spared) return drop(i), true;
    return false;
  }

 private:
  static constexpr auto no_limit = Limits{}.tokens;

  Slot longest(Slot first, std::int32_t size) {
    auto best = first;
    for (auto slot = first; slot < first + size; ++slot)
      if (slot_blocks.tree().length(slot) > slot_blocks.tree().length(best)) best = slot;
    return best;
  }
  bool covered(Slot slot) {
    return std::any_of(kept_.begin(), kept_.end(), [&](Slot one) { return slot_blocks.tree().within(slot, one); });
  }
  void drop(std::size_t i) {
    auto const slot = kept_[i];
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
    slot_blocks.give_back(slot, 1);
  }

  std::int64_t tokens_, max_kept_;
  std::vector<Slot> kept_;  // least recently used first
  bool admission_stopped_ = false;
  std::size_t max_running_ = (std::numeric_limits<std::size_t>::max)();
};
using CacheBudget = LazyCacheBudget<>;

}  // namespace sluice::inline v0::detail
