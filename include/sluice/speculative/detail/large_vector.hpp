// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arrays that are read at places all over them.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace sluice::inline v0::detail {

/// Allocates as std::allocator does, and asks the kernel for pages of 2 MiB where an array has several: a processor knows where some
/// thousand pages are, and waits for the table of pages at every other place. What the kernel does not grant changes nothing.
template <class T>
struct LargePages {
  using value_type = T;
  static constexpr std::size_t page = std::size_t{2} << 20;

  LargePages() = default;
  template <class U>
  LargePages(LargePages<U> const& /*other*/) {}  // NOLINT(google-explicit-constructor): as containers want it

  T* allocate(std::size_t count) {
    if (count > (std::numeric_limits<std::size_t>::max)() / sizeof(T)) throw std::bad_array_new_length();
    auto const bytes = count * sizeof(T);
    if (bytes < 2 * page) return static_cast<T*>(::operator new(bytes));
    auto* const memory = ::operator new (bytes, std::align_val_t{page});
#if defined(MADV_HUGEPAGE)
    ::madvise(memory, bytes / page * page, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (count * sizeof(T) < 2 * page) ::operator delete(memory);
    else ::operator delete (memory, std::align_val_t{page});
  }
  friend bool operator==(LargePages const& /*a*/, LargePages const& /*b*/) { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace sluice::inline v0::detail
