// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tests of the product of few lines on matrix units, over a device, or over host_cuda/ and emulated ones. The
/// including file must define no_device().
#pragma once

#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/projection/detail/active_union.cuh>
#include <sluice/cuda/projection/detail/matrix_product.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/random_query.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::test {
namespace {

/// A random launch in device memory. Memory between and after rows is NaN.
template <class Format>
struct ProductCase {
  using Bits = std::uint16_t;
  static constexpr Bits nan = 0xffff;  // in both formats
  static constexpr float nobody = 7;   // the value of untouched memory
  static constexpr std::int32_t each = 2;

  explicit ProductCase(std::uint64_t seed) : random(seed) {
    depth = 8 * some(below(random, 3) == 0 ? 4 : 80), lines = some(16);
    weight_stride = depth + 8 * (some(3) - 1), hidden_stride = depth + 8 * (some(3) - 1);
    std::int32_t const sizes[] = {0, 1, 7, 8, 9, 15, 17, 64, 200};
    auto const count = sizes[seed % 9];
    vocabulary = count + some(40);
    for (Token t = 0; t < vocabulary; ++t) tokens.push_back(t);
    std::shuffle(tokens.begin(), tokens.end(), random);
    tokens.resize(static_cast<std::size_t>(count)), std::sort(tokens.begin(), tokens.end());
    weights = rows(vocabulary, weight_stride), hidden = rows(lines, hidden_stride);
    if (below(random, 2) == 0)
      for (Token t = 0; t < vocabulary; ++t) bias.push_back(Format::value(number()));
    // Two adjacent lines share a mask; that of the second pair is ignored.
    words = (vocabulary + 31) / 32;
    for (int i = 0; i < 8 * words; ++i) masks.push_back(static_cast<std::uint32_t>(random() | random()));
    results.assign(9, {0, 1, 0});
    results[0].count = count, results[2].part = 0;
  }

  /// The logits of the first lines, of columns first .. first + columns - 1; untouched ones keep their value.
  /// \param matrix_lines  see SkinnyLaunch
  std::vector<float> logits(std::int32_t matrix_lines, std::int32_t first_lines, std::int32_t first,
                            std::int32_t columns) const {
    auto const stride = static_cast<std::size_t>(columns) + 3;
    OnDevice<Bits> const w(weights), h(hidden);
    OnDevice<Token> const t(tokens);
    OnDevice<cuda::detail::UnionResult> const r(results);
    OnDevice<std::uint32_t> const m(masks);
    OnDevice<float> const b(bias), to(std::vector<float>(static_cast<std::size_t>(first_lines) * stride, nobody));
    cuda::detail::SkinnyLaunch<Format> launch{w.data(),    weight_stride, h.data(), hidden_stride,
                                              first_lines, depth,         t.data(), r.data()};
    launch.size = vocabulary, launch.active = {nullptr, each, 0, r.data() + 1, m.data(), words};
    launch.bias = bias.empty() ? nullptr : b.data();
    launch.logits = to.data(), launch.stride = static_cast<std::int64_t>(stride);
    launch.first = first, launch.columns = columns, launch.blocks = 3;
    launch.matrix_lines = matrix_lines;
    cuda::detail::launch_skinny(launch, nullptr, cuda::detail::Start::after);
    return to.get();
  }
  bool wanted(std::int32_t line, Token token) const {
    auto const u = line / each;
    return std::binary_search(tokens.begin(), tokens.end(), token) &&
           (u == 1 || cuda::detail::has_bit(masks.data() + u * words, static_cast<std::uint32_t>(token)));
  }
  /// A logit in double precision, and its tolerance: depth + 2 additions to two sums and a bias, with exact products.
  /// If a device aligns the 17 terms of an mma to the largest exponent and truncates them, each term, and each sum,
  /// loses up to 2^-23 of the largest.
  std::pair<double, double> expected(std::int32_t line, Token token) const {
    double sum = 0, magnitude = 0;
    auto const add = [&](double x) { sum += x, magnitude += std::abs(x); };
    for (std::int32_t k = 0; k < depth; ++k)
      add(static_cast<double>(Format::value(weights[static_cast<std::size_t>(token * weight_stride + k)])) *
          static_cast<double>(Format::value(hidden[static_cast<std::size_t>(line * hidden_stride + k)])));
    if (!bias.empty()) add(static_cast<double>(bias[static_cast<std::size_t>(token)]));
    auto const additions = depth + 2 * (depth / 16 + 1) + 2;
    return {sum, std::ldexp(additions * magnitude, -23)};
  }

  std::mt19937_64 random;
  std::int32_t depth, lines, vocabulary, words;
  std::int64_t weight_stride, hidden_stride;
  std::vector<Token> tokens;
  std::vector<Bits> weights, hidden;
  std::vector<float> bias;
  std::vector<std::uint32_t> masks;
  std::vector<cuda::detail::UnionResult> results;

 private:
  std::int32_t some(std::size_t most) { return 1 + static_cast<std::int32_t>(below(random, most)); }
  /// Of a magnitude from 2^-5 to 2^2.
  Bits number() {
    constexpr int fraction = std::is_same_v<Format, cuda::detail::Float16> ? 10 : 7;
    constexpr std::uint64_t least = (std::is_same_v<Format, cuda::detail::Float16> ? 15 : 127) - 5;
    return static_cast<Bits>(below(random, 2) << 15 | (least + below(random, 7)) << fraction |
                             below(random, 1u << fraction));
  }
  std::vector<Bits> rows(std::int32_t count, std::int64_t stride) {
    std::vector<Bits> numbers(static_cast<std::size_t>(count * stride), nan);
    for (std::int32_t row = 0; row < count; ++row)
      for (std::int32_t k = 0; k < depth; ++k) numbers[static_cast<std::size_t>(row * stride + k)] = number();
    return numbers;
  }
};

using MatrixFormats = std::tuple<cuda::detail::Float16, cuda::detail::BFloat16>;
constexpr std::int32_t always = 1, never = cuda::detail::most_skinny_lines + 1;

TEMPLATE_LIST_TEST_CASE("few lines times weights in place on matrix units: what products in double precision say",
                        "[cuda]", MatrixFormats) {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < times(rounds(54)); ++seed) {
    ProductCase<TestType> const one(seed);
    INFO("seed " << seed << ", " << one.lines << " lines, depth " << one.depth << ", " << one.tokens.size() << " of "
                 << one.vocabulary << " tokens");
    auto const got = one.logits(always, one.lines, 0, one.vocabulary);
    auto const by_fma = one.logits(never, one.lines, 0, one.vocabulary);
    REQUIRE(got.size() == by_fma.size());
    auto const stride = one.vocabulary + 3;
    for (std::int32_t line = 0; line < one.lines; ++line)
      for (std::int32_t t = 0; t < stride; ++t) {
        auto const at = static_cast<std::size_t>(line * stride + t);
        if (t >= one.vocabulary || !one.wanted(line, t)) {
          REQUIRE(got[at] == one.nobody);
          REQUIRE(by_fma[at] == one.nobody);
          continue;
        }
        auto const [sum, error] = one.expected(line, t);
        INFO("line " << line << ", token " << t << ", error " << error);
        REQUIRE(std::abs(static_cast<double>(got[at]) - sum) <= error);
        REQUIRE(std::abs(static_cast<double>(by_fma[at]) - sum) <= error);
      }
  }
}

TEMPLATE_LIST_TEST_CASE(
    "few lines times weights in place on matrix units: sums do not depend on how many lines and tokens there are",
    "[cuda]", MatrixFormats) {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < rounds(27); ++seed) {
    ProductCase<TestType> one(seed);
    INFO("seed " << seed);
    auto const all = one.logits(always, one.lines, 0, one.vocabulary);
    auto const first = static_cast<std::int32_t>(below(one.random, static_cast<std::size_t>(one.vocabulary)));
    auto const columns =
        1 + static_cast<std::int32_t>(below(one.random, static_cast<std::size_t>(one.vocabulary - first)));
    auto const lines = 1 + static_cast<std::int32_t>(below(one.random, static_cast<std::size_t>(one.lines)));
    auto const part = one.logits(always, lines, first, columns);
    for (std::int32_t line = 0; line < lines; ++line)
      for (std::int32_t t = 0; t < columns + 3; ++t) {
        auto const from = static_cast<std::size_t>(line * (one.vocabulary + 3) + first + t);
        REQUIRE(part[static_cast<std::size_t>(line * (columns + 3) + t)] == (t < columns ? all[from] : one.nobody));
      }
  }
}

}  // namespace
}  // namespace sluice::test
