// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines over a union in the terms of its lines: what is not a line's own, and places instead of tokens.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/device/host_device.cuh>
#include <sluice/cuda/device/key.cuh>
#include <sluice/cuda/projection/active_union.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda {

/// Logits of which some are to be taken away.
struct MaskLaunch {
  float* logits = nullptr;  ///< [lines, columns]
  std::int64_t stride = 0;
  std::int32_t lines = 0, columns = 0;
  std::int32_t first = 0;                  ///< the place of column 0
  Token const* tokens = nullptr;           ///< of every place; nullptr: the place itself
  std::int32_t const* union_of = nullptr;  ///< [lines]; -1: all tokens are active
  std::uint32_t const* masks = nullptr;    ///< [unions, words]
  std::int32_t words = 0;
};

/// One logit: -infinity where its token is not active for its line.
SLUICE_DEVICE void mask_logit(MaskLaunch const& launch, std::int32_t line, std::int32_t column) {
  auto const u = launch.union_of[line];
  if (u < 0) return;
  auto const place = launch.first + column;
  auto const token = static_cast<std::uint32_t>(launch.tokens != nullptr ? launch.tokens[place] : place);
  if (!has_bit(launch.masks + std::int64_t{u} * launch.words, token))
    launch.logits[line * launch.stride + column] = minus_infinity;
}

/// Edits and probes that name tokens.
struct PlaceLaunch {
  Token const* tokens = nullptr;  ///< ascending
  std::int32_t count = 0;
  std::int32_t edit_count = 0, probe_count = 0;
  Edit const* edits = nullptr;
  Token const* probes = nullptr;
  Edit* placed_edits = nullptr;
  Token* placed_probes = nullptr;
};

/// The place of a token; -1 where it is not among them.
SLUICE_DEVICE Token place_in(Token const* tokens, std::int32_t count, Token token) {
  std::int32_t first = 0, last = count;
  while (first < last) {
    auto const middle = first + (last - first) / 2;
    if (tokens[middle] < token) first = middle + 1;
    else last = middle;
  }
  return first < count && tokens[first] == token ? first : -1;
}

/// Edit `i`, or probe `i - edit_count`, with a place for its token.
SLUICE_DEVICE void place_one(PlaceLaunch const& launch, std::int32_t i) {
  if (i < launch.edit_count) {
    auto edit = launch.edits[i];
    edit.token = place_in(launch.tokens, launch.count, edit.token);
    launch.placed_edits[i] = edit;
  } else {
    i -= launch.edit_count;
    launch.placed_probes[i] = place_in(launch.tokens, launch.count, launch.probes[i]);
  }
}

}  // namespace sluice::inline v0::cuda
