// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers that several holders share.
#pragma once

#include <sluice/language.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Numbers from 0, the lowest free one first, each with a count of its holders.
class Numbered {
 public:
  /// A free number, with one holder.
  SLUICE_LAZY std::int32_t take() {
    auto i = lowest_;
    while (i < holders_.size() && holders_[i] != 0) ++i;
    if (i == holders_.size()) holders_.push_back(0);
    holders_[i] = 1, lowest_ = i + 1;
    return static_cast<std::int32_t>(i);
  }
  void share(std::int32_t number) { ++holders_[static_cast<std::size_t>(number)]; }
  SLUICE_LAZY void drop(std::int32_t number) {
    auto const i = static_cast<std::size_t>(number);
    if (--holders_[i] > 0) return;
    freed_.push_back(number);
    if (i < lowest_) lowest_ = i;
  }
  /// Those that have lost their last holder since the last call of forget_freed().
  std::span<std::int32_t const> freed() const { return freed_; }
  void forget_freed() { freed_.clear(); }

 private:
  std::vector<std::int32_t> holders_;  // [number]
  std::vector<std::int32_t> freed_;
  std::size_t lowest_ = 0;  // no lower number is free
};

}  // namespace sluice::inline v0::detail
