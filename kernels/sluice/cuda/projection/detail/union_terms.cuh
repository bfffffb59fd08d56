// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts lines over a union to the lines' own terms: masks inactive logits, and replaces tokens by places.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Logits, some of which must be masked.
struct MaskLaunch {
  float* logits = nullptr;  ///< [lines, columns]
  std::int64_t stride = 0;
  std::int32_t lines = 0, columns = 0;
  std::int32_t first = 0;         ///< the place of column 0
  Token const* tokens = nullptr;  ///< of every place; nullptr: the place itself
  ActiveMasks active{};
};

/// Sets one logit to -infinity if its token is not active for its line.
SLUICE_DEVICE void mask_logit(MaskLaunch const& launch, std::int32_t line, std::int32_t column) {
  auto const u = launch.active.deciding(line);
  if (u < 0) return;
  auto const place = launch.first + column;
  if (!launch.active.has(u, launch.tokens != nullptr ? launch.tokens[place] : place))
    launch.logits[line * launch.stride + column] = minus_infinity;
}

/// Lines to fill with -infinity.
struct FillLaunch {
  float* logits = nullptr;  ///< [lines, columns], at multiples of 16 bytes
  std::int64_t stride = 0;  ///< a multiple of 4, and at least the columns rounded up to one
  std::int32_t lines = 0, columns = 0;
  SLUICE_HOST_DEVICE std::int32_t groups() const { return (columns + 3) / 4; }  ///< of 16 bytes, in a line
};

/// Fills one group of a line.
template <class Block>
SLUICE_DEVICE void fill_group(Block& block, FillLaunch const& launch, std::int32_t line, std::int32_t group) {
  constexpr auto none = Float32::minus_infinity;
  block.write16(launch.logits + line * launch.stride + std::int64_t{4} * group, {{none, none, none, none}});
}

/// Edits and probes that name tokens, and queries that name sets.
struct PlaceLaunch {
  Token const* tokens = nullptr;  ///< ascending
  std::int32_t count = 0;
  std::int32_t edit_count = 0, probe_count = 0;
  Edit const* edits = nullptr;
  Token const* probes = nullptr;
  Edit* placed_edits = nullptr;
  Token* placed_probes = nullptr;
  LineQuery const* queries = nullptr;
  LineQuery* placed_queries = nullptr;
  std::int32_t query_count = 0;
  SLUICE_HOST_DEVICE std::int32_t all() const { return edit_count + probe_count + query_count; }
};

/// The place of a token; if it is not among them, that of the next one, or `count`. A negative token sorts after all
/// others.
SLUICE_DEVICE Token place_in(Token const* tokens, std::int32_t count, Token token) {
  if (token < 0) return count;
  std::int32_t first = 0, last = count;
  while (first < last) {
    auto const middle = first + (last - first) / 2;
    if (tokens[middle] < token) first = middle + 1;
    else last = middle;
  }
  return first;
}

/// Replaces the token of edit `i`, or of probe `i - edit_count`, by its place; after these, removes the sets of
/// queries. An edit of an inactive token becomes one without effect, at the next place, which keeps edits in order.
/// Such a probe becomes -1.
SLUICE_DEVICE void place_one(PlaceLaunch const& launch, std::int32_t i) {
  auto const has = [&](Token place, Token token) { return place < launch.count && launch.tokens[place] == token; };
  if (i < launch.edit_count) {
    auto edit = launch.edits[i];
    auto const place = place_in(launch.tokens, launch.count, edit.token);
    if (has(place, edit.token)) edit.token = place;
    else edit = {place, -0.0f, 1};  // x + -0 is x for every x
    launch.placed_edits[i] = edit;
  } else if (i >= launch.edit_count + launch.probe_count) {
    i -= launch.edit_count + launch.probe_count;
    auto query = launch.queries[i];
    query.shortlist = query.only = -1;
    launch.placed_queries[i] = query;
  } else {
    i -= launch.edit_count;
    auto const token = launch.probes[i], place = place_in(launch.tokens, launch.count, token);
    launch.placed_probes[i] = has(place, token) ? place : -1;
  }
}

}  // namespace sluice::inline v0::cuda::detail
