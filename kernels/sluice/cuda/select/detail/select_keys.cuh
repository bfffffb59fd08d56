// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes a key of every score of a line, plain, perturbed or both.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/detail/selection.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/noise.cuh>
#include <sluice/cuda/select/detail/select_reader.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Calls use(place, score) for the thread's places of a line. `parts` blocks share a line.
template <class Format, class Block, class Use>
SLUICE_DEVICE void each_select_score(Block& block, SelectLaunch<Format> const& launch,
                                     SelectReader<Format> const& reader, std::uint32_t part, std::uint32_t parts,
                                     Use const& use) {
  constexpr std::uint32_t wide = Format::wide;
  auto const size = static_cast<std::uint32_t>(launch.line.size);
  auto const step = parts * static_cast<std::uint32_t>(Block::threads);
  auto group = part * static_cast<std::uint32_t>(Block::threads) + static_cast<std::uint32_t>(block.thread());
  for (; group * wide < size; group += step) {
    float x[wide];
    reader.scores(block, group, x);
    SLUICE_UNROLL
    for (std::uint32_t c = 0; c < wide; ++c) {
      auto const place = group * wide + c;
      if (place >= size) break;
      use(place, x[c]);
    }
  }
}

/// The key of a perturbed value. It is that of the listed log-probability, so that drawing from the full list gives the
/// same result.
template <class Format>
SLUICE_DEVICE Key perturbed_key(SelectLaunch<Format> const& launch, std::uint64_t noise, DoubleNorm const& norm,
                                std::uint32_t place, float score) {
  auto const value = double_sum(static_cast<double>(norm.rounded(score)), gumbel_number(noise, launch.token(place)));
  return score > minus_infinity ? make_wide_key(value, place, launch.place_bits) : no_key;
}

/// Makes the keys of a line: of both kinds, from one look at its scores.
template <class Format, class Block>
SLUICE_DEVICE void write_select_keys(Block& block, SelectLaunch<Format> const& launch, std::int32_t row,
                                     std::uint32_t part, std::uint32_t parts) {
  auto const cuts = launch.cuts(row), draws = launch.draws(row);
  if (!(cuts || draws) || !launch.valid(row)) return;
  SelectReader<Format> const reader(block, launch, row);
  auto const noise = draws ? launch.selection.queries[row].noise : 0;
  auto const norm = reader.norm();
  auto *const keys = launch.row_of(launch.keys, row), *const perturbed = launch.row_of(launch.perturbed, row);
  each_select_score(block, launch, reader, part, parts, [&](std::uint32_t place, float score) {
    if (cuts) keys[place] = make_key(score, place);
    if (draws) perturbed[place] = perturbed_key(launch, noise, norm, place, score);
  });
}

/// Makes the best perturbed key of a part of a line: SelectLaunch::parts.
template <class Format, class Block>
SLUICE_DEVICE void write_best_key(Block& block, ThresholdMemory<Block::threads>& memory,
                                  SelectLaunch<Format> const& launch, std::int32_t row, std::uint32_t part) {
  if (!launch.draws(row) || !launch.valid(row)) return;
  SelectReader<Format> const reader(block, launch, row);
  auto const noise = launch.selection.queries[row].noise;
  auto const norm = reader.norm();
  auto best = no_key;
  each_select_score(block, launch, reader, part, static_cast<std::uint32_t>(launch.parts),
                    [&](std::uint32_t place, float score) {
                      auto const key = perturbed_key(launch, noise, norm, place, score);
                      best = key > best ? key : best;
                    });
  best = best_of_block(block, memory, best);
  if (block.thread() == 0) launch.perturbed[std::int64_t{row} * launch.parts + part] = best;
}

}  // namespace sluice::inline v0::cuda::detail
