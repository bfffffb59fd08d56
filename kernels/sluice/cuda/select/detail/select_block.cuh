// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program of a thread block that makes further passes over a line: its entropy, its list, its probes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/block_sort.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>
#include <sluice/cuda/select/detail/noise.cuh>
#include <sluice/cuda/select/detail/select_cut.cuh>
#include <sluice/cuda/select/detail/select_reader.cuh>
#include <sluice/cuda/select/detail/select_sum.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The shared memory of a block.
template <int threads>
struct SelectMemory {
  NarrowMemory<threads> narrow;
  CutMemory<threads> cut;
};

/// Runs after LineBlock (which makes the line's sums) and write_select_keys().
template <class Format, class Block>
class SelectBlock {
 public:
  using Scores = SortedScores<Block>;
  using Narrow = NarrowBlock<Block>;
  using Memory = SelectMemory<Block::threads>;

  SLUICE_DEVICE SelectBlock(Block& block, Memory& memory, SelectLaunch<Format> const& launch, std::int32_t row)
      : block_(block), memory_(memory), launch_(launch), reader_(block, launch, row), row_(row) {}

  SLUICE_DEVICE void run() {
    auto const& query = launch_.selection.queries[row_];
    auto& result = launch_.selection.results[row_];
    auto const valid = launch_.valid(row_);
    auto const entropy = valid && (query.entropy != 0 || query.typical > 0) ? this->entropy() : 0.0;
    auto const draws = valid && launch_.draws(row_), cuts = valid && launch_.cuts(row_);
    if (block_.thread() == 0) {
      result.entropy = static_cast<float>(entropy);
      if (!draws && !cuts) result.count = 0;
    }
    if (!valid) return;
    if (query.rounded != 0) probe();
    if (draws && launch_.parts > 0) return draw_one(query);
    std::int32_t drawn = 0;
    if (draws) drawn = draw(query, cuts);
    if (cuts) list(query, entropy, drawn);
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
    return sum_in_block(block_, memory_.cut.sum, sum);
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
  SLUICE_DEVICE void draw_one(LineSelect const& query) {
    if (block_.warp() != 0) return;
    auto const* const keys = launch_.perturbed + std::int64_t{row_} * launch_.parts;
    auto best = no_key;
    for (auto i = block_.lane(); i < launch_.parts; i += 32) best = keys[i] > best ? keys[i] : best;
    SLUICE_UNROLL
    for (int distance = 16; distance > 0; distance /= 2) {
      auto const other = block_.exchange(best, distance);
      best = other > best ? other : best;
    }
    if (block_.lane() != 0) return;
    launch_.selection.results[row_].count = best != no_key ? 1 : 0;
    if (best != no_key && query.room > 0) write_drawn(query, 0, best);
  }

  /// The tokens drawn by noise: the line's list or, if others are listed too, the keys of their scores, in order, in
  /// place of the perturbed ones. Returns their number.
  SLUICE_DEVICE std::int32_t draw(LineSelect const& query, bool others) {
    auto* const perturbed = launch_.row_of(launch_.perturbed, row_);
    auto* const spare = launch_.row_of(launch_.spare, row_);
    Narrow narrow(block_, memory_.narrow, perturbed, spare, launch_.line.size);
    auto const found = narrow.best(query.best);
    auto const drawn = query.best < found.count ? query.best : found.count;
    if (!others) {
      if (block_.thread() == 0) launch_.selection.results[row_].count = drawn;
      for (int i = block_.thread(); i < drawn && i < query.room; i += Block::threads)
        write_drawn(query, i, found.sorted[i]);
      return drawn;
    }
    auto const* const keys = launch_.row_of(launch_.keys, row_);
    for (int i = block_.thread(); i < drawn; i += Block::threads)  // a thread overwrites only what it has read
      perturbed[i] = keys[place_of_wide(found.sorted[i], launch_.place_bits)];
    block_.sync(Barrier::drawn);
    auto const* const sorted = BlockSort<Block>(block_, memory_.narrow.sort).sort(perturbed, spare, drawn);
    if (sorted == perturbed) return drawn;
    for (int i = block_.thread(); i < drawn; i += Block::threads) perturbed[i] = sorted[i];
    block_.sync(Barrier::drawn);
    return drawn;
  }
  SLUICE_DEVICE void write_drawn(LineSelect const& query, std::int32_t at, Key key) {
    auto const place = place_of_wide(key, launch_.place_bits);
    launch_.selection.best[query.first + at] = {launch_.token(place),
                                                reader_.norm().rounded(reader_.score(block_, place))};
  }

  /// Sorts some of the best, more of them if a list does not end among these, and then all: the answer is the same.
  SLUICE_DEVICE void list(LineSelect const& query, double entropy, std::int32_t drawn) {
    auto* const keys = launch_.row_of(launch_.keys, row_);
    auto const* const drawn_keys = launch_.row_of(launch_.perturbed, row_);
    auto const size = launch_.line.size;
    auto const deviation = query.deviations > 0 ? deviation_of(block_, memory_.cut.sum, keys, size) : 0.0;
    Narrow narrow(block_, memory_.narrow, keys, launch_.row_of(launch_.spare, row_), size);
    auto const least = query.noise == 0 ? query.best : 0;
    auto some = query.selects() && least < Narrow::usual ? Narrow::usual : least;
    SLUICE_ROLLED
    for (;;) {
      if (query.selects() && some > Narrow::most - drawn) some = size;  // which would overwrite the line's keys
      auto const found = narrow.best(some, drawn_keys, drawn);
      if (write_list(query, entropy, deviation, found, drawn_keys, drawn)) return;
      some = some < Narrow::most - drawn ? Narrow::most - drawn : size;
    }
  }

  /// Whether the list ends among the best; then it is written.
  SLUICE_DEVICE bool write_list(LineSelect const& query, double entropy, double deviation, BestKeys const& found,
                                Key const* drawn_keys, std::int32_t drawn) {
    auto const norm = reader_.norm();
    Scores scores(block_, memory_.cut, found.sorted, found.count, norm);
    std::int32_t first = 0;  // number of best tokens
    auto const more = [&](std::int32_t count) { first = count > first ? count : first; };
    if (query.mass > 0) more(scores.holding(static_cast<double>(query.mass)));
    auto const best = found.count > 0 ? static_cast<double>(scores.score(0)) : 0.0;
    if (query.within > 0) more(scores.count_from(double_sum(best, double_log(static_cast<double>(query.within)))));
    if (query.deviations > 0)
      more(scores.count_from(double_sum(best, -double_product(static_cast<double>(query.deviations), deviation))));
    if (query.at_least > 0) more(scores.count_from(double_log(static_cast<double>(query.at_least)) - norm(0)));
    typename Scores::Pieces pieces{};
    if (query.typical > 0) pieces = scores.typical(static_cast<double>(query.typical), entropy);
    auto const reach = pieces.last[1] > first ? pieces.last[1] : first;
    if (reach >= found.count && !found.all && query.selects()) return false;
    if (query.noise == 0) more(query.best < found.count ? query.best : found.count);
    auto const end = drawn > 0 ? found.together : reach > first ? reach : first;
    std::int32_t count = 0;
    SLUICE_ROLLED
    for (std::int32_t begin = 0; begin < end; begin += Block::threads) {
      auto const i = begin + block_.thread();
      auto const key = i < end ? found.sorted[i] : no_key;
      auto const wanted = i < end && (i < first || pieces.holds(i) || has(drawn_keys, drawn, key));
      auto all = 0;
      auto const at = count + count_before(block_, memory_.cut.sum, wanted, all);
      if (wanted && at < query.room)
        launch_.selection.best[query.first + at] = {launch_.token(place_of(key)), norm.rounded(score_of(key))};
      count += all;
    }
    if (block_.thread() == 0) launch_.selection.results[row_].count = count;
    return true;
  }
  /// Whether a key is among sorted ones.
  SLUICE_DEVICE static bool has(Key const* sorted, std::int32_t size, Key key) {
    auto const reaching = count_reaching(sorted, size, key);
    return reaching > 0 && sorted[reaching - 1] == key;
  }

  Block& block_;
  Memory& memory_;
  SelectLaunch<Format> const& launch_;
  SelectReader<Format> const reader_;
  std::int32_t const row_;
};

}  // namespace sluice::inline v0::cuda::detail
