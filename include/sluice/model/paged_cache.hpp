// SPDX-License-Identifier: Apache-2.0
/// \file
/// A paged KV cache: memory for the keys and values of many hypotheses, in pages that forks share.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/page_table.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Options of a PagedCache.
struct PagedCacheOptions {
  std::size_t elements_per_position = 0;  ///< > 0: of all layers together
  std::int32_t positions_per_page = 16;   ///< > 0
  std::int32_t max_pages = 0;             ///< the most in use at once; 0 = as many as memory allows
};

/// Slots of positions. Each position has `elements_per_position` numbers, which the cache only moves and never reads.
/// Forks share pages through a PageTable: a fork copies nothing, and if two slots end in one page, the first to append
/// to it copies the page's filled part. The model chooses the layout within a page; if that is not position after
/// position, it must say how a page is copied (see append).
///
/// Slots need no creation: a slot that was never named is empty. Not thread-safe.
template <class T>
class PagedCache {
 public:
  /// Where a new position goes.
  struct Place {
    std::span<T> page;      ///< [positions_per_page * elements_per_position]; never moves while in use
    std::int32_t position;  ///< in the page
  };

  /// \throws std::invalid_argument  if an option is out of range
  explicit PagedCache(PagedCacheOptions const& options)
      : elements_(options.elements_per_position),
        page_size_(elements_ * static_cast<std::size_t>((std::max)(options.positions_per_page, 0))),
        table_(options.positions_per_page, options.max_pages, page_size_ * sizeof(T)) {
    require(elements_ > 0, "PagedCache: elements_per_position", elements_, "must be > 0");
  }

  std::int32_t length(Slot slot) const { return table_.length(slot); }
  PagedCacheUse const& use() const { return table_.use(); }

  /// `to` becomes the first `length` positions of `from`; its old contents are dropped. O(pages dropped).
  /// \throws std::invalid_argument  if `from` is shorter
  void fork(Slot from, Slot to, std::int32_t length) { table_.fork(from, to, length); }

  /// Keeps the first `length` positions of the slot. O(pages dropped).
  /// \throws std::invalid_argument  if it is shorter
  void truncate(Slot slot, std::int32_t length) { table_.truncate(slot, length); }

  /// Empties the slot.
  void release(Slot slot) { table_.release(slot); }

  /// Gives the memory of all pages back, if none is in use; else nothing happens.
  void trim() {
    if (table_.trim()) pages_ = {};
  }

  /// Appends a position to the slot. O(1), or a copy of the filled part of its last page if that is shared. `copy(from,
  /// to, filled)` copies the data of the first `filled` positions of a page, from std::span<T const> to std::span<T>;
  /// by default the first filled * elements_per_position numbers.
  /// \throws std::length_error  if all pages are in use; the slot is unchanged
  template <class Copy>
  Place append(Slot slot, Copy&& copy) {
    auto const place = table_.append(slot, [this] { pages_.emplace_back(page_size_); });
    auto& page = pages_[static_cast<std::size_t>(place.page)];
    if (place.copied_from != PageTable::none) {
      auto const& old = pages_[static_cast<std::size_t>(place.copied_from)];
      copy(std::span<T const>(old), std::span<T>(page), place.position);
    }
    return {page, place.position};
  }
  Place append(Slot slot) {
    return append(slot, [this](std::span<T const> from, std::span<T> to, std::int32_t filled) {
      std::ranges::copy(from.first(static_cast<std::size_t>(filled) * elements_), to.begin());
    });
  }

  /// Appends the slot's pages to `pages`, in order: ceil(length / positions_per_page), all but the last full. Their
  /// addresses are stable until the slot drops them.
  void pages(Slot slot, std::vector<T const*>& pages) const {
    auto const begin = pages.size();
    pages.resize(begin + static_cast<std::size_t>(table_.pages_of(length(slot))));
    table_.pages(slot, [&](std::int32_t i, std::int32_t page) {
      pages[begin + static_cast<std::size_t>(i)] = pages_[static_cast<std::size_t>(page)].data();
    });
  }

 private:
  std::size_t elements_, page_size_;
  PageTable table_;
  std::vector<AlignedVector<T>> pages_;
};

}  // namespace sluice::inline v0
