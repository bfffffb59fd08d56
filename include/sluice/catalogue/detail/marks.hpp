// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ascending numbers in few bytes, at any address.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/file_words.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// A set of numbers below `bound`: a view of bytes, which are a list of uint32 if there are few numbers, otherwise
///
///   uint64 words   bit x % 64 of word x / 64: whether it contains x; words for whole blocks of 512
///   uint32 [blocks + 1]  the number before each block, and the total
///
/// Whatever the bytes are, answers and reads stay within bounds.
class Marks {
 public:
  static constexpr std::uint32_t block = 512, sparse = 32;

  Marks() = default;
  Marks(std::byte const* bytes, std::uint32_t bound, std::uint32_t count, bool bits)
      : bytes_(bytes), bound_(bound), count_(count), bits_(bits) {}

  static bool as_bits(std::uint32_t bound, std::uint32_t count) { return std::uint64_t{count} * sparse > bound; }
  static std::uint32_t blocks(std::uint32_t bound) { return bound / block + (bound % block != 0 ? 1 : 0); }
  static std::uint64_t bytes(std::uint32_t bound, std::uint32_t count, bool bits) {
    if (!bits) return std::uint64_t{count} * 4;
    return std::uint64_t{blocks(bound)} * (block / 8 + 4) + 4;
  }

  /// Writes them to zeroed bytes. \param ascending  below bound
  static void write(std::span<std::uint32_t const> ascending, std::uint32_t bound, bool bits, std::byte* to) {
    if (!bits) {
      for (std::size_t i = 0; i < ascending.size(); ++i) store_little(to + 4 * i, ascending[i]);
      return;
    }
    for (auto const x : ascending) set(to, x);
    count_blocks(to, bound);
  }
  /// Writes one number at a time, as bits; the counts are written last.
  static void set(std::byte* to, std::uint32_t x) { to[x / 8] |= std::byte{1} << (x % 8); }
  static void count_blocks(std::byte* to, std::uint32_t bound) {
    auto const all = blocks(bound);
    auto* const counts = to + std::size_t{all} * (block / 8);
    std::uint32_t sum = 0;
    for (std::uint32_t b = 0; b <= all; ++b) {
      store_little(counts + std::size_t{b} * 4, sum);
      for (std::uint32_t w = 0; b < all && w < block / 64; ++w)
        sum += static_cast<std::uint32_t>(
            std::popcount(load_little<std::uint64_t>(to + (std::size_t{b} * (block / 64) + w) * 8)));
    }
  }

  std::uint32_t size() const { return count_; }
  bool bits() const { return bits_; }

  /// The number of elements below x.
  std::uint32_t rank(std::uint32_t x) const {
    if (x >= bound_) return count_;
    if (!bits_) {
      std::uint32_t low = 0, high = count_;
      while (low < high) {
        auto const middle = low + (high - low) / 2;
        if (number(middle) < x) low = middle + 1;
        else high = middle;
      }
      return low;
    }
    auto sum = before(x / block);
    auto const word = x / 64;
    for (auto w = x / block * (block / 64); w < word; ++w) sum += ones(words(w));
    return (std::min)(sum + ones(words(word) & ((std::uint64_t{1} << (x % 64)) - 1)), count_);
  }
  bool contains(std::uint32_t x) const {
    if (x >= bound_) return false;
    if (bits_) return (words(x / 64) >> (x % 64) & 1) != 0;
    auto const at = rank(x);
    return at < count_ && number(at) == x;
  }
  /// The k-th element, from 0; bound if there are fewer.
  std::uint32_t at(std::uint32_t k) const {
    if (k >= count_) return bound_;
    if (!bits_) return (std::min)(number(k), bound_);
    std::uint32_t low = 0, high = blocks(bound_);  // finds the last block with at most k elements before it
    while (high - low > 1) {
      auto const middle = low + (high - low) / 2;
      if (before(middle) <= k) low = middle;
      else high = middle;
    }
    auto left = k - (std::min)(before(low), k);
    for (auto w = low * (block / 64); w < (low + 1) * (block / 64); ++w) {
      auto word = words(w);
      if (auto const held = ones(word); left >= held) {
        left -= held;
        continue;
      }
      for (; left > 0; --left) word &= word - 1;
      return (std::min)(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)), bound_);
    }
    return bound_;
  }

  /// The first element that is not less than x, which is the k-th: for iterating over all of them. bound: there is
  /// none.
  std::uint32_t next(std::uint32_t x, std::uint32_t k) const {
    if (k >= count_ || x >= bound_) return bound_;
    if (!bits_) return (std::min)(number(k), bound_);
    auto const end = (bound_ - 1) / 64;
    auto word = words(x / 64) & ~std::uint64_t{0} << (x % 64);
    for (auto w = x / 64;; word = words(w)) {
      if (word != 0) return (std::min)(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)), bound_);
      if (++w > end) return bound_;
    }
  }

  /// Calls f(x) for the elements in [first, last), ascending.
  template <class F>
  void for_each(std::uint32_t first, std::uint32_t last, F&& f) const {
    last = (std::min)(last, bound_);
    if (first >= last) return;
    if (!bits_) {
      for (auto k = rank(first); k < count_; ++k) {
        auto const x = number(k);
        if (x >= last) return;
        f(x);
      }
      return;
    }
    auto const end = (last - 1) / 64;
    auto word = words(first / 64) & ~std::uint64_t{0} << (first % 64);
    for (auto w = first / 64;;) {
      if (w == end && last % 64 != 0) word &= (std::uint64_t{1} << (last % 64)) - 1;
      for (; word != 0; word &= word - 1) f(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
      if (++w > end) return;
      // Skips empty blocks.
      constexpr auto per_block = block / 64;
      while (w % per_block == 0 && w + per_block <= end && before(w / per_block) == before(w / per_block + 1))
        w += per_block;
      word = words(w);
    }
  }

  /// contains() for mostly ascending numbers; continues from the last lookup.
  class Cursor {
   public:
    explicit Cursor(Marks const& marks) : marks_(&marks) {}
    bool contains(std::uint32_t x) {
      auto const& m = *marks_;
      if (m.bits_) return m.contains(x);
      if (x < last_ || x > next_) {
        auto const at = m.rank(x);
        next_ = at < m.count_ ? m.number(at) : m.bound_;
      }
      last_ = x;
      return x == next_ && x < m.bound_;
    }

   private:
    Marks const* marks_;
    std::uint32_t last_ = 1, next_ = 0;  // for a list: the last number looked up, and the first element not less than
                                         // it
  };

  /// For a list; k < size().
  std::uint32_t number(std::uint32_t k) const { return load_little<std::uint32_t>(bytes_ + std::size_t{k} * 4); }
  /// For bits; w < 8 blocks(bound), b <= blocks(bound).
  std::uint64_t words(std::uint32_t w) const { return load_little<std::uint64_t>(bytes_ + std::size_t{w} * 8); }
  std::uint32_t before(std::uint32_t b) const {
    return load_little<std::uint32_t>(bytes_ + std::size_t{blocks(bound_)} * (block / 8) + std::size_t{b} * 4);
  }

 private:
  static std::uint32_t ones(std::uint64_t word) { return static_cast<std::uint32_t>(std::popcount(word)); }

  std::byte const* bytes_ = nullptr;
  std::uint32_t bound_ = 0, count_ = 0;
  bool bits_ = false;
};

}  // namespace sluice::inline v0::detail
