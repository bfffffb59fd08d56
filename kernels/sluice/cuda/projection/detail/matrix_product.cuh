// SPDX-License-Identifier: Apache-2.0
/// \file
/// The product of skinny_product.cuh on matrix units, for 16-bit numbers.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/projection/detail/skinny_product.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// A warp takes 8 tokens at a time, for all of up to 16 lines: mma.m16n8k16 with hidden vectors as A and rows of
/// weights as the columns of B, which matches their memory layout. A product's sum may take the numbers along the depth
/// in any order, as long as both sides use the same one: lane 4 g + t takes numbers 8 t .. 8 t + 7 of every 32 of row
/// g, 16 bytes, which are its part of two products. So no shuffles are needed, and a warp reads 128 adjacent bytes of
/// each row with two loads. Logits are summed in float32, in an order that depends only on the depth (two sums, of
/// alternate products); the order and rounding of the 16 terms of one product depend on the device.
template <class Format, class Block>
class MatrixProduct {
  static_assert(sizeof(typename Format::Bits) == 2);

 public:
  static constexpr int tokens = 8;  ///< a warp's at a time

  SLUICE_DEVICE MatrixProduct(Block& block, SkinnyLaunch<Format> const& launch)
      : block_(block), launch_(launch), row_(block.lane() / 4), part_(block.lane() % 4) {
    SLUICE_UNROLL
    for (int i = 0; i < 2; ++i) {
      auto const line = row_ + 8 * i;
      // Unused lines repeat some line; their results are ignored.
      hidden_[i] = halves(launch.hidden + (line < launch.lines ? line : launch.lines - 1) * launch.hidden_stride);
      deciding_[i] = line < launch.lines ? launch.active.deciding(line) : -1;
    }
  }

  /// Adjacent warps are in different blocks, so that few tokens keep all multiprocessors busy.
  SLUICE_DEVICE void run(std::int32_t number, std::int32_t blocks) {
    auto const [begin, end] = listed_here(block_, launch_);
    SLUICE_ROLLED
    for (auto first = begin + (block_.warp() * blocks + number) * tokens; first < end;
         first += Block::warps * blocks * tokens) {
      float sums[4];
      block_.converge();  // products are of whole warps, and write() has branches
      multiply(first + row_ < end ? first + row_ : end - 1, sums);
      write(first, end, sums);
    }
  }

 private:
  using Bits = typename Format::Bits;
  static constexpr int wide = Format::wide;  // numbers per load
  static constexpr int step = 8 * wide;      // of a row: 128 bytes, four products
  static constexpr int ahead = 4;            // steps of weights in flight: eight loads per lane

  /// Where the lane's numbers of a row's first step are, in both halves. Every other row reads its second half first:
  /// its lanes and those of the row before read together, and so use different banks.
  struct Halves {
    Bits const* from[2];
  };
  SLUICE_DEVICE Halves halves(Bits const* row) const {
    auto const odd = row_ & 1;
    return {{row + (4 * odd + part_) * wide, row + (4 * (1 - odd) + part_) * wide}};
  }
  /// The lane's numbers of a step, as loaded.
  struct Step {
    Words words[2];
  };
  SLUICE_DEVICE Step load(Halves const& row, std::int32_t k) const {
    return {{block_.read16(row.from[0] + k), block_.read16(row.from[1] + k)}};
  }
  /// The same for a row's last `rest` numbers, a multiple of `wide`, padded with zeros.
  SLUICE_DEVICE Step load_rest(Halves const& row, std::int32_t k, std::int32_t rest) const {
    auto const odd = row_ & 1;
    Step last{};
    if ((4 * odd + part_) * wide < rest) last.words[0] = block_.read16(row.from[0] + k);
    if ((4 * (1 - odd) + part_) * wide < rest) last.words[1] = block_.read16(row.from[1] + k);
    return last;
  }
  /// Moves to the next round of the loop.
  SLUICE_DEVICE static void advance(Halves& row) { row.from[0] += ahead * step, row.from[1] += ahead * step; }
  /// A word of a half.
  SLUICE_DEVICE std::uint32_t word(Step const& of, int half, int i) const {
    return (row_ & 1) != 0 ? of.words[1 - half].word[i] : of.words[half].word[i];
  }

  /// The sums of the lane's lines row and row + 8, for tokens 2 part and 2 part + 1.
  /// \param at  index in the list of the token of the lane's row
  SLUICE_DEVICE void multiply(std::int32_t at, float (&sums)[4]) {
    auto row = halves(launch_.weights + block_.read(launch_.tokens + at) * launch_.weight_stride);
    auto upper = hidden_[0], lower = hidden_[1];
    auto const whole = launch_.depth / step;
    float even[4] = {}, odd[4] = {};
    Step weights[ahead];
    SLUICE_UNROLL
    for (int i = 0; i < ahead; ++i)
      if (i < whole) weights[i] = load(row, i * step);
    SLUICE_ROLLED
    for (int left = whole; left > 0; left -= ahead) {
      SLUICE_UNROLL
      for (int i = 0; i < ahead; ++i) {
        if (i >= left) break;
        multiply(even, odd, load(upper, i * step), load(lower, i * step), weights[i]);
        if (i + ahead < left) weights[i] = load(row, (i + ahead) * step);
      }
      advance(row), advance(upper), advance(lower);
    }
    if (auto const rest = launch_.depth % step; rest > 0) {
      auto const k = whole % ahead == 0 ? 0 : (whole % ahead - ahead) * step;  // where the last round ended
      multiply(even, odd, load_rest(upper, k, rest), load_rest(lower, k, rest), load_rest(row, k, rest));
    }
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) sums[i] = even[i] + odd[i];
  }
  SLUICE_DEVICE void multiply(float (&even)[4], float (&odd)[4], Step const& upper, Step const& lower,
                              Step const& weights) {
    SLUICE_UNROLL
    for (int half = 0; half < 2; ++half) {
      SLUICE_UNROLL
      for (int i = 0; i < 4; i += 2) {
        std::uint32_t const a[4] = {word(upper, half, i), word(lower, half, i), word(upper, half, i + 1),
                                    word(lower, half, i + 1)};
        std::uint32_t const b[2] = {word(weights, half, i), word(weights, half, i + 1)};
        block_.template multiply_add<Format>(i == 0 ? even : odd, a, b);
      }
    }
  }

  SLUICE_DEVICE void write(std::int32_t first, std::int32_t end, float const (&sums)[4]) const {
    SLUICE_UNROLL
    for (int i = 0; i < 4; ++i) {
      auto const line = row_ + 8 * (i / 2), at = first + 2 * part_ + i % 2;
      if (line >= launch_.lines || at >= end) continue;
      auto const token = launch_.tokens[at];
      if (!launch_.active.has(deciding_[i / 2], token)) continue;
      auto const bias = launch_.bias != nullptr ? launch_.bias[token] : 0.0f;
      launch_.logits[line * launch_.stride + token - launch_.first] = sums[i] + bias;
    }
  }

  Block& block_;
  SkinnyLaunch<Format> const& launch_;
  int row_, part_;
  Halves hidden_[2];          // of the lane's lines
  std::int32_t deciding_[2];  // see ActiveMasks
};

}  // namespace sluice::inline v0::cuda::detail
