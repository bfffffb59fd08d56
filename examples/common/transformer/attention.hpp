// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layer norm and attention of one row, vectorised so that the result depends on that row only.
#pragma once

#include <sluice/output/detail/simd/exponential.hpp>
#include <sluice/output/detail/simd/fused.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>

namespace sluice::example {

namespace simd = sluice::detail::simd;  // the library's own vectors, which a release may change

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

/// Keys and values of a sequence, in pages of some positions: few, since a fork copies those of a page that is not full.
/// The key of position p is the [d] at pages[p / page] + offset + p % page * pitch, its value the [d] at `value` numbers
/// after that.
struct KeysValues {
  static constexpr std::int32_t page = 2;
  std::span<float const* const> pages;
  std::ptrdiff_t offset;
  std::ptrdiff_t pitch;
  std::ptrdiff_t value;

  float const* key(std::int32_t position) const {
    return pages[static_cast<std::size_t>(position / page)] + offset + position % page * pitch;
  }
};

/// The same of a path through a tree: the keys and values of its positions, wherever each lies.
struct PathKeysValues {
  std::span<float const* const> positions;
  std::ptrdiff_t offset;
  std::ptrdiff_t value;

  float const* key(std::int32_t position) const { return positions[static_cast<std::size_t>(position)] + offset; }
};

namespace detail {

/// Numbers after which the heads come in the same lanes again.
inline std::ptrdiff_t period(int heads) { return std::lcm(heads, simd::lanes); }

/// scores[p * period ..] = the products of a query and the keys of Count positions from `first` on, as far as they come to
/// the same lanes.
template <std::int32_t Count, class Period, class Memory>
[[gnu::always_inline]] inline void products(float const* query, std::ptrdiff_t d, Period period, Memory const& memory,
                                            std::int32_t first, float* scores) {
  float const* keys[Count];
  for (std::int32_t p = 0; p < Count; ++p) keys[p] = memory.key(first + p);
  for (std::ptrdiff_t lane = 0; lane < period; lane += simd::lanes) {
    simd::Vec even[Count] = {}, odd[Count] = {};
    auto i = lane;
    for (; i + period < d; i += 2 * period) {
      auto const x = simd::load(query + i), y = simd::load(query + i + period);
      for (std::int32_t p = 0; p < Count; ++p) {
        even[p] = simd::fused(x, simd::load(keys[p] + i), even[p]);
        odd[p] = simd::fused(y, simd::load(keys[p] + i + period), odd[p]);
      }
    }
    if (i < d)
      for (std::int32_t p = 0; p < Count; ++p)
        even[p] = simd::fused(simd::load(query + i), simd::load(keys[p] + i), even[p]);
    for (std::int32_t p = 0; p < Count; ++p) simd::store(scores + (first + p) * period + lane, even[p] + odd[p]);
  }
}

/// Every lane becomes the sum of all lanes of its head.
template <class Period>
void add_lanes(float* scores, Period period, int heads) {
  if (period == heads) return;
  if (period == simd::lanes) {
    simd::Ints lane;
    for (int i = 0; i < simd::lanes; ++i) lane[i] = i;
    auto x = simd::load(scores);
    for (auto half = simd::lanes / 2; half >= heads; half /= 2) x += simd::look_up(x, lane ^ half);
    return simd::store(scores, x);
  }
  for (int head = 0; head < heads; ++head) {
    float sum = 0;
    for (std::ptrdiff_t i = head; i < period; i += heads) sum += scores[i];
    for (std::ptrdiff_t i = head; i < period; i += heads) scores[i] = sum;
  }
}

/// Count vectors of the answer, one period apart: factor * sum over positions of weight * value.
template <int Count, class Period, class Memory>
[[gnu::always_inline]] inline void weighted_sum(float const* weights, Period period, Memory const& memory,
                                                std::ptrdiff_t column, std::int32_t positions, simd::Vec factor,
                                                float* out) {
  simd::Vec sum[Count] = {};
  for (std::int32_t p = 0; p < positions; ++p) {
    auto const weight = simd::load(weights + p * period);
    auto const* value = memory.key(p) + memory.value + column;
    asm("" : "+r"(value));  // one address: GCC would keep one for each vector, in memory
    for (int i = 0; i < Count; ++i) sum[i] = simd::fused(weight, simd::load(value + i * period), sum[i]);
  }
  for (int i = 0; i < Count; ++i) simd::store(out + column + i * period, sum[i] * factor);
}

/// attend(), see below; `period` is a constant where it is one vector.
template <class Period, class Memory>
void attend(Period period, float const* query, std::ptrdiff_t d, int heads, Memory const& memory, std::int32_t count,
            float* scratch, float* out) {
  std::int32_t p = 0;
  for (; p + 4 <= count; p += 4) products<4>(query, d, period, memory, p, scratch);
  for (; p < count; ++p) products<1>(query, d, period, memory, p, scratch);
  for (p = 0; p < count; ++p) add_lanes(scratch + p * period, period, heads);

  for (std::ptrdiff_t lane = 0; lane < period; lane += simd::lanes) {
    auto* const scores = scratch + lane;
    auto best = simd::load(scores);
    for (p = 1; p < count; ++p) best = simd::max(best, simd::load(scores + p * period));
    simd::Vec total{};
    for (p = 0; p < count; ++p) {
      auto const weight = simd::exp_of_negative(simd::load(scores + p * period) - best);
      simd::store(scores + p * period, weight);
      total += weight;
    }
    auto const factor = 1.0f / total;
    auto column = lane;
    auto const left = [&] { return (d - column + period - 1) / period; };
    for (; left() >= 16; column += 16 * period) weighted_sum<16>(scores, period, memory, column, count, factor, out);
    for (; left() >= 4; column += 4 * period) weighted_sum<4>(scores, period, memory, column, count, factor, out);
    for (; column < d; column += period) weighted_sum<1>(scores, period, memory, column, count, factor, out);
  }
}

}  // namespace detail

/// The floats that attend needs as scratch, for up to `count` positions.
inline std::ptrdiff_t attention_scratch(int heads, std::int32_t count) { return count * detail::period(heads); }

/// Attention of one query to the first `count` > 0 positions of `memory`: for each head, softmax(q k) v.
///
/// Number i of head h lies at i * heads + h, in queries, keys, values and the answer (Weights::load sees to that): so lanes
/// belong to heads, and nothing is added across lanes but the last few parts of a score.
///
/// \param query    [d], already divided by the square root of the head's size
/// \param memory   KeysValues, or PathKeysValues
/// \param heads    d / heads is a multiple of 16
/// \param scratch  [attention_scratch(heads, count)], 64-byte aligned
/// \param out      [d]
template <class Memory = KeysValues>
void attend(float const* query, std::ptrdiff_t d, int heads, Memory const& memory, std::int32_t count, float* scratch,
            float* out) {
  using OneVector = std::integral_constant<std::ptrdiff_t, simd::lanes>;
  auto const period = detail::period(heads);
  if (period == OneVector{}) detail::attend(OneVector{}, query, d, heads, memory, count, scratch, out);
  else detail::attend(period, query, d, heads, memory, count, scratch, out);
}

/// How much attend(), which has just left `scratch`, looked at each position, over all heads: out [count], which add up to 1.
inline void mean_attention(float const* scratch, int heads, std::int32_t count, float* out) {
  auto const period = detail::period(heads);
  std::fill_n(out, count, 0.0f);
  for (int head = 0; head < heads; ++head) {
    float total = 0;
    for (std::int32_t p = 0; p < count; ++p) total += scratch[p * period + head];
    auto const share = 1 / (total * static_cast<float>(heads));
    for (std::int32_t p = 0; p < count; ++p) out[p] += scratch[p * period + head] * share;
  }
}

}  // namespace SLUICE_ISA
}  // namespace sluice::example
