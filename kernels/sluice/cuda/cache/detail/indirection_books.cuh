// SPDX-License-Identifier: Apache-2.0
/// \file
/// The host's bookkeeping of a CacheIndirection: lengths, and the next step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/cache_indirection_options.cuh>
#include <sluice/cuda/cache/detail/check_rows.cuh>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// Converts rows to steps of slots; releases take effect with the next step.
class IndirectionBooks {
 public:
  /// \throws std::invalid_argument  if an option is out of range
  explicit IndirectionBooks(CacheIndirectionOptions const& options) : options_(options) {
    require(options.slot_count > 0, "CacheIndirection: slot_count", options.slot_count, "must be > 0");
    require(options.positions > 0, "CacheIndirection: positions", options.positions, "must be > 0");
    require(options.width >= 1 && options.width <= IndirectionLaunch::most_width, "CacheIndirection: width",
            options.width, "must be in [1, 1024]");
    steps_.resize(index(options.slot_count)), lengths_.resize(index(options.slot_count));
  }

  std::int32_t length(Slot slot) const { return slot >= 0 && slot < options_.slot_count ? lengths_[index(slot)] : 0; }

  /// Empties the slot. Its memory may be reused from the next step on.
  void release(Slot slot) {
    if (length(slot) == 0) return;
    cover(lengths_[index(slot)]);
    lengths_[index(slot)] = 0;
    steps_[index(slot)] = {slot, 0, 0};
  }

  /// Records a step. O(slots + rows).
  /// \throws std::invalid_argument  for rows that break the rules of Row, need more positions than there are, or fork
  ///                                across groups; then nothing has changed
  void step(std::span<Row const> rows) {
    check(rows);
    // All forks take their lengths before any row is cut.
    for (auto const& row : rows) cover(lengths_[index(row.to)]);
    for (auto const& row : rows) {
      auto const count = static_cast<std::int32_t>(row.tokens.size());
      steps_[index(row.to)] = {row.from, row.length, count};
      lengths_[index(row.to)] = row.length + count;
      cover(row.length + count);
    }
  }

  /// The recorded step()s and release()s, [slots]; positions 0 .. active() - 1 change.
  std::span<SlotStep const> steps() const { return steps_; }
  std::int32_t active() const { return active_; }
  /// Call it when they have been enqueued.
  void done() {
    std::ranges::fill(steps_, SlotStep{});
    active_ = 0;
  }

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  void cover(std::int32_t length) { active_ = (std::max)(active_, length); }

  void check(std::span<Row const> rows) {
    check_rows(
        "CacheIndirection", rows, [this](Slot slot) { return length(slot); }, options_.positions, read_);
    for (auto const& row : rows) {
      require(row.from < options_.slot_count, "CacheIndirection: row.from", row.from, "is not a slot of the cache");
      require(row.to < options_.slot_count, "CacheIndirection: row.to", row.to, "is not a slot of the cache");
      require(row.from / options_.width == row.to / options_.width, "CacheIndirection: row.from", row.from,
              "is not in the group of row.to");
    }
  }

  CacheIndirectionOptions options_;
  std::vector<SlotStep> steps_;
  std::vector<std::int32_t> lengths_;
  std::vector<Slot> read_;
  std::int32_t active_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
