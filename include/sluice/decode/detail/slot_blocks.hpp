// SPDX-License-Identifier: Apache-2.0
/// \file
/// Allocates slots to sentences.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/token_tree.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Allocates blocks of neighbouring slots, the lowest that fit, so that slot numbers stay small. Knows how many tokens the model
/// holds in each slot.
class SlotLedger {
 public:
  explicit SlotLedger(std::int32_t limit) : limit_(limit) {}

  /// Allocates a block and returns its first slot; nothing if none is free below the limit.
  SLUICE_LAZY std::optional<Slot> take(std::int32_t size) {
    for (auto* gap = free_.begin(); gap != free_.end(); ++gap) {
      if (gap->size < size) continue;
      auto const first = gap->first;
      gap->first += size, gap->size -= size;
      if (gap->size == 0) free_.erase(gap);
      return first;
    }
    auto const tail = !free_.empty() && free_.back().first + free_.back().size == top_ ? free_.back().size : 0;
    if (size > limit_ - (top_ - tail)) return std::nullopt;
    if (tail > 0) free_.pop_back();
    auto const first = top_ - tail;
    top_ = first + size;
    if (held_.size() < static_cast<std::size_t>(top_)) held_.resize(static_cast<std::size_t>(top_), nothing);
    return first;
  }

  static constexpr std::int32_t nothing = -1;
  /// Notes that an allocated slot holds so many tokens.
  void hold(Slot slot, std::int32_t tokens) { held_[static_cast<std::size_t>(slot)] = tokens; }
  /// [slot]: of a block that has been taken and its neighbours behind it: tokens that they hold, or `nothing`.
  std::int32_t const* held(Slot first) const { return &held_[static_cast<std::size_t>(first)]; }

  /// Notes that the slots are empty. Returns those that were not empty before; valid until the next call.
  SLUICE_LAZY std::span<Slot const> release(std::span<Slot const> slot_numbers) {
    releasing_.clear();
    for (auto const slot : slot_numbers) release(slot);
    return releasing_;
  }

  /// Frees a block. Returns what release() of its slots returns.
  SLUICE_LAZY std::span<Slot const> give_back(Slot first, std::int32_t size) {
    releasing_.clear();
    if (size == 0) return {};
    for (auto slot = first; slot < first + size; ++slot) release(slot);
    auto const next = std::find_if(free_.begin(), free_.end(), [first](Gap const& gap) { return gap.first >= first; });
    auto* gap = free_.insert(next, {first, size});
    if (auto const after = gap + 1; after != free_.end() && gap->first + gap->size == after->first) {
      gap->size += after->size;
      free_.erase(after);
    }
    if (gap != free_.begin() && (gap - 1)->first + (gap - 1)->size == gap->first) {
      (gap - 1)->size += gap->size;
      free_.erase(gap);
    }
    return releasing_;
  }

 private:
  struct Gap {
    Slot first;
    std::int32_t size;
  };
  SLUICE_LAZY void release(Slot slot) {
    if (held_[static_cast<std::size_t>(slot)] == nothing) return;
    held_[static_cast<std::size_t>(slot)] = nothing;
    releasing_.push_back(slot);
  }

  Buffer<Gap> free_;                // ascending, no two touch
  std::vector<std::int32_t> held_;  // [slot]: tokens that the model holds there, or `nothing`
  std::vector<Slot> releasing_;
  Slot top_ = 0;  // all slots from here on are free too
  std::int32_t limit_;
};

/// The slots of a model. Tells the model which slots are released. If `counts`, follows which tokens each slot holds.
class SlotBlocks {
 public:
  SLUICE_LAZY SlotBlocks(AnyModelSide& model, bool counts)
      : model_(model), follows_(counts), ledger_(model.limits.slot_count) {}

  SLUICE_LAZY std::optional<Slot> take(std::int32_t size) { return ledger_.take(size); }
  /// A sentence has been started there.
  SLUICE_LAZY void start(Slot slot) {
    ledger_.hold(slot, 0);
    clear(slot);
  }
  /// Updates the tree of tokens for rows that are about to run.
  SLUICE_LAZY void follow(std::span<Row const> rows) {
    if (follows_) tree_.apply(rows);
  }
  /// Notes how many tokens the slots hold after these rows.
  SLUICE_LAZY void hold(std::span<Row const> rows) {
    for (auto const& row : rows) ledger_.hold(row.to, row.length + static_cast<std::int32_t>(row.kept()));
  }
  /// See SlotLedger.
  SLUICE_LAZY std::int32_t const* held(Slot first) const { return ledger_.held(first); }
  SLUICE_LAZY void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) clear(slot);
    tell(ledger_.release(slot_numbers));
  }
  /// Frees a block, and releases what the model still holds in it.
  SLUICE_LAZY void give_back(Slot first, std::int32_t size) {
    for (auto slot = first; slot < first + size; ++slot) clear(slot);
    tell(ledger_.give_back(first, size));
  }

  TokenTree& tree() { return tree_; }
  TokenTree const& tree() const { return tree_; }

 private:
  SLUICE_LAZY void clear(Slot slot) {
    if (follows_) tree_.clear(slot);
  }
  SLUICE_LAZY void tell(std::span<Slot const> slot_numbers) {
    if (!slot_numbers.empty()) model_.release(slot_numbers);
  }

  AnyModelSide& model_;
  bool follows_;
  SlotLedger ledger_;
  TokenTree tree_;
};

}  // namespace sluice::inline v0::detail
