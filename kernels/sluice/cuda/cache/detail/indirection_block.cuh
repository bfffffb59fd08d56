// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of a thread block of CacheIndirection: some positions of a group of slots.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/cache/indirection_view.cuh>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of an IndirectionBlock.
template <int threads>
struct IndirectionMemory {
  static constexpr int words = IndirectionLaunch::most_width / 32;
  struct Marks {
    std::uint32_t used[words];   ///< slots whose memory at the position stays in use
    std::uint32_t taken[words];  ///< slots whose memory is taken by their own rows
    std::uint32_t left;          ///< whether a row could not use its own memory
  };
  Marks marks[threads / 32];  ///< per warp
};

/// Positions are independent, and a group's slots refer only to memory of their group, so blocks are independent. The
/// table changes in place. A fork goes to a slot that no row reads (see Row), so forks are read and written in any
/// order; what they read is cut or overwritten only after a barrier.
///
/// A new position takes its slot's own memory. If a fork still refers to that after a roll-back, it takes the group's
/// lowest free memory: a group's slots never refer to more memories than there are slots.
template <class Block>
class IndirectionBlock {
 public:
  static constexpr int tile = IndirectionLaunch::tile;
  using Memory = IndirectionMemory<Block::threads>;

  SLUICE_DEVICE IndirectionBlock(Block& block, Memory& memory, IndirectionLaunch const& launch, std::int32_t number)
      : block_(block),
        memory_(memory),
        launch_(launch),
        first_(number / launch.tiles() * launch.width),
        members_(launch.slot_count - first_ < launch.width ? launch.slot_count - first_ : launch.width),
        position_(number % launch.tiles() * tile) {}

  SLUICE_DEVICE void run() {
    fork();
    block_.sync(Barrier::forked);
    auto const end = launch_.active < position_ + tile ? launch_.active : position_ + tile;
    for (auto position = position_ + block_.warp(); position < end; position += Block::warps) settle(position);
  }

 private:
  /// A warp per slot, a lane per position; several slots at a time, so that loads do not wait for stores.
  SLUICE_DEVICE void fork() {
    constexpr int at_once = 4;
    auto const position = position_ + block_.lane();
    for (auto begin = block_.warp(); begin < members_; begin += at_once * Block::warps) {
      Slot owners[at_once];
      SLUICE_UNROLL
      for (int i = 0; i < at_once; ++i) {
        auto const slot = first_ + begin + i * Block::warps;
        owners[i] = moves(slot, position) ? entry(step(slot).from, position) : IndirectionView::none;
      }
      SLUICE_UNROLL
      for (int i = 0; i < at_once; ++i) {
        auto const slot = first_ + begin + i * Block::warps;
        if (moves(slot, position)) entry(slot, position) = owners[i];
      }
    }
  }

  /// Whether the slot takes this position over from another slot.
  SLUICE_DEVICE bool moves(Slot slot, std::int32_t position) const {
    if (slot >= first_ + members_) return false;
    auto const step = this->step(slot);
    return step.named() && step.from != slot && position < step.length;
  }

  /// Cuts and appends at one position; run by a warp.
  SLUICE_DEVICE void settle(std::int32_t position) {
    auto changes = false;
    for (auto i = block_.lane(); i < members_; i += 32) {
      auto const step = this->step(first_ + i);
      changes = changes || (step.named() && position >= step.length);
    }
    if (block_.ballot(changes) == 0) return;

    auto& marks = memory_.marks[block_.warp()];
    if (block_.lane() == 0) {
      for (int word = 0; 32 * word < members_; ++word) marks.used[word] = marks.taken[word] = 0;
      marks.left = 0;
    }
    block_.sync_warp(Barrier::free);
    for (auto i = block_.lane(); i < members_; i += 32) {
      auto const step = this->step(first_ + i);
      if (step.named() && position >= step.length) continue;
      auto const owner = entry(first_ + i, position) - first_;
      if (owner >= 0 && owner < members_) block_.set(&marks.used[owner / 32], 1u << (owner % 32));
    }
    block_.sync_warp(Barrier::used);
    for (auto i = block_.lane(); i < members_; i += 32) {
      auto const step = this->step(first_ + i);
      if (!step.named() || position < step.length) continue;
      auto const bit = 1u << (i % 32);
      auto const appends = position < step.length + step.count;
      auto const own = appends && (marks.used[i / 32] & bit) == 0;
      entry(first_ + i, position) = own ? first_ + i : IndirectionView::none;
      if (own) block_.set(&marks.taken[i / 32], bit);
      if (appends && !own) block_.set(&marks.left, 1);
    }
    block_.sync_warp(Barrier::own);
    if (block_.lane() == 0 && marks.left != 0) find_others(position, marks);
  }

  /// Finds other memory for rows that could not use their own.
  SLUICE_DEVICE void find_others(std::int32_t position, typename Memory::Marks& marks) {
    int word = 0;
    for (std::int32_t i = 0; i < members_; ++i) {
      auto const step = this->step(first_ + i);
      if (!step.named() || position < step.length || position >= step.length + step.count) continue;
      if (entry(first_ + i, position) != IndirectionView::none) continue;
      while (32 * word < members_ && (marks.used[word] | marks.taken[word]) == ~0u) ++word;
      if (32 * word >= members_) return;  // never happens for valid rows
      auto const bit = lowest_bit(~(marks.used[word] | marks.taken[word]));
      if (32 * word + bit >= members_) return;
      marks.taken[word] |= 1u << bit;
      entry(first_ + i, position) = first_ + 32 * word + bit;
    }
  }

  SLUICE_DEVICE SlotStep step(Slot slot) const { return launch_.steps[slot]; }
  SLUICE_DEVICE Slot& entry(Slot slot, std::int32_t position) const {
    return launch_.table[static_cast<std::int64_t>(slot) * launch_.positions + position];
  }

  Block& block_;
  Memory& memory_;
  IndirectionLaunch const& launch_;
  Slot const first_;  // of the group
  std::int32_t const members_;
  std::int32_t const position_;  // the tile's first position
};

}  // namespace sluice::inline v0::cuda::detail
