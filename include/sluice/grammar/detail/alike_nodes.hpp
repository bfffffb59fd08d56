// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups the nodes of an automaton that read short texts alike.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/interner.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// For each node, the first node that reads all texts of up to `depth` bytes in the same way. In a count of up to a
/// hundred characters, all nodes but the last ones are alike. (Partition refinement, Moore 1956, stopped early.)
inline std::vector<std::int32_t> alike_nodes(Automaton const& a, std::int32_t depth) {
  auto const nodes = static_cast<std::size_t>(a.nodes());
  std::vector<std::int32_t> of(nodes), next(nodes);
  for (std::size_t n = 0; n < nodes; ++n) of[n] = a.all[n].end ? 1 : 0;
  std::vector<Interner::Pair> looks;
  std::int32_t before = 0;
  for (std::int32_t round = 0; round < depth; ++round) {
    Interner numbers;
    for (std::int32_t n = 0; n < a.nodes(); ++n) {
      looks.assign(1, {a.end(n) ? 1 : 0, 0});
      for (auto const& edge : a.bytes(n))
        looks.push_back({edge.first << 8 | edge.last, of[static_cast<std::size_t>(edge.to)]});
      for (auto const& edge : a.calls(n)) looks.push_back({-1 - edge.rule, of[static_cast<std::size_t>(edge.to)]});
      next[static_cast<std::size_t>(n)] = numbers.intern(looks);
    }
    std::swap(of, next);
    if (numbers.size() == before) break;
    before = numbers.size();
  }
  std::vector<std::int32_t> first(nodes, -1);
  for (std::size_t n = 0; n < nodes; ++n) {
    auto& one = first[static_cast<std::size_t>(of[n])];
    if (one < 0) one = static_cast<std::int32_t>(n);
    next[n] = one;
  }
  return next;
}

}  // namespace sluice::inline v0::detail
