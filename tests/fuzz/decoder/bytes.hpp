// SPDX-License-Identifier: Apache-2.0
/// \file
/// A byte string as a program: what is drawn, one byte after the other; zeros behind its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace sluice::test {

class Bytes {
 public:
  Bytes(std::uint8_t const* data, std::size_t size) : left_(data, size) {}

  bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    auto const first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  /// In [0, n).
  std::int32_t below(std::int32_t n) { return byte() % n; }
  /// In [low, high].
  std::int32_t between(std::int32_t low, std::int32_t high) { return low + below(high - low + 1); }
  bool chance(std::int32_t of) { return below(of) == of - 1; }  // a zero byte is the usual
  template <class X>
  X pick(std::initializer_list<X> values) {
    return values.begin()[below(static_cast<std::int32_t>(values.size()))];
  }
  template <class E>
  E one_of(std::int32_t count) {
    return static_cast<E>(below(count));
  }

 private:
  std::span<std::uint8_t const> left_;
};

}  // namespace sluice::test
