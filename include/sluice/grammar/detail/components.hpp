// SPDX-License-Identifier: Apache-2.0
/// \file
/// Strongly connected components of a graph.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The nodes of a graph that reach each other (Tarjan 1972); those that others reach come before these.
/// \param next  [node]: where it leads
SLUICE_LAZY std::vector<std::vector<std::int32_t>> components(std::vector<std::vector<std::int32_t>> const& next) {
  auto const at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  std::vector<std::vector<std::int32_t>> out;
  std::vector<std::int32_t> number(next.size(), -1), low(next.size()), stack;
  std::vector<std::uint8_t> open(next.size());
  std::vector<std::pair<std::int32_t, std::size_t>> path;
  std::int32_t count = 0;
  auto const enter = [&](std::int32_t node) {
    number[at(node)] = low[at(node)] = count++, open[at(node)] = 1;
    stack.push_back(node), path.emplace_back(node, 0);
  };
  for (std::size_t r = 0; r < next.size(); ++r) {
    if (number[r] < 0) enter(static_cast<std::int32_t>(r));
    while (!path.empty()) {
      auto const node = path.back().first;
      if (path.back().second < next[at(node)].size()) {
        auto const to = next[at(node)][path.back().second++];
        if (number[at(to)] < 0) enter(to);
        else if (open[at(to)] != 0) low[at(node)] = (std::min)(low[at(node)], number[at(to)]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[at(path.back().first)] = (std::min)(low[at(path.back().first)], low[at(node)]);
      if (low[at(node)] != number[at(node)]) continue;
      out.emplace_back();
      do {
        out.back().push_back(stack.back()), open[at(stack.back())] = 0;
        stack.pop_back();
      } while (out.back().back() != node);
    }
  }
  return out;
}

}  // namespace sluice::inline v0::detail
