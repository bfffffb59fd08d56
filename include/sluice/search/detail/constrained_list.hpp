// SPDX-License-Identifier: Apache-2.0
/// \file
/// The n-best list of a constrained search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/search/detail/beam_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::detail {

/// A hypothesis and the number of its constraints that are met.
struct Listed {
  BeamState::Ended ended;
  std::int32_t met;
  bool complete;
};

/// Complete ones before incomplete ones, finished ones before live ones; complete ones by score, incomplete ones by
/// constraints met.
inline bool listed_before(Listed const& x, Listed const& y) {
  if (x.complete != y.complete) return x.complete;
  if (x.ended.alive != y.ended.alive) return y.ended.alive;
  if (!x.complete && x.met != y.met) return x.met > y.met;
  return x.ended.score != y.ended.score ? x.ended.score > y.ended.score : x.ended.order < y.ended.order;
}

/// The n best in order: only complete ones, or the best incomplete one if there are none, unless `incomplete` ones are
/// requested.
SLUICE_LAZY void sort_and_cut(Buffer<Listed>& list, std::int32_t n_best, bool incomplete) {
  std::sort(list.begin(), list.end(), listed_before);
  auto count = (std::min)(list.size(), static_cast<std::size_t>(n_best));
  if (!incomplete) {
    auto const whole = std::count_if(list.begin(), list.end(), [](Listed const& one) { return one.complete; });
    count = (std::min)(count, std::max<std::size_t>(static_cast<std::size_t>(whole), 1));
  }
  list.resize(count);
}

}  // namespace sluice::inline v0::detail
