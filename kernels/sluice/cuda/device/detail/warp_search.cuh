// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search by all lanes of a warp.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/bits.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The first of 0 .. count - 1 for which `below` is false; `count` if there is none. All lanes of a warp call it
/// together and test one number each, so each round leaves 1/32 of the range; 2,000 numbers take three rounds.
/// \param below  a predicate that is true for a prefix of the numbers
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

}  // namespace sluice::inline v0::cuda::detail
