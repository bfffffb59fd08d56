// SPDX-License-Identifier: Apache-2.0
/// \file
/// A growing array that compiles in a tenth of std::vector's time.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace sluice::inline v0::detail {

/// The memory of a Buffer, whatever its items are: what can be compiled once is here.
struct BufferMemory {
  void* items = nullptr;
  std::size_t size = 0, capacity = 0;  // in items

  /// Memory for at least `count` items; at least twice as much as before.
  void* larger(std::size_t count, std::size_t item, std::size_t alignment, std::size_t& room) const {
    room = (std::max)({count, 2 * capacity, std::size_t{4}});
    auto const bytes = room * item;
    return ::operator new (bytes, std::align_val_t{alignment});
  }
  static void check([[maybe_unused]] bool holds) {
#ifdef _GLIBCXX_ASSERTIONS
    if (!holds) std::abort();
#endif
  }
  void free(std::size_t alignment) const { ::operator delete (items, std::align_val_t{alignment}); }
  /// Moves items that are only bytes into larger memory.
  void grow(std::size_t count, std::size_t item, std::size_t alignment) {
    std::size_t room = 0;
    auto* const to = larger(count, item, alignment, room);
    if (size > 0) std::memcpy(to, items, size * item);
    free(alignment);
    items = to, capacity = room;
  }
};

/// The members of std::vector that the loop and the states of searches use, with pointers for iterators. A type of items in a
/// std::vector takes GCC 12 75 ms to compile at -O0, here it takes 20, and a program that decodes has two dozen that
/// no user sees (docs/benchmarks/weight.md). Items move without throwing. Indices are checked where those of std::vector are, with
/// _GLIBCXX_ASSERTIONS.
template <class T>
class Buffer {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = T const*;

  Buffer() = default;
  explicit Buffer(std::size_t count) { resize(count); }
  Buffer(std::initializer_list<T> items) { append({items.begin(), items.size()}); }
  Buffer(Buffer const& other) { append({other.data(), other.size()}); }
  Buffer(Buffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Buffer& operator=(Buffer const& other) {
    if (this != &other) assign({other.data(), other.size()});
    return *this;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    clear();
    memory_.free(alignof(T));
  }
  void swap(Buffer& other) noexcept { std::swap(memory_, other.memory_); }

  std::size_t size() const { return memory_.size; }
  bool empty() const { return memory_.size == 0; }
  T* data() { return static_cast<T*>(memory_.items); }
  T const* data() const { return static_cast<T const*>(memory_.items); }
  T* begin() { return data(); }
  T* end() { return data() + memory_.size; }
  T const* begin() const { return data(); }
  T const* end() const { return data() + memory_.size; }
  T& operator[](std::size_t i) {
    BufferMemory::check(i < memory_.size);
    return data()[i];
  }
  T const& operator[](std::size_t i) const {
    BufferMemory::check(i < memory_.size);
    return data()[i];
  }
  /// \throws std::out_of_range
  T const& at(std::size_t i) const {
    if (i >= memory_.size) throw std::out_of_range("sluice: an index behind the end of a list");
    return data()[i];
  }
  T& front() { return (*this)[0]; }
  T const& front() const { return (*this)[0]; }
  T& back() { return (*this)[memory_.size - 1]; }
  T const& back() const { return (*this)[memory_.size - 1]; }

  void reserve(std::size_t count) {
    if (count > memory_.capacity) grow(count);
  }
  void push_back(T item) {
    if (memory_.size == memory_.capacity) grow(memory_.size + 1);
    ::new (static_cast<void*>(end())) T(std::move(item));
    ++memory_.size;
  }
  T& emplace_back() {
    push_back(T{});
    return back();
  }
  /// Not of its own items.
  void append(std::span<T const> items) {
    reserve(memory_.size + items.size());
    if constexpr (plain) {
      if (!items.empty()) std::memcpy(static_cast<void*>(end()), items.data(), items.size_bytes());
      memory_.size += items.size();
    } else {
      for (std::size_t i = 0; i < items.size(); ++i, ++memory_.size) ::new (static_cast<void*>(end())) T(items[i]);
    }
  }
  void resize(std::size_t count) {
    if (count < memory_.size) return drop(count);
    reserve(count);
    for (; memory_.size < count; ++memory_.size) ::new (static_cast<void*>(end())) T{};
  }
  void resize(std::size_t count, T item) {  // a copy, as it may be one of its own
    if (count < memory_.size) return drop(count);
    reserve(count);
    for (; memory_.size < count; ++memory_.size) ::new (static_cast<void*>(end())) T(item);
  }
  /// Not of its own items.
  void assign(std::span<T const> items) {
    clear();
    append(items);
  }
  void assign(std::size_t count, T item) {
    clear();
    resize(count, std::move(item));
  }
  void pop_back() { drop(memory_.size - 1); }
  void clear() { drop(0); }
  T* insert(T const* before, T item) {
    auto const at = static_cast<std::size_t>(before - data());
    push_back(std::move(item));
    std::rotate(begin() + at, end() - 1, end());
    return begin() + at;
  }
  T* erase(T const* first, T const* last) {
    auto* const at = begin() + (first - data());
    if (first == last) return at;  // nothing is moved onto itself
    auto* const rest = std::move(begin() + (last - data()), end(), at);
    drop(static_cast<std::size_t>(rest - begin()));
    return at;
  }
  T* erase(T const* one) { return erase(one, one + 1); }

  friend bool operator==(Buffer const& a, Buffer const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  template <class Is>
  friend void erase_if(Buffer& items, Is const& is) {
    items.erase(std::remove_if(items.begin(), items.end(), is), items.end());
  }

 private:
  static constexpr bool plain = std::is_trivially_copyable_v<T>;

  void grow(std::size_t count) {
    static_assert(std::is_nothrow_move_constructible_v<T>);
    if constexpr (plain) {
      memory_.grow(count, sizeof(T), alignof(T));
    } else {
      BufferMemory more{.size = memory_.size};
      more.items = memory_.larger(count, sizeof(T), alignof(T), more.capacity);
      for (std::size_t i = 0; i < memory_.size; ++i)
        ::new (static_cast<void*>(static_cast<T*>(more.items) + i)) T(std::move(data()[i]));
      clear();
      memory_.free(alignof(T));
      memory_ = more;
    }
  }
  void drop(std::size_t count) {
    BufferMemory::check(count <= memory_.size);
    if constexpr (!std::is_trivially_destructible_v<T>) std::destroy(begin() + count, end());
    memory_.size = count;
  }

  BufferMemory memory_{};
};

/// First in, first out.
template <class T>
class Queue {
 public:
  std::size_t size() const { return items_.size() - gone_; }
  bool empty() const { return size() == 0; }
  T& operator[](std::size_t i) { return items_[gone_ + i]; }
  T& front() { return (*this)[0]; }
  void push_back(T item) { items_.push_back(std::move(item)); }
  void resize(std::size_t count) { items_.resize(gone_ + count); }
  /// O(1), amortised.
  void pop_front() {
    front() = T{};
    if (2 * ++gone_ >= items_.size()) items_.erase(items_.begin(), items_.begin() + gone_), gone_ = 0;
  }

 private:
  Buffer<T> items_;
  std::size_t gone_ = 0;  // of the items, the first ones
};

}  // namespace sluice::inline v0::detail
