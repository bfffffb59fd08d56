// SPDX-License-Identifier: Apache-2.0
/// \file
/// A sequence that grows while others read it.
#pragma once

#include <sluice/language.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace sluice::inline v0::detail {

/// Elements stay where they are. One thread at a time may add some while others read elements whose positions they
/// received, after these were added, through something that synchronises. New elements are zero, which must be what a
/// value-initialised one is: large blocks then are pages that the system clears when they are first used.
template <class T>
class StableVector {
 public:
  T& operator[](std::size_t i) const {
    auto const block = block_of(i);
    return blocks_[block][i - begin(block)];
  }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return begin(used_) * sizeof(T); }
  void resize(std::size_t size) {
    for (; begin(used_) < size; ++used_) blocks_[used_] = zeros(std::size_t{1} << (least + used_));
    size_ = size;
  }
  /// Adds elements that lie side by side; returns the position of the first.
  std::size_t add(std::size_t count) {
    auto first = size_;
    while (begin(block_of(first) + 1) < first + count) first = begin(block_of(first) + 1);
    resize(first + count);
    return first;
  }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  struct Free {
    void operator()(T* block) const { std::free(block); }
  };
  using Block = std::unique_ptr<T[], Free>;  // NOLINT(modernize-avoid-c-arrays)
  static Block zeros(std::size_t count) {
    auto* const block = static_cast<T*>(std::calloc(count, sizeof(T)));
    if (block == nullptr) throw std::bad_alloc();
    return Block(block);
  }

  static constexpr std::size_t least = 6;  // the first block has 2^6 elements, each further one twice as many
  static constexpr std::size_t begin(std::size_t block) { return ((std::size_t{1} << block) - 1) << least; }
  static constexpr std::size_t block_of(std::size_t i) {
    return static_cast<unsigned>(std::bit_width((i >> least) + 1)) - std::size_t{1};
  }

  std::array<Block, 40> blocks_;
  std::size_t used_ = 0, size_ = 0;
};

/// A table of values that any thread reads and sets at any time; all are 0 at first.
template <class T>
class SharedTable {
 public:
  SharedTable() = default;
  SharedTable(SharedTable const&) = delete;
  SharedTable& operator=(SharedTable const&) = delete;
  ~SharedTable() = default;

  T get(std::size_t i) const {
    auto const [block, at] = place(i);
    auto const* const values = blocks_[block].load(std::memory_order_acquire);
    return values == nullptr ? T{} : values[at].load(std::memory_order_acquire);
  }
  void set(std::size_t i, T value) {
    auto const [block, at] = place(i);
    auto* values = blocks_[block].load(std::memory_order_acquire);
    if (values == nullptr) values = add(block);
    values[at].store(value, std::memory_order_release);
  }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Cell = std::atomic<T>;
  static constexpr std::size_t least = 8;  // the first block has 2^8 values, each further one twice as many
  static std::pair<std::size_t, std::size_t> place(std::size_t i) {
    auto const block = static_cast<unsigned>(std::bit_width((i >> least) + 1)) - std::size_t{1};
    return {block, i - (((std::size_t{1} << block) - 1) << least)};
  }
  Cell* add(std::size_t block) {
    auto const lock = std::scoped_lock(mutex_);
    if (auto* const known = blocks_[block].load(std::memory_order_relaxed); known != nullptr) return known;
    owned_[block] = std::make_unique<Cell[]>(std::size_t{1} << (least + block));  // NOLINT(modernize-avoid-c-arrays)
    bytes_.fetch_add(sizeof(Cell) << (least + block), std::memory_order_relaxed);
    blocks_[block].store(owned_[block].get(), std::memory_order_release);
    return owned_[block].get();
  }

  std::array<std::atomic<Cell*>, 40> blocks_{};
  std::array<std::unique_ptr<Cell[]>, 40> owned_;  // NOLINT(modernize-avoid-c-arrays)
  std::atomic<std::size_t> bytes_ = 0;
  std::mutex mutex_;
};

}  // namespace sluice::inline v0::detail
