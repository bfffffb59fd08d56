// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which slot each hypothesis of a beam goes on in.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Gives every hypothesis of `next` that goes on a slot: the first child of a parent stays where its parent was, the
/// others take the lowest slots in which nobody stays.
///
/// \param next    ranked; `from` is the parent's slot, `slot` (-1 so far) is written unless `ended`
/// \param holder  [slots]: the rank of who holds a slot, -1 = nobody; before: of the parents, after: of `next`
/// \param unused  the slots that lost their holder
template <class Entry>
void place(std::span<Entry> next, std::vector<std::int32_t>& holder, std::vector<Slot>& unused) {
  unused.clear();
  for (std::size_t slot = 0; slot < holder.size(); ++slot)
    if (holder[slot] >= 0) unused.push_back(static_cast<Slot>(slot));
  std::fill(holder.begin(), holder.end(), -1);
  auto const take = [&](std::size_t rank, std::size_t slot) {
    next[rank].slot = static_cast<Slot>(slot), holder[slot] = static_cast<std::int32_t>(rank);
  };
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    auto const from = static_cast<std::size_t>(next[rank].from);
    if (!next[rank].ended && holder[from] < 0) take(rank, from);
  }
  std::size_t free = 0;
  for (std::size_t rank = 0; rank < next.size(); ++rank)
    if (!next[rank].ended && next[rank].slot < 0) {
      while (holder[free] >= 0) ++free;
      take(rank, free);
    }
  std::erase_if(unused, [&](Slot slot) { return holder[static_cast<std::size_t>(slot)] >= 0; });
}

}  // namespace sluice::inline v0::detail
