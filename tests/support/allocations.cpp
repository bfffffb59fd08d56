// SPDX-License-Identifier: Apache-2.0
#include <support/allocations.hpp>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::size_t count = 0;

// Windows has functions of its own for aligned memory.
#if defined(_WIN32)
void* aligned(std::size_t unit, std::size_t size) { return _aligned_malloc(size, unit); }
void free_aligned(void* memory) { _aligned_free(memory); }
#else
void* aligned(std::size_t unit, std::size_t size) { return std::aligned_alloc(unit, size); }
void free_aligned(void* memory) { std::free(memory); }
#endif

}  // namespace

std::size_t sluice::test::allocations() { return count; }

// Not inlined: GCC would see malloc meet operator delete, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++count;
  if (auto* const memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++count;
  auto const unit = static_cast<std::size_t>(alignment);
  if (auto* const memory = aligned(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
  ++count;  // used by std::stable_sort and similar functions
  return std::malloc(size != 0 ? size : 1);
}
void* operator new[](std::size_t size, std::nothrow_t const& tag) noexcept { return operator new(size, tag); }
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::nothrow_t const&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::nothrow_t const&) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { free_aligned(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free_aligned(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { free_aligned(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { free_aligned(memory); }
