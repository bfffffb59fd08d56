// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the edits of a line that affect a range of places, without reading the others.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/warp_search.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// A range of a line's edits, by index.
struct EditRange {
  std::int32_t begin = 0, end = 0;
  SLUICE_HOST_DEVICE bool some() const { return begin < end; }
};

/// The place that an edit names: a negative token sorts after all others.
template <class Block>
SLUICE_DEVICE std::uint32_t edited_place(Block& block, Edit const* edits, std::int32_t i) {
  return static_cast<std::uint32_t>(block.read(&edits[i].token));
}

/// The first of some edits, in ascending order, whose place is not below `place`; their end if there is none.
template <class Block>
SLUICE_DEVICE std::int32_t first_edit(Block& block, Edit const* edits, EditRange among, std::uint32_t place) {
  while (among.some()) {
    auto const middle = among.begin + (among.end - among.begin) / 2;
    if (edited_place(block, edits, middle) < place) among.begin = middle + 1;
    else among.end = middle;
  }
  return among.begin;
}

/// The same for `count` edits; all lanes of a warp call it together.
template <class Block>
SLUICE_DEVICE std::int32_t first_edit_of_warp(Block& block, Edit const* edits, std::int32_t count,
                                              std::uint32_t place) {
  return first_of_warp(block, count, [&](std::int32_t i) { return edited_place(block, edits, i) < place; });
}

}  // namespace sluice::inline v0::cuda::detail
