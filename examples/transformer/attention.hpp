// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layer norm and attention of one row, vectorised so that the result depends on that row only.
#pragma once

#include <sluice/output/simd/simd.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace sluice::example {
inline namespace SLUICE_ISA {

/// y = (x - mean) / sqrt(variance + 1e-5) * weight + bias; all [d], d a multiple of 16.
inline void layer_norm(float const* x, std::span<float const> weight, std::span<float const> bias, float* y) {
  using simd::Vec, simd::lanes, simd::load, simd::store, simd::broadcast, simd::sum;
  auto const size = weight.size();
  auto const scale = 1 / static_cast<float>(size);
  Vec total{};
  for (std::size_t i = 0; i < size; i += lanes) total += load(x + i);
  auto const mean = broadcast(sum(total) * scale);
  Vec squares{};
  for (std::size_t i = 0; i < size; i += lanes) {
    auto const difference = load(x + i) - mean;
    squares += difference * difference;
  }
  auto const factor = broadcast(1 / std::sqrt(sum(squares) * scale + 1e-5f));
  for (std::size_t i = 0; i < size; i += lanes)
    store(y + i, (load(x + i) - mean) * factor * load(weight.data() + i) + load(bias.data() + i));
}

/// Keys and values of a sequence, in pages of 16 positions. The key of position p is the [d] at
/// pages[p / 16] + offset + p % 16 * pitch, its value the [d] at `value` numbers after that.
struct KeysValues {
  static constexpr std::int32_t page = 16;
  std::span<float const* const> pages;
  std::ptrdiff_t offset;
  std::ptrdiff_t pitch;
  std::ptrdiff_t value;

  float const* key(std::int32_t position) const {
    return pages[static_cast<std::size_t>(position / page)] + offset + position % page * pitch;
  }
};

namespace detail {

template <int Distance, std::size_t... Lane>
[[gnu::always_inline]] inline simd::Vec add_pairs(simd::Vec a, simd::Vec b, std::index_sequence<Lane...>) {
  // Lanes with the bit `Distance` belong to b, the others to a; each gets its partner's sum added.
  constexpr auto n = simd::lanes;
  auto const own =
      __builtin_shufflevector(a, b, (Lane & Distance ? static_cast<int>(Lane) + n : static_cast<int>(Lane))...);
  auto const other = __builtin_shufflevector(
      a, b, (Lane & Distance ? static_cast<int>(Lane) + n - Distance : static_cast<int>(Lane) + Distance)...);
  return own + other;
}

/// The sums of `lanes` vectors: lane i is the sum of v[i], added up in an order that is the same for all lanes.
template <int Count = simd::lanes>
[[gnu::always_inline]] inline simd::Vec sums(simd::Vec* v) {
  if constexpr (Count == 1) {
    return v[0];
  } else {
    constexpr int half = Count / 2;
    for (int i = 0; i < half; ++i) v[i] = add_pairs<half>(v[i], v[i + half], std::make_index_sequence<simd::lanes>{});
    return sums<half>(v);
  }
}

/// out[0 .. Vectors * lanes) = factor * sum over positions of weight * value.
template <int Vectors>
[[gnu::always_inline]] inline void weighted_sum(float const* weights, KeysValues const& memory, std::ptrdiff_t column,
                                                std::int32_t count, float factor, float* out) {
  simd::Vec sum[Vectors] = {};
  for (std::int32_t p = 0; p < count; ++p) {
    auto const weight = simd::broadcast(weights[p]);
    auto const* const value = memory.key(p) + memory.value + column;
    for (int v = 0; v < Vectors; ++v) sum[v] += weight * simd::load(value + v * simd::lanes);
  }
  for (int v = 0; v < Vectors; ++v) simd::store(out + v * simd::lanes, sum[v] * simd::broadcast(factor));
}

}  // namespace detail

/// The floats that attend needs as scratch, for up to `count` positions.
inline std::ptrdiff_t attention_scratch(int heads, std::int32_t count) {
  return heads * ((count + 15) / 16 * 16 + simd::lanes * simd::lanes);
}

/// Attention of one query to the first `count` > 0 positions of `memory`: for each head, softmax(q k) v.
///
/// \param query    [d], already divided by the square root of the head's size
/// \param heads    d / heads is a multiple of 16
/// \param scratch  [attention_scratch(heads, count)], 64-byte aligned
/// \param out      [d]
inline void attend(float const* query, std::ptrdiff_t d, int heads, KeysValues const& memory, std::int32_t count,
                   float* scratch, float* out) {
  constexpr auto lanes = simd::lanes;
  constexpr auto lowest = -std::numeric_limits<float>::infinity();
  using Sixteen = Eigen::Array<float, 16, 1>;  // of fixed size and aligned: no element is ever treated as a remainder
  using Sixteens = Eigen::Map<Sixteen, Eigen::Aligned64>;
  auto const size = d / heads;
  auto const padded = (count + 15) / 16 * 16;
  auto* const products = scratch + heads * padded;  // [heads, lanes, lanes]: by position, a score's parts
  for (std::int32_t first = 0; first < padded; first += lanes) {
    auto const present = std::clamp<std::int32_t>(count - first, 0, lanes);
    for (std::int32_t p = 0; p < present; ++p) {
      auto const* const key = memory.key(first + p);
      for (std::ptrdiff_t head = 0; head < heads; ++head) {
        simd::Vec sum{};
        for (auto i = head * size; i < (head + 1) * size; i += lanes)
          sum += simd::load(query + i) * simd::load(key + i);
        simd::store(products + (head * lanes + p) * lanes, sum);
      }
    }
    for (std::ptrdiff_t head = 0; head < heads; ++head) {
      simd::Vec parts[lanes];
      for (int p = 0; p < lanes; ++p) parts[p] = simd::load(products + (head * lanes + p) * lanes);
      auto* const scores = scratch + head * padded + first;
      simd::store(scores, detail::sums(parts));
      for (auto p = present; p < lanes; ++p) scores[p] = lowest;
    }
  }
  for (std::ptrdiff_t head = 0; head < heads; ++head) {
    auto* const scores = scratch + head * padded;
    Sixteen best = Sixteens(scores);
    for (std::int32_t first = 16; first < padded; first += 16) best = best.max(Sixteens(scores + first));
    auto const largest = best.maxCoeff();
    Sixteen total = Sixteen::Zero();
    for (std::int32_t first = 0; first < padded; first += 16) {
      Sixteens part(scores + first);
      part = (part - largest).exp();
      total += part;
    }
    auto const factor = 1 / total.sum();
    auto column = head * size;
    auto const end = column + size;
    for (; column + 4 * lanes <= end; column += 4 * lanes)
      detail::weighted_sum<4>(scores, memory, column, count, factor, out + column);
    for (; column < end; column += lanes) detail::weighted_sum<1>(scores, memory, column, count, factor, out + column);
  }
}

}  // namespace SLUICE_ISA
}  // namespace sluice::example
