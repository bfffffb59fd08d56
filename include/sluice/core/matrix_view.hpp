// SPDX-License-Identifier: Apache-2.0
/// \file
/// Views of row-major matrices, the two kinds of answers that models return, scores or hidden vectors, and vectors aligned to cache
/// lines.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// A row-major matrix [rows, columns] that does not own its memory; row i starts at data + i * stride.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::ptrdiff_t rows = 0;
  std::ptrdiff_t columns = 0;
  std::ptrdiff_t stride = 0;  ///< in elements; >= columns

  /// Row i, shape [columns].
  std::span<T> operator[](std::ptrdiff_t i) const { return {data + i * stride, static_cast<std::size_t>(columns)}; }
};

/// What the numbers of Scores mean.
enum class Kind : std::uint8_t {
  logits,     ///< any scores; a softmax turns them into probabilities
  log_probs,  ///< log-probabilities (natural); used as they are unless a query changes the line before the softmax
};

/// A model's answer: one line of V scores for every line asked for, [lines, V]. Valid until the model's next step.
template <class T>
struct Scores : MatrixView<T const> {
  using Value = T;
  Kind kind = Kind::logits;
};

/// A model's answer: one hidden vector for every line asked for, [lines, d]. A projection turns them into scores. Valid until
/// the model's next step.
template <class T>
struct Hidden : MatrixView<T const> {
  using Value = T;
};

/// Scores from a buffer [lines, columns], dense or with `stride` elements from line to line.
template <class T>
Scores<T> scores(T const* data, std::ptrdiff_t lines, std::ptrdiff_t columns, Kind kind = Kind::logits,
                 std::ptrdiff_t stride = 0) {
  return {{data, lines, columns, stride > 0 ? stride : columns}, kind};
}

/// Hidden vectors from a buffer [lines, columns], dense or with `stride` elements from line to line.
template <class T>
Hidden<T> hidden(T const* data, std::ptrdiff_t lines, std::ptrdiff_t columns, std::ptrdiff_t stride = 0) {
  return {{data, lines, columns, stride > 0 ? stride : columns}};
}

namespace detail {

/// Allocates at multiples of 64 bytes.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(AlignedAllocator<U> const&) {}  // NOLINT(google-explicit-constructor): allocators convert

  T* allocate(std::size_t count) {
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

}  // namespace detail

/// A std::vector whose elements begin at a multiple of 64 bytes, a cache line, for loops that load whole vectors.
template <class T>
using AlignedVector = std::vector<T, detail::AlignedAllocator<T>>;

}  // namespace sluice::inline v0
