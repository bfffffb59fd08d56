// SPDX-License-Identifier: Apache-2.0
/// \file
/// Makes a key of every score of a line, plain or perturbed, and reads the sorted perturbed ones.
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

/// Whether a row's keys are wanted.
template <class Format>
SLUICE_DEVICE bool wants_keys(SelectLaunch<Format> const& launch, std::int32_t row) {
  auto const& query = launch.selection.queries[row];
  return (launch.draws ? query.draws() : query.cuts()) && launch.valid(row);
}

/// Calls use(place, key) for the thread's places of a line. `parts` blocks share a line.
template <class Format, class Block, class Use>
SLUICE_DEVICE void each_select_key(Block& block, SelectLaunch<Format> const& launch, std::int32_t row,
                                   std::uint32_t part, std::uint32_t parts, Use const& use) {
  constexpr std::uint32_t wide = Format::wide;
  SelectReader<Format> const reader(block, launch, row);
  auto const noise = launch.draws ? launch.selection.queries[row].noise : 0;
  auto const norm = reader.norm();
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
      if (noise == 0) {
        use(place, make_key(x[c], place));
      } else {
        // Uses the listed log-probability, so that drawing from the full list gives the same result.
        auto const token = launch.line.tokens != nullptr ? launch.line.tokens[place] : static_cast<Token>(place);
        auto const value = double_sum(static_cast<double>(norm.rounded(x[c])), gumbel_number(noise, token));
        use(place, x[c] > minus_infinity ? make_wide_key(value, place, launch.place_bits) : no_key);
      }
    }
  }
}

/// Makes the keys of a line, and counts them.
template <class Format, class Block>
SLUICE_DEVICE void write_select_keys(Block& block, SelectLaunch<Format> const& launch, std::int32_t row,
                                     std::uint32_t part, std::uint32_t parts) {
  auto const wanted = wants_keys(launch, row);
  if (part == 0 && block.thread() == 0) launch.sizes[row] = wanted ? launch.line.size : 0;
  if (!wanted) return;
  auto* const keys = launch.keys + std::int64_t{row} * launch.line.size;
  each_select_key(block, launch, row, part, parts, [&](std::uint32_t place, Key key) { keys[place] = key; });
}

/// Makes the best key of a part of a line: SelectLaunch::parts.
template <class Format, class Block>
SLUICE_DEVICE void write_best_key(Block& block, ThresholdMemory<Block::threads>& memory,
                                  SelectLaunch<Format> const& launch, std::int32_t row, std::uint32_t part) {
  if (!wants_keys(launch, row)) return;
  auto best = no_key;
  each_select_key(block, launch, row, part, static_cast<std::uint32_t>(launch.parts),
                  [&](std::uint32_t, Key key) { best = key > best ? key : best; });
  best = best_of_block(block, memory, best);
  if (block.thread() == 0) launch.keys[std::int64_t{row} * launch.parts + part] = best;
}

/// The tokens drawn by noise, from the sorted keys: the line's list or, if other tokens are listed too, one bit per
/// place.
template <class Format, class Block>
SLUICE_DEVICE void write_draws(Block& block, SelectLaunch<Format> const& launch, std::int32_t row) {
  auto const& query = launch.selection.queries[row];
  if (!query.draws() || !launch.valid(row)) return;
  SelectReader<Format> const reader(block, launch, row);
  auto const norm = reader.norm();
  auto const* const sorted = launch.sorted_of(row);
  auto limit = count_reaching(sorted, launch.sizes[row], no_key + 1);
  limit = query.best < limit ? query.best : limit;
  auto const list = !query.selects();
  if (list && block.thread() == 0) launch.selection.results[row].count = limit;
  if (list && limit > query.room) limit = query.room;
  for (int i = block.thread(); i < limit; i += Block::threads) {
    auto const place = place_of_wide(sorted[i], launch.place_bits);
    if (list) {
      auto const token = launch.line.tokens != nullptr ? launch.line.tokens[place] : static_cast<Token>(place);
      launch.selection.best[query.first + i] = {token, norm.rounded(reader.score(block, place))};
    } else {
      block.set(launch.drawn_of(row) + place / 32, 1u << (place % 32));
    }
  }
}

}  // namespace sluice::inline v0::cuda::detail
