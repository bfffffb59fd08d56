// SPDX-License-Identifier: Apache-2.0
/// \file
/// Assigns a slot to each hypothesis of a beam.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Assigns a slot to every hypothesis of `next` that continues. The first child of a parent stays in the parent's slot;
/// the others take the lowest free slots.
///
/// \param next    ranked; `from` is the parent's slot, `slot` (-1 so far) is written unless `ended`
/// \param holder  [slots]: the rank of the hypothesis in a slot, -1 = none; before: of the parents, after: of `next`
/// \param unused  the slots that became free
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
