// SPDX-License-Identifier: Apache-2.0
/// \file
/// Device caches in host memory, with their kernels on an emulated device.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/indirection_block.cuh>
#include <sluice/cuda/cache/detail/indirection_books.cuh>
#include <sluice/cuda/cache/detail/page_books.cuh>
#include <sluice/cuda/cache/detail/page_copies.cuh>
#include <sluice/cuda/cache/indirection_view.cuh>
#include <sluice/cuda/cache/page_view.cuh>

#include <support/emulated_device.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::test {

/// A cache whose memory holds tokens, and its table, on an emulated device.
class EmulatedCache {
 public:
  static constexpr int threads = 64;
  using Memory = cuda::detail::IndirectionMemory<threads>;

  explicit EmulatedCache(cuda::CacheIndirectionOptions const& options)
      : options_(options), books_(options), table_(size(), cuda::IndirectionView::none), memory_(size(), -7) {}

  /// Updates the table and stores the rows' tokens where it says.
  void step(EmulatedDevice<threads>& device, std::span<Slot const> released, std::span<Row const> rows,
            std::uint64_t seed, DeviceFaults faults = {}) {
    for (auto const slot : released) books_.release(slot);
    books_.step(rows);
    cuda::detail::IndirectionLaunch launch;
    launch.table = table_.data(), launch.steps = books_.steps().data();
    launch.slot_count = options_.slot_count, launch.positions = options_.positions;
    launch.width = options_.width, launch.active = books_.active();
    device.run<Memory>(launch.groups() * launch.tiles(), 2, seed, faults, [&](auto& block, Memory& shared, int number) {
      cuda::detail::IndirectionBlock(block, shared, launch, number).run();
    });
    books_.done();
    for (auto const& row : rows)
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        auto const position = row.length + static_cast<std::int32_t>(i);
        others_ += view().owner(row.to, position) != row.to;
        if (view().owner(row.to, position) >= 0)
          memory_[static_cast<std::size_t>(view().cell(row.to, position))] = row.tokens[i];
      }
  }

  /// Whether the slot holds these tokens and nothing else.
  bool holds(Slot slot, std::span<Token const> tokens) const {
    if (books_.length(slot) != std::ssize(tokens)) return false;
    for (std::int32_t position = 0; position < options_.positions; ++position) {
      auto const owner = view().owner(slot, position);
      auto const inside = position < std::ssize(tokens);
      if (inside != (owner != cuda::IndirectionView::none)) return false;
      if (inside && (owner < 0 || owner / options_.width != slot / options_.width)) return false;
      if (inside &&
          memory_[static_cast<std::size_t>(view().cell(slot, position))] != tokens[static_cast<std::size_t>(position)])
        return false;
    }
    return true;
  }

  /// The number of new positions that went into another slot's memory.
  int others() const { return others_; }

 private:
  std::size_t size() const { return static_cast<std::size_t>(options_.slot_count * options_.positions); }
  cuda::IndirectionView view() const { return {table_.data(), options_.positions}; }

  cuda::CacheIndirectionOptions options_;
  cuda::detail::IndirectionBooks books_;
  std::vector<Slot> table_;
  std::vector<Token> memory_;
  int others_ = 0;
};

/// The value of element `e` of a token's position.
template <class T>
T number(Token token, std::int32_t e) {
  return static_cast<T>(token * 13 + e);
}

/// A cache as cuda::PagedCache keeps it, whose device is emulated.
template <class T>
class EmulatedPages {
 public:
  static constexpr int threads = 32;

  explicit EmulatedPages(cuda::PagedCacheOptions const& options)
      : books(options, sizeof(T)),
        options_(options),
        pool_(static_cast<std::size_t>(options.max_pages) * options.page_size() * sizeof(T) / 16, {{7, 7, 7, 7}}) {}

  void step(std::span<Row const> rows, std::uint64_t seed) {
    books.step(rows);
    cuda::detail::PageCopies task;
    task.pool = reinterpret_cast<unsigned char*>(pool_.data());
    task.copies = books.copies().data(), task.count = static_cast<std::int32_t>(books.copies().size());
    task.parts = 1 + static_cast<std::int32_t>(seed % 3);
    task.planes = options_.planes;
    task.plane_bytes = static_cast<std::int64_t>(options_.plane_size() * sizeof(T));
    task.position_bytes = task.plane_bytes / options_.positions_per_page;
    struct Nothing {};
    device.template run<Nothing>(task.count * task.parts, 3, seed, {}, [&](auto& block, Nothing&, int number) {
      cuda::detail::copy_pages(block, task, number);
    });
    auto const view = this->view();
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < rows[i].tokens.size(); ++j)
        for (std::int32_t e = 0; e < elements(); ++e)
          at(view, static_cast<std::int32_t>(i), rows[i].length + static_cast<std::int32_t>(j), e) =
              number<T>(rows[i].tokens[j], e);
  }

  /// A view of the table last listed.
  cuda::PageView<T> view() {
    cuda::PageView<T> view;
    view.pool = reinterpret_cast<T*>(pool_.data());
    view.table = books.pages().data(), view.lengths = books.lengths().data();
    view.stride = static_cast<std::int32_t>(books.width());
    view.rows = static_cast<std::int32_t>(books.lengths().size());
    view.positions = options_.positions_per_page, view.planes = options_.planes;
    view.size = static_cast<std::int64_t>(options_.elements_per_position) / options_.planes;
    return view;
  }
  bool holds(std::int32_t row, std::span<Token const> tokens) {
    auto const view = this->view();
    if (view.length(row) != std::ssize(tokens)) return false;
    for (std::int32_t position = 0; position < view.length(row); ++position)
      for (std::int32_t e = 0; e < elements(); ++e)
        if (at(view, row, position, e) != number<T>(tokens[static_cast<std::size_t>(position)], e)) return false;
    return true;
  }

  cuda::detail::PageBooks books;
  EmulatedDevice<threads> device;

 private:
  std::int32_t elements() const { return static_cast<std::int32_t>(options_.elements_per_position); }
  T& at(cuda::PageView<T> const& view, std::int32_t row, std::int32_t position, std::int32_t e) const {
    auto const part = elements() / options_.planes;
    return view.at(row, position, e / part)[e % part];
  }

  cuda::PagedCacheOptions options_;
  std::vector<cuda::detail::Words> pool_;
};

}  // namespace sluice::test
