// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lists of any length: turns every score of a line into a key, and the best keys into the list.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The arguments of both programs; `line.k` is the longest list wanted, and `line.totals` and `line.results` are
/// filled.
template <class Format>
struct OrderLaunch {
  LineLaunch<Format> line{};
  Key* keys = nullptr;   ///< [rows, V]
  Key* spare = nullptr;  ///< [rows, V]: for lists that are too long for a block's shared memory
};

/// Makes the keys of a line as seen by the selection. `parts` blocks share a line.
template <class Format, class Block>
SLUICE_DEVICE void write_keys(Block& block, OrderLaunch<Format> const& launch, std::int32_t row, std::uint32_t part,
                              std::uint32_t parts) {
  constexpr std::uint32_t wide = Format::wide;
  LineReader<Format> const reader(launch.line, row);
  auto const size = static_cast<std::uint32_t>(launch.line.size);
  auto* const keys = launch.keys + std::int64_t{row} * launch.line.size;
  auto const step = parts * static_cast<std::uint32_t>(Block::threads);
  auto group = part * static_cast<std::uint32_t>(Block::threads) + static_cast<std::uint32_t>(block.thread());
  for (; group * wide < size; group += step) {
    float x[wide];
    reader.scores(block, reader.load_any(block, group), group, reader.all_edits(), x);
    reader.rank(block, group, reader.all_edits(), x);
    SLUICE_UNROLL
    for (std::uint32_t c = 0; c < wide; ++c)
      if (group * wide + c < size) keys[group * wide + c] = make_key(x[c], group * wide + c);
  }
}

/// Writes the list of a line; its log-probabilities equal those of LineBlock, bit for bit. Overwrites its keys.
template <class Format, class Block>
SLUICE_DEVICE void write_list(Block& block, NarrowMemory<Block::threads>& memory, OrderLaunch<Format> const& launch,
                              std::int32_t row) {
  auto const& line = launch.line;
  auto const& query = line.query(row);
  auto const total = line.totals[row];
  auto const normalise = query.normalise != 0 && total.sum > 0;
  auto const maximum = normalise ? static_cast<double>(total.maximum) : 0.0;
  auto const log_sum = normalise ? static_cast<double>(Block::log(total.sum)) : 0.0;
  auto limit = query.best < line.k ? query.best : line.k;
  if (!(total.sum == total.sum)) limit = 0;
  BestKeys found;
  if (limit > 0) {
    auto const first = std::int64_t{row} * line.size;
    found = NarrowBlock<Block>(block, memory, launch.keys + first, launch.spare + first, line.size).best(limit);
  }
  if (limit > found.count) limit = found.count;
  if (block.thread() == 0) line.results[row].count = limit > 0 ? limit : 0;
  for (int i = block.thread(); i < limit; i += Block::threads) {
    auto const key = found.sorted[i];
    auto const place = static_cast<Token>(place_of(key));
    auto const token = line.tokens != nullptr ? line.tokens[place] : place;
    line.best[std::int64_t{row} * line.k + i] = {
        token, static_cast<float>(static_cast<double>(score_of(key)) - maximum - log_sum)};
  }
}

}  // namespace sluice::inline v0::cuda::detail
