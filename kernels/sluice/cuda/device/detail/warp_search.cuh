// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search by all lanes of a warp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// The first of 0 .. count - 1 that is not below what is looked for; `count` where there is none. All lanes of a warp ask together:
/// each looks at another one, so that 32 times as few are left, and 2,000 take three looks one after the other.
/// \param below  of a number: whether it is; those that are come first
template <class Block, class Below>
SLUICE_DEVICE std::int32_t first_of_warp(Block& block, std::int32_t count, Below const& below) {
  std::int32_t begin = 0, end = count;
  SLUICE_ROLLED
  while (begin < end) {
    auto const step = (end - begin + 31) / 32;
    auto const at = begin + step * block.lane() + step - 1;
    begin += step * count_bits(block.ballot(at < end && below(at)));
    if (begin + step - 1 < end) end = begin + step - 1;
  }
  return begin;
}

}  // namespace sluice::inline v0::cuda
