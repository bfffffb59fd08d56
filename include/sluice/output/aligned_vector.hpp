// SPDX-License-Identifier: Apache-2.0
/// \file
/// A std::vector aligned to cache lines.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <new>
#include <vector>

namespace sluice::inline v0 {

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
