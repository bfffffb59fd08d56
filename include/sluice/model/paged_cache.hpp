// SPDX-License-Identifier: Apache-2.0
/// \file
/// A paged KV cache: memory for the keys and values of many hypotheses, in pages that forks share.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Statistics of a PagedCache.
struct PagedCacheUse {
  std::int32_t pages = 0;      ///< in use now
  std::int32_t peak = 0;       ///< the most in use at once so far
  std::int32_t allocated = 0;  ///< in use or waiting for reuse
  std::size_t bytes = 0;       ///< of the allocated pages
  std::uint64_t forks = 0;     ///< calls of fork
  std::uint64_t copies = 0;    ///< pages copied, because two slots appended to one
};

namespace detail {

/// The page table of a PagedCache. It does not store the pages: they are numbers here, 0 .. use().allocated - 1.
///
/// Pages form a forest: a page refers to the page before it and counts its references (later pages, and slots that end
/// in it). A slot is its last page and a length. So a fork copies nothing. If two slots end in one page, the first to
/// append to it copies the page's filled part.
///
/// Slots need no creation: a slot that was never named is empty. Not thread-safe.
class PageTable {
 public:
  static constexpr std::int32_t none = -1;

  /// Where a new position goes.
  struct Place {
    std::int32_t page;
    std::int32_t position;            ///< in the page
    std::int32_t copied_from = none;  ///< the page whose first `position` positions must be copied to this one
  };

  /// \param positions_per_page  > 0
  /// \param max_pages           the most pages in use at once; 0: no limit
  /// \param page_bytes          of each, for use()
  /// \throws std::invalid_argument  if an argument is out of range
  SLUICE_LAZY PageTable(std::int32_t positions_per_page, std::int32_t max_pages, std::size_t page_bytes)
      : positions_per_page_(positions_per_page), max_pages_(max_pages), page_bytes_(page_bytes) {
    require(positions_per_page > 0, "PagedCache: positions_per_page", positions_per_page, "must be > 0");
    require(max_pages >= 0, "PagedCache: max_pages", max_pages, "must be >= 0");
  }

  std::int32_t length(Slot slot) const { return known(slot) ? slots_[index(slot)].length : 0; }
  PagedCacheUse const& use() const { return use_; }
  std::int32_t pages_of(std::int32_t length) const {
    return length / positions_per_page_ + (length % positions_per_page_ != 0);
  }

  /// `to` becomes the first `length` positions of `from`; its old contents are dropped. O(pages dropped).
  /// \throws std::invalid_argument  if `from` is shorter
  SLUICE_LAZY void fork(Slot from, Slot to, std::int32_t length) {
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
  SLUICE_LAZY void truncate(Slot slot, std::int32_t length) {
    check(slot, length);
    auto& s = slots_[index(slot)];
    for (auto n = pages_of(s.length); n > pages_of(length); --n) {
      auto const previous = pages_[index(s.page)].previous;
      if (previous != none) ++pages_[index(previous)].references;
      drop(std::exchange(s.page, previous));
    }
    s.length = length;
  }

  /// Empties the slot.
  SLUICE_LAZY void release(Slot slot) {
    if (!known(slot)) return;
    auto& s = slots_[index(slot)];
    drop(s.page);
    s = {};
  }

  /// Forgets the pages, if none is in use: they need not be kept for reuse.
  /// \return  whether none is
  SLUICE_LAZY bool trim() {
    if (use_.pages > 0) return false;
    pages_ = {}, free_ = none;
    use_.allocated = 0, use_.bytes = 0;
    return true;
  }

  /// Adds a position to the slot. O(1).
  /// \param grow  called before a page is allocated; if it throws, the slot is unchanged
  /// \throws std::length_error  if all pages are in use; the slot is unchanged
  template <class Grow>
  Place append(Slot slot, Grow&& grow) {
    reserve(slot);
    auto& s = slots_[index(slot)];
    Place place{s.page, s.length % positions_per_page_};
    if (place.position == 0) {
      place.page = acquire(grow);
      pages_[index(place.page)].previous = s.page;  // the slot's reference becomes the page's
    } else if (pages_[index(s.page)].references > 1) {
      place.page = acquire(grow), place.copied_from = s.page;
      auto& old = pages_[index(s.page)];
      pages_[index(place.page)].previous = old.previous;
      if (old.previous != none) ++pages_[index(old.previous)].references;
      --old.references;
      ++use_.copies;
    }
    s.page = place.page;
    ++s.length;
    return place;
  }

  /// Calls write(i, page) for each of the slot's pages_of(length(slot)) pages, the last page first. All but the last
  /// are full.
  template <class Write>
  void pages(Slot slot, Write&& write) const {
    auto const count = pages_of(length(slot));
    auto page = count > 0 ? slots_[index(slot)].page : none;
    for (auto i = count; i > 0; page = pages_[index(page)].previous) write(--i, page);
  }

 private:
  struct Page {
    std::int32_t previous = none;  // of a free page: the next free one
    std::int32_t references = 0;
  };
  struct State {
    std::int32_t page = none;  // the last page
    std::int32_t length = 0;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  bool known(Slot slot) const { return slot >= 0 && index(slot) < slots_.size(); }
  SLUICE_LAZY void check(Slot slot,
                         std::int32_t asked) {  // not called length: nvcc confuses that with the function of this name
    require(asked >= 0 && asked <= length(slot), "PagedCache: length", asked, "must be in [0, length of the slot]");
    reserve(slot);
  }
  SLUICE_LAZY void reserve(Slot slot) {
    require(slot >= 0, "PagedCache: slot", slot, "must be >= 0");
    if (!known(slot)) slots_.resize(index(slot) + 1);
  }

  template <class Grow>
  std::int32_t acquire(Grow&& grow) {
    if (max_pages_ > 0 && use_.pages >= max_pages_)
      throw std::length_error("sluice: PagedCache: all " + std::to_string(max_pages_) + " pages are in use");
    if (free_ == none) {
      pages_.emplace_back();
      try {
        grow();
      } catch (...) {
        pages_.pop_back();
        throw;
      }
      free_ = use_.allocated++;
      use_.bytes += page_bytes_;
    }
    auto const page = free_;
    free_ = std::exchange(pages_[index(page)].previous, none);
    pages_[index(page)].references = 1;
    use_.peak = (std::max)(use_.peak, ++use_.pages);
    return page;
  }

  /// Removes one reference. A page without references is freed, and drops its reference to the page before it.
  SLUICE_LAZY void drop(std::int32_t page) {
    while (page != none && --pages_[index(page)].references == 0) {
      auto const previous = std::exchange(pages_[index(page)].previous, free_);
      free_ = page;
      --use_.pages;
      page = previous;
    }
  }

  std::int32_t positions_per_page_, max_pages_;
  std::size_t page_bytes_;
  std::vector<Page> pages_;
  std::vector<State> slots_;
  std::int32_t free_ = none;
  PagedCacheUse use_;
};

}  // namespace detail

/// Options of a PagedCache.
struct PagedCacheOptions {
  std::size_t elements_per_position = 0;  ///< > 0: of all layers together
  std::int32_t positions_per_page = 16;   ///< > 0
  std::int32_t max_pages = 0;             ///< the most in use at once; 0 = as many as memory allows
};

/// Slots of positions. Each position has `elements_per_position` numbers, which the cache only moves and never reads.
/// Forks share pages through a page table: a fork copies nothing, and if two slots end in one page, the first to append
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
    if (place.copied_from != detail::PageTable::none) {
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
  detail::PageTable table_;
  std::vector<AlignedVector<T>> pages_;
};

}  // namespace sluice::inline v0
