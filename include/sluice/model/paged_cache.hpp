// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory for the keys and values of many hypotheses, in pages that forks share.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// What a PagedCache is made of.
struct PagedCacheOptions {
  std::size_t elements_per_position = 0;  ///< > 0: of all layers together
  std::int32_t positions_per_page = 16;   ///< > 0
  std::int32_t max_pages = 0;             ///< in use at once; 0 = as many as there is memory for
};

/// What a PagedCache has done and holds.
struct PagedCacheUse {
  std::int32_t pages = 0;      ///< in use now
  std::int32_t peak = 0;       ///< in use at once, so far
  std::int32_t allocated = 0;  ///< in use or waiting for reuse
  std::size_t bytes = 0;       ///< of the allocated pages
  std::uint64_t forks = 0;     ///< calls of fork
  std::uint64_t copies = 0;    ///< pages copied, because two slots went on in one
};

/// Slots of positions, each position `elements_per_position` numbers that the cache only moves, never looks at.
///
/// Pages form a forest: a page knows the page before it and counts who refers to it (later pages, and the slots that
/// end in it). A slot is its last page and a length. So a fork copies nothing; the first of two slots to append to a
/// page that both end in copies that page's filled part. Within a page the model lays out its numbers as it likes; if
/// that is not position after position, it says how a page is copied (see append).
///
/// Slots need no creation: one never named is empty. Not thread-safe.
template <class T>
class PagedCache {
 public:
  /// Where a new position goes.
  struct Place {
    std::span<T> page;      ///< [positions_per_page * elements_per_position]; never moves while in use
    std::int32_t position;  ///< in the page
  };

  /// \throws std::invalid_argument  if an option is out of its range
  explicit PagedCache(PagedCacheOptions const& options) : options_(options) {
    require(options.elements_per_position > 0, "PagedCache: elements_per_position", options.elements_per_position,
            "must be > 0");
    require(options.positions_per_page > 0, "PagedCache: positions_per_page", options.positions_per_page,
            "must be > 0");
    require(options.max_pages >= 0, "PagedCache: max_pages", options.max_pages, "must be >= 0");
  }

  std::int32_t length(Slot slot) const { return known(slot) ? slots_[index(slot)].length : 0; }
  PagedCacheUse const& use() const { return use_; }

  /// `to` becomes the first `length` positions of `from`; what it held is dropped. O(pages dropped).
  /// \throws std::invalid_argument  if `from` is shorter
  void fork(Slot from, Slot to, std::int32_t length) {
    check(from, length);
    if (from == to) return truncate(to, length);
    reserve(to);
    auto page = slots_[index(from)].page;
    for (auto n = pages_of(slots_[index(from)].length); n > pages_of(length); --n) page = pages_[index(page)].previous;
    if (page != none) ++pages_[index(page)].references;
    drop(slots_[index(to)].page);
    slots_[index(to)] = {page, length};
    ++use_.forks;
  }

  /// Keeps the first `length` positions of the slot. O(pages dropped).
  /// \throws std::invalid_argument  if it is shorter
  void truncate(Slot slot, std::int32_t length) {
    check(slot, length);
    auto& s = slots_[index(slot)];
    for (auto n = pages_of(s.length); n > pages_of(length); --n) {
      auto const previous = pages_[index(s.page)].previous;
      if (previous != none) ++pages_[index(previous)].references;
      drop(std::exchange(s.page, previous));
    }
    s.length = length;
  }

  /// The slot is empty.
  void release(Slot slot) {
    if (!known(slot)) return;
    auto& s = slots_[index(slot)];
    drop(s.page);
    s = {};
  }

  /// Adds a position to the slot. O(1), or a copy of the filled part of its last page, if that is shared.
  /// `copy(from, to, filled)` copies what belongs to the first `filled` positions of a page, from std::span<T const> to
  /// std::span<T>; by default the first filled * elements_per_position numbers.
  /// \throws std::length_error  if all pages are in use; the slot is as it was
  template <class Copy>
  Place append(Slot slot, Copy&& copy) {
    reserve(slot);
    auto& s = slots_[index(slot)];
    auto const position = s.length % options_.positions_per_page;
    if (position == 0) {
      auto const page = acquire();
      pages_[index(page)].previous = s.page;  // the slot's reference becomes the page's
      s.page = page;
    } else if (pages_[index(s.page)].references > 1) {
      auto const page = acquire();
      auto& old = pages_[index(s.page)];
      auto& fresh = pages_[index(page)];
      copy(std::span<T const>(old.data), std::span<T>(fresh.data), position);
      fresh.previous = old.previous;
      if (fresh.previous != none) ++pages_[index(fresh.previous)].references;
      --old.references;
      s.page = page;
      ++use_.copies;
    }
    ++s.length;
    return {pages_[index(s.page)].data, position};
  }
  Place append(Slot slot) {
    return append(slot, [this](std::span<T const> from, std::span<T> to, std::int32_t filled) {
      std::ranges::copy(from.first(static_cast<std::size_t>(filled) * options_.elements_per_position), to.begin());
    });
  }

  /// Appends the slot's pages to `pages`, in order: ceil(length / positions_per_page), all but the last full. They stay
  /// where they are until the slot drops them.
  void pages(Slot slot, std::vector<T const*>& pages) const {
    auto const begin = pages.size();
    auto const count = static_cast<std::size_t>(pages_of(length(slot)));
    pages.resize(begin + count);
    auto page = count > 0 ? slots_[index(slot)].page : none;
    for (auto i = begin + count; i > begin; page = pages_[index(page)].previous)
      pages[--i] = pages_[index(page)].data.data();
  }

 private:
  static constexpr std::int32_t none = -1;
  struct Page {
    AlignedVector<T> data;
    std::int32_t previous = none;  // of a free page: the next free one
    std::int32_t references = 0;
  };
  struct State {
    std::int32_t page = none;  // the last one
    std::int32_t length = 0;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  bool known(Slot slot) const { return slot >= 0 && index(slot) < slots_.size(); }
  std::int32_t pages_of(std::int32_t length) const {
    return length / options_.positions_per_page + (length % options_.positions_per_page != 0);
  }
  void check(Slot slot, std::int32_t length) {
    require(length >= 0 && length <= this->length(slot), "PagedCache: length", length,
            "must be in [0, length of the slot]");
    reserve(slot);
  }
  void reserve(Slot slot) {
    require(slot >= 0, "PagedCache: slot", slot, "must be >= 0");
    if (!known(slot)) slots_.resize(index(slot) + 1);
  }

  std::int32_t acquire() {
    if (options_.max_pages > 0 && use_.pages >= options_.max_pages)
      throw std::length_error("sluice: PagedCache: all " + std::to_string(options_.max_pages) + " pages are in use");
    if (free_ == none) {
      pages_.push_back({AlignedVector<T>(options_.elements_per_position * index(options_.positions_per_page))});
      free_ = use_.allocated++;
      use_.bytes += pages_.back().data.size() * sizeof(T);
    }
    auto const page = free_;
    free_ = std::exchange(pages_[index(page)].previous, none);
    pages_[index(page)].references = 1;
    use_.peak = std::max(use_.peak, ++use_.pages);
    return page;
  }

  /// One reference less; whoever has none is free, and refers no longer to the page before it.
  void drop(std::int32_t page) {
    while (page != none && --pages_[index(page)].references == 0) {
      auto const previous = std::exchange(pages_[index(page)].previous, free_);
      free_ = page;
      --use_.pages;
      page = previous;
    }
  }

  PagedCacheOptions options_;
  std::vector<Page> pages_;
  std::vector<State> slots_;
  std::int32_t free_ = none;
  PagedCacheUse use_;
};

}  // namespace sluice::inline v0
