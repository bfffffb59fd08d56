// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sorts edits into the order that kernels expect.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::cuda {

/// Copies a line's edits in ascending order of tokens (negative ones last), keeping the order of several edits of one
/// token, as LineTask::ascending promises. Sorted lists, which most rules make, are copied unchanged; others take one
/// radix pass per 11 bits of the largest token. Needs no device. Allocates nothing once it has seen its longest list.
class EditOrder {
 public:
  void copy(std::span<Edit const> edits, Edit* to) {
    if (std::ranges::is_sorted(edits, {}, place)) {
      std::ranges::copy(edits, to);
      return;
    }
    order_.resize(edits.size()), next_.resize(edits.size());
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < edits.size(); ++i) {
      all |= place(edits[i]);
      order_[i] = static_cast<std::uint32_t>(i);
    }
    for (unsigned shift = 0; shift < 32 && all >> shift != 0; shift += bits) sort_by(edits, shift);
    for (auto const i : order_) *to++ = edits[i];
  }

 private:
  static constexpr unsigned bits = 11;
  static std::uint32_t place(Edit const& edit) { return static_cast<std::uint32_t>(edit.token); }

  /// A stable sort by one digit.
  void sort_by(std::span<Edit const> edits, unsigned shift) {
    auto const digit = [&](std::uint32_t i) { return place(edits[i]) >> shift & ((1u << bits) - 1); };
    begin_.fill(0);
    for (auto const i : order_) ++begin_[digit(i)];
    std::uint32_t sum = 0;
    for (auto& first : begin_) sum += std::exchange(first, sum);
    for (auto const i : order_) next_[begin_[digit(i)]++] = i;
    std::swap(order_, next_);
  }

  std::vector<std::uint32_t> order_, next_;  // indices of edits
  std::array<std::uint32_t, std::size_t{1} << bits> begin_{};
};

}  // namespace sluice::inline v0::cuda
