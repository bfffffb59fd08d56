// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which keys of a line need not be sorted.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/detail/line_order.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// For lists of any length: keeps the best that are asked for.
template <class Format, class Block>
SLUICE_DEVICE void narrow_line(Block& block, NarrowMemory<Block::threads>& memory, OrderLaunch<Format> const& launch,
                               std::int32_t row) {
  auto const& line = launch.line;
  auto const best = line.query(row).best;
  auto const first = std::int64_t{row} * line.size;
  std::int32_t kept = 0;
  if (best > 0) {
    NarrowBlock<Block> narrow(block, memory, launch.keys + first, line.size);
    kept = narrow.gather(narrow.bar(best < line.k ? best : line.k), launch.narrowed + first);
  }
  if (block.thread() == 0) launch.sizes[row] = kept;
}

/// For noise, and for lists of the best: keeps as many as they hold. For lists by probability: keeps some of the best
/// if these contain everything that can be listed, else all. The answer is the same either way.
template <class Format, class Block>
SLUICE_DEVICE void narrow_line(Block& block, NarrowMemory<Block::threads>& memory, SelectLaunch<Format> const& launch,
                               std::int32_t row) {
  constexpr std::int32_t usual = 1024;
  auto const size = launch.sizes[row];
  if (size == 0) return;
  auto const& query = launch.selection.queries[row];
  auto const first = std::int64_t{row} * launch.line.size;
  auto* const to = launch.narrowed + first;
  NarrowBlock<Block> narrow(block, memory, launch.keys + first, size);
  auto const counted = launch.draws || !query.selects();
  // Cases that may list any token: noise may draw it, the entropy may be near its information, a deviation needs all
  // scores.
  auto const anywhere =
      query.typical > 0 || query.deviations > 0 || query.draws() || (query.rounded != 0 && query.within > 0);
  auto least = no_key + 1;
  if (counted) least = narrow.bar(query.best);
  else if (!anywhere) least = narrow.bar(query.best > usual ? query.best : usual);
  auto kept = narrow.gather(least, to);
  if (!counted && least > no_key + 1) {
    auto const total = launch.line.totals[row];
    auto const norm = DoubleNorm::of<Block>(total, launch.line.query(row));
    auto const lowest = static_cast<double>(score_of(least));
    double held = 0;
    if (query.mass > 0) {
      for (auto i = block.thread(); i < kept; i += Block::threads)
        held = double_sum(held, double_exp(norm(score_of(to[i]))));
      held = sum_in_block(block, memory.sum, held);
    }
    constexpr double margin = 1e-6;  // more than the effect of the order of summation
    auto enough = query.mass <= 0 || held > static_cast<double>(query.mass) + margin;
    if (query.within > 0)
      enough = enough &&
               lowest < double_sum(static_cast<double>(total.maximum), double_log(static_cast<double>(query.within)));
    if (query.at_least > 0) enough = enough && lowest < double_log(static_cast<double>(query.at_least)) - norm(0);
    if (!enough) kept = narrow.gather(no_key + 1, to);
  }
  if (block.thread() == 0) launch.sizes[row] = kept;
}

}  // namespace sluice::inline v0::cuda::detail
