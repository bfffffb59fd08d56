// SPDX-License-Identifier: Apache-2.0
/// \file
/// The host's bookkeeping of a paged KV cache: page tables and copies of a step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/check_rows.cuh>
#include <sluice/cuda/cache/detail/page_copies.cuh>
#include <sluice/cuda/cache/paged_cache_options.cuh>
#include <sluice/model/paged_cache.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// Applies the rows of every step to a PageTable.
class PageBooks {
 public:
  /// \throws std::invalid_argument  if an option is out of range
  PageBooks(PagedCacheOptions const& options, std::size_t element_bytes)
      : options_((options.check(element_bytes), options)),
        table_(options.positions_per_page, options.max_pages, options.page_size() * element_bytes) {}

  sluice::detail::PageTable const& table() const { return table_; }
  void release(Slot slot) { table_.release(slot); }

  /// Applies all forks, then all cuts, then all appends. The copies() are independent: they read pages that existed
  /// before the first append, and write pages allocated since.
  /// \throws std::invalid_argument  for rows that break the rules of Row; then nothing has changed
  /// \throws std::length_error      if all pages are in use; then the slots of the rows are undefined and must be
  ///                            released
  void step(std::span<Row const> rows) {
    check_rows(
        "PagedCache", rows, [this](Slot slot) { return table_.length(slot); }, options_.max_length, read_);
    require(std::ssize(rows) <= options_.max_rows, "PagedCache: rows", rows.size(), "are more than max_rows");
    copies_.clear(), listed_.clear();
    for (auto const& row : rows)
      if (row.from != row.to) table_.fork(row.from, row.to, row.length);
    for (auto const& row : rows) table_.truncate(row.to, row.length);
    for (auto const& row : rows) {
      listed_.push_back(row.to);
      for (auto n = row.tokens.size(); n > 0; --n) {
        auto const place = table_.append(row.to, [] {});
        if (place.copied_from != sluice::detail::PageTable::none)
          copies_.push_back({place.copied_from, place.page, place.position});
      }
    }
    list(listed_);
  }

  /// Page tables and lengths of these slots. O(total pages).
  void list(std::span<Slot const> slot_numbers) {
    width_ = 0, lengths_.clear();
    for (auto const slot : slot_numbers) {
      lengths_.push_back(table_.length(slot));
      width_ = (std::max)(width_, static_cast<std::size_t>(table_.pages_of(lengths_.back())));
    }
    pages_.assign(slot_numbers.size() * width_, 0);
    auto row = pages_.begin();
    for (auto const slot : slot_numbers) {
      table_.pages(slot, [row](std::int32_t i, std::int32_t page) { row[i] = page; });
      row += static_cast<std::ptrdiff_t>(width_);
    }
  }

  /// For the rows of step(), or the slots of list(): their page tables [rows, width()], padded with zeros; their
  /// lengths [rows]; and the copies that step() needs before anything is written.
  std::span<std::int32_t const> pages() const { return pages_; }
  std::size_t width() const { return width_; }
  std::span<std::int32_t const> lengths() const { return lengths_; }
  std::span<PageCopy const> copies() const { return copies_; }

 private:
  PagedCacheOptions options_;
  sluice::detail::PageTable table_;
  std::vector<Slot> read_, listed_;
  std::vector<std::int32_t> pages_, lengths_;
  std::vector<PageCopy> copies_;
  std::size_t width_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
