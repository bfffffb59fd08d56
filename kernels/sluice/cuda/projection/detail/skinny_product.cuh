// SPDX-License-Identifier: Apache-2.0
/// \file
/// Logits of the active tokens for few lines, without copying weights; only the device knows the number of tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/device/detail/warp_search.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr std::int32_t most_skinny_lines = 16;

/// All rows begin at multiples of 16 bytes, and `depth` is a multiple of Format::wide.
template <class Format>
struct SkinnyLaunch {
  typename Format::Bits const* weights = nullptr;  ///< [V, depth]
  std::int64_t weight_stride = 0;
  typename Format::Bits const* hidden = nullptr;  ///< [lines, depth]
  std::int64_t hidden_stride = 0;
  std::int32_t lines = 0;
  std::int32_t depth = 0;
  Token const* tokens = nullptr;        ///< those that are active for any line, ascending
  UnionResult const* listed = nullptr;  ///< how many these are
  std::int32_t size = 0;                ///< V
  ActiveMasks active{};                 ///< which of them are active for which line
  float const* bias = nullptr;          ///< [V], or none
  float* logits = nullptr;  ///< [lines, columns], of tokens first .. first + columns - 1; others' are not written
  std::int64_t stride = 0;
  std::int32_t first = 0, columns = 0;
  std::int32_t blocks = 1;                            ///< that share the tokens, at most
  std::int32_t matrix_lines = most_skinny_lines + 1;  ///< from so many lines on, matrix units multiply where they can

  /// Whether MatrixProduct is used, not skinny_product().
  SLUICE_HOST_DEVICE bool on_matrix_units() const {
    return sizeof(typename Format::Bits) == 2 && lines >= matrix_lines;
  }
  /// Estimates, not measured yet: four times as many blocks as run at once; on matrix units as many as run at once, so
  /// that tokens are spread evenly.
  void share_among(std::int32_t processors) { blocks = processors * (on_matrix_units() ? 2 : 8); }
};

/// A range of a list.
struct Listed {
  std::int32_t begin, end;
};

/// The launch's tokens in the list. All lanes of a warp call it together.
template <class Format, class Block>
SLUICE_DEVICE Listed listed_here(Block& block, SkinnyLaunch<Format> const& launch) {
  auto const below = [&](Token bound) {
    return first_of_warp(block, launch.listed->count,
                         [&](std::int32_t i) { return block.read(launch.tokens + i) < bound; });
  };
  Listed here{0, launch.listed->count};
  if (launch.first > 0) here.begin = below(launch.first);
  if (launch.first + launch.columns < launch.size) here.end = below(launch.first + launch.columns);
  return here;
}

/// A warp takes some tokens at a time and reads their weights once for all lines; its lanes alternate along the depth.
/// A logit's order of summation does not depend on the number of lines and tokens. A logit is written only if its token
/// is active for its line.
/// \tparam most  the most lines
template <class Format, int most, class Block>
SLUICE_DEVICE void skinny_product(Block& block, SkinnyLaunch<Format> const& launch, std::int32_t number,
                                  std::int32_t blocks) {
  constexpr int wide = Format::wide;
  constexpr int at_once = most <= 4 ? 4 : 2;  // as many tokens as the registers hold
  auto const lane = block.lane();
  auto const [begin, end] = listed_here(block, launch);
  for (auto first = begin + (number * Block::warps + block.warp()) * at_once; first < end;
       first += blocks * Block::warps * at_once) {
    typename Format::Bits const* rows[at_once];
    SLUICE_UNROLL
    for (int t = 0; t < at_once; ++t) {
      auto const at = first + t < end ? first + t : end - 1;
      rows[t] = launch.weights + launch.tokens[at] * launch.weight_stride;
    }
    float sums[at_once][most] = {};
    SLUICE_ROLLED
    for (int c = lane * wide; c < launch.depth; c += 32 * wide) {
      float w[at_once][wide];
      SLUICE_UNROLL
      for (int t = 0; t < at_once; ++t) unpack<Format>(block.read16(rows[t] + c), w[t]);
      SLUICE_UNROLL
      for (int line = 0; line < most; ++line) {
        if (line >= launch.lines) break;
        float h[wide];
        unpack<Format>(block.read16(launch.hidden + line * launch.hidden_stride + c), h);
        SLUICE_UNROLL
        for (int t = 0; t < at_once; ++t) {
          SLUICE_UNROLL
          for (int i = 0; i < wide; ++i) sums[t][line] = __builtin_fmaf(w[t][i], h[i], sums[t][line]);
        }
      }
    }
    SLUICE_UNROLL
    for (int t = 0; t < at_once; ++t) {
      SLUICE_UNROLL
      for (int line = 0; line < most; ++line) {
        auto sum = sums[t][line];
        SLUICE_UNROLL
        for (int distance = 16; distance > 0; distance /= 2) sum += block.exchange(sum, distance);
        if (lane != (t * most + line) % 32 || line >= launch.lines || first + t >= end) continue;
        auto const token = launch.tokens[first + t];
        if (!launch.active.has(launch.active.deciding(line), token)) continue;
        auto const bias = launch.bias != nullptr ? launch.bias[token] : 0.0f;
        launch.logits[line * launch.stride + token - launch.first] = sum + bias;
      }
    }
  }
}

}  // namespace sluice::inline v0::cuda::detail
