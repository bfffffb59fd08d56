// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of a thread block that makes further passes over a line: its entropy, its list, its probes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>
#include <sluice/cuda/select/detail/noise.cuh>
#include <sluice/cuda/select/detail/select_cut.cuh>
#include <sluice/cuda/select/detail/select_reader.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// Runs after LineBlock (which makes the line's sums), the sort of its keys and write_draws().
template <class Format, class Block>
class SelectBlock {
 public:
  using Scores = SortedScores<Block>;
  using Memory = typename Scores::Memory;

  SLUICE_DEVICE SelectBlock(Block& block, Memory& memory, SelectLaunch<Format> const& launch, std::int32_t row)
      : block_(block), memory_(memory), launch_(launch), reader_(block, launch, row), row_(row) {}

  SLUICE_DEVICE void run() {
    auto const& query = launch_.selection.queries[row_];
    auto& result = launch_.selection.results[row_];
    auto const valid = launch_.valid(row_);
    auto const entropy = valid && (query.entropy != 0 || query.typical > 0) ? this->entropy() : 0.0;
    if (block_.thread() == 0) {
      result.entropy = static_cast<float>(entropy);
      if (!valid || !query.draws()) result.count = 0;
    }
    if (!valid) return;
    if (launch_.parts > 0 && query.draws()) draw(query);
    if (query.rounded != 0) probe();
    if (query.cuts()) list(query, entropy);
  }

 private:
  /// Of the line after the softmax.
  SLUICE_DEVICE double entropy() {
    constexpr std::uint32_t wide = Format::wide;
    auto const norm = reader_.norm();
    double sum = 0;
    auto const size = static_cast<std::uint32_t>(launch_.line.size);
    SLUICE_ROLLED
    for (auto group = static_cast<std::uint32_t>(block_.thread()); group * wide < size; group += Block::threads) {
      float x[wide];
      reader_.softmax_scores(block_, group, x);
      SLUICE_UNROLL
      for (std::uint32_t c = 0; c < wide; ++c)
        if (x[c] > minus_infinity) sum = double_sum(sum, -double_product(double_exp(norm(x[c])), norm(x[c])));
    }
    return sum_in_block(block_, memory_.sum, sum);
  }

  /// Probes of log-probabilities to which edits after the softmax apply.
  SLUICE_DEVICE void probe() {
    auto const& query = launch_.line.query(row_);
    for (int i = block_.thread(); i < query.probe_count; i += Block::threads) {
      auto const at = query.probes + i;
      auto const x = reader_.score(block_, static_cast<std::uint32_t>(launch_.line.probes[at]));
      launch_.line.probe_values[at] = reader_.norm().rounded(x);
    }
  }

  /// The best of the parts' keys; in one warp.
  SLUICE_DEVICE void draw(LineSelect const& query) {
    if (block_.warp() != 0) return;
    auto const* const keys = launch_.keys + std::int64_t{row_} * launch_.parts;
    auto best = no_key;
    for (auto i = block_.lane(); i < launch_.parts; i += 32) best = keys[i] > best ? keys[i] : best;
    SLUICE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
      auto const other = block_.exchange(best, distance);
      best = other > best ? other : best;
    }
    if (block_.lane() != 0) return;
    launch_.selection.results[row_].count = best != no_key ? 1 : 0;
    if (best == no_key || query.room < 1) return;
    auto const place = place_of_wide(best, launch_.place_bits);
    auto const token = launch_.line.tokens != nullptr ? launch_.line.tokens[place] : static_cast<Token>(place);
    launch_.selection.best[query.first] = {token, reader_.norm().rounded(reader_.score(block_, place))};
  }

  SLUICE_DEVICE void list(LineSelect const& query, double entropy) {
    auto const norm = reader_.norm();
    Scores scores(block_, memory_, launch_.sorted_of(row_), launch_.sizes[row_], norm);
    auto const size = scores.size();
    std::int32_t first = 0;  // number of best tokens
    auto const more = [&](std::int32_t count) { first = count > first ? count : first; };
    if (query.noise == 0) more(query.best < size ? query.best : size);
    if (query.mass > 0) more(scores.holding(static_cast<double>(query.mass)));
    if (query.within > 0 && size > 0)
      more(scores.count_from(
          double_sum(static_cast<double>(scores.score(0)), double_log(static_cast<double>(query.within)))));
    if (query.deviations > 0) more(scores.count_near(static_cast<double>(query.deviations)));
    if (query.at_least > 0) more(scores.count_from(double_log(static_cast<double>(query.at_least)) - norm(0)));
    typename Scores::Pieces pieces{};
    if (query.typical > 0) pieces = scores.typical(static_cast<double>(query.typical), entropy);
    auto const drawn = query.draws();
    auto const end = drawn ? size : pieces.last[1] > first ? pieces.last[1] : first;
    std::int32_t count = 0;
    SLUICE_ROLLED
    for (std::int32_t begin = 0; begin < end; begin += Block::threads) {
      auto const i = begin + block_.thread();
      auto const wanted = i < end && (i < first || pieces.holds(i) || (drawn && has_drawn(place_of(scores.key(i)))));
      auto all = 0;
      auto const at = count + count_before(block_, memory_.sum, wanted, all);
      if (wanted && at < query.room) {
        auto const place = place_of(scores.key(i));
        auto const token = launch_.line.tokens != nullptr ? launch_.line.tokens[place] : static_cast<Token>(place);
        launch_.selection.best[query.first + at] = {token, norm.rounded(scores.score(i))};
      }
      count += all;
    }
    if (block_.thread() == 0) launch_.selection.results[row_].count = count;
  }
  SLUICE_DEVICE bool has_drawn(std::uint32_t place) const {
    return (launch_.drawn_of(row_)[place / 32] >> (place % 32) & 1u) != 0;
  }

  Block& block_;
  Memory& memory_;
  SelectLaunch<Format> const& launch_;
  SelectReader<Format> const reader_;
  std::int32_t const row_;
};

}  // namespace sluice::inline v0::cuda::detail
