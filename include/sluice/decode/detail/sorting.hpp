// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sorts sentences and requests. Independent of the decoder's types, so compiled once for many decoders.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Sorts `indices` by their keys, which are all different.
SLUICE_LAZY void sort_by(std::vector<std::int32_t>& indices, std::span<std::int64_t const> keys) {
  std::sort(indices.begin(), indices.end(), [keys](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
}

/// For models that are not ragged: keeps those of `indices` that can share a step. These are as long as the shortest, with the
/// same block length.
SLUICE_LAZY void keep_alike(std::vector<std::int32_t>& indices, std::span<Live const> live) {
  auto const at = [live](std::int32_t i) -> Live const& { return live[static_cast<std::size_t>(i)]; };
  auto first = at(indices.front());
  for (auto const i : indices)
    if (at(i).length < first.length) first = at(i);
  std::erase_if(indices, [&](std::int32_t i) { return at(i).length != first.length || at(i).block != first.block; });
}

/// The indices of `lengths`, longest first; equal lengths stay in their order.
SLUICE_LAZY void longest_first(std::span<std::int32_t const> lengths, Buffer<std::size_t>& order) {
  order.resize(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [lengths](std::size_t a, std::size_t b) {
    return lengths[a] != lengths[b] ? lengths[a] > lengths[b] : a < b;
  });
}

}  // namespace sluice::inline v0::detail
