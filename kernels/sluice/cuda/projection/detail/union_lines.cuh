// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which lines of a step share a union.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/projection/clustered_options.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// The lines of each union of a step. Allocates nothing once it has seen its largest step.
struct UnionLines {
  /// Assigns lines to unions by groups.
  void share(std::size_t lines, std::span<Group const> groups, ClusteredOptions::Union unite) {
    union_of.assign(lines, -1), first.clear(), without = 0;
    auto const batch = unite == ClusteredOptions::Union::batch;
    if (batch) {
      if (std::all_of(groups.begin(), groups.end(), [](Group const& g) { return g.direction == 0 || g.lines == 0; })) {
        std::fill(union_of.begin(), union_of.end(), 0);
        first.push_back(0);
      } else {
        without = 1;
      }
    } else if (groups.empty()) {
      for (std::size_t i = 0; i < lines; ++i) union_of[i] = static_cast<std::int32_t>(i), first.push_back(union_of[i]);
    } else {
      std::size_t line = 0;
      for (auto const& group : groups) {
        auto const count = static_cast<std::size_t>(group.lines);
        if (count > 0 && group.direction == 0) {
          std::fill_n(union_of.begin() + static_cast<std::ptrdiff_t>(line), count,
                      static_cast<std::int32_t>(first.size()));
          first.push_back(static_cast<std::int32_t>(line));
        } else if (count > 0) {
          ++without;
        }
        line += count;
      }
    }
    first.push_back(static_cast<std::int32_t>(lines));
  }

  /// For each line; -1: all tokens are active for it.
  std::vector<std::int32_t> union_of;
  /// The first line of each union, followed by the number of lines.
  std::vector<std::int32_t> first;
  std::size_t without = 0;  ///< sentences without clusters, or a batch with any

  std::size_t unions() const { return first.size() - 1; }
};

}  // namespace sluice::inline v0::cuda::detail
