// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks the rows of a step for a cache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// \param cache      its name, for messages
/// \param length     length(slot): the slot's current length
/// \param positions  the capacity of a slot
/// \param read       scratch, overwritten
/// \throws std::invalid_argument  for rows that break the rules of Row, or that need more positions than there are
template <class Length>
void check_rows(char const* cache, std::span<Row const> rows, Length const& length, std::int32_t positions,
                std::vector<Slot>& read) {
  auto const demand = [cache](bool condition, char const* name, auto value, char const* rule) {
    if (!condition) require(false, std::string(cache) + ": row." + name, value, rule);
  };
  read.clear();
  Slot last = -1;
  for (auto const& row : rows) {
    demand(row.from >= 0, "from", row.from, "must not be negative");
    demand(row.to > last, "to", row.to, "must ascend from 0");
    demand(row.length >= 0 && row.length <= length(row.from), "length", row.length,
           "must be in [0, length of the slot]");
    demand(std::ssize(row.tokens) <= positions - row.length, "tokens.size()", row.tokens.size(),
           "is more than there are positions for");
    demand(!row.tokens.empty(), "tokens.size()", row.tokens.size(), "must be at least 1");
    last = row.to;
    read.push_back(row.from);
  }
  std::ranges::sort(read);
  for (auto const& row : rows)
    demand(row.from == row.to || !std::ranges::binary_search(read, row.to), "to", row.to,
           "is read by a row of the step");
}

}  // namespace sluice::inline v0::cuda::detail
