// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random lines and queries for code that answers them in one pass on a device, emulated or not.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/device/detail/score_format.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <support/catch.hpp>
#include <support/line_reference.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::test {

/// The bits of a score, rounded towards zero.
template <class Format>
typename Format::Bits encode(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  if constexpr (std::is_same_v<Format, cuda::detail::Float32>) {
    return bits;
  } else if constexpr (std::is_same_v<Format, cuda::detail::BFloat16>) {
    return static_cast<std::uint16_t>(std::isnan(x) ? 0x7fc0u : bits >> 16);
  } else {
    auto const sign = bits >> 16 & 0x8000u;
    if (std::isnan(x)) return 0x7e00;
    if (std::abs(x) >= 65536) return static_cast<std::uint16_t>(sign | 0x7c00u);
    return static_cast<std::uint16_t>(sign | std::bit_cast<std::uint32_t>(std::abs(x) * 0x1p-112f) >> 13);
  }
}

/// Lines, a bias, the queries, and the expected answers.
template <class Format>
struct LineCase {
  using Bits = typename Format::Bits;

  /// \param most   the longest line
  /// \param lines  the maximum number
  LineCase(std::uint64_t seed, std::size_t most, std::size_t lines) : random(seed) {
    rows = 1 + below(lines);
    size = one_of(4) ? 1 + below(20) : 1 + below(most);
    stride = size + (one_of(3) ? 0 : below(19));
    offset = one_of(3) ? 0 : below(16 / sizeof(Bits));
    // 16 bytes on both sides belong to other data.
    memory.assign(16 + offset + rows * stride + 16, encode<Format>(std::numeric_limits<float>::quiet_NaN()));
    if (one_of(3))
      for (std::size_t v = 0; v < size; ++v) bias.push_back(uniform(-2, 2));
    if (one_of(4))
      for (std::size_t v = 0; v < size; ++v)
        tokens.push_back(
            static_cast<Token>(v == 0 ? below(3) : static_cast<std::size_t>(tokens.back()) + 1 + below(3)));
    k = static_cast<std::int32_t>(one_of(4) ? 1 : one_of(2) ? 1 + below(8) : 1 + below(cuda::most_listed));
    for (std::size_t row = 0; row < rows; ++row) {
      fill(row);
      ask(row);
    }
  }
  LineCase(LineCase const&) = delete;
  LineCase& operator=(LineCase const&) = delete;

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }
  bool one_of(std::size_t n) { return below(n) == 0; }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53);
  }

  std::size_t first(std::size_t row) const { return 16 + offset + row * stride; }

  /// The beginning of the first line.
  /// \param base  16-byte aligned, a copy of `memory`
  Bits const* lines(Bits const* base) const { return base + first(0); }

  /// Moves the same lines to another layout.
  void move(std::size_t to_offset, std::size_t to_stride) {
    auto const from = memory;
    std::vector<std::size_t> starts;
    for (std::size_t row = 0; row < rows; ++row) starts.push_back(first(row));
    offset = to_offset, stride = to_stride;
    memory.assign(16 + offset + rows * stride + 16, encode<Format>(std::numeric_limits<float>::quiet_NaN()));
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(starts[row]), size,
                  memory.begin() + static_cast<std::ptrdiff_t>(first(row)));
  }

  /// A line as floats, with the bias.
  std::vector<float> line(std::size_t row) const {
    std::vector<float> x(size);
    for (std::size_t v = 0; v < size; ++v) {
      x[v] = Format::value(memory[first(row) + v]);
      if (!bias.empty()) x[v] += bias[v];
    }
    return x;
  }

  /// Checks a line's answer.
  void check(std::size_t row, Line answer) const {
    auto const x = line(row);
    auto const expected = expected_line<float>(x, Kind::logits, queries[row]);
    std::vector<Candidate> best(answer.best.begin(), answer.best.end());
    if (!tokens.empty())
      for (auto& candidate : best) {
        auto const at = std::lower_bound(tokens.begin(), tokens.end(), candidate.token);
        REQUIRE(at != tokens.end());
        REQUIRE(*at == candidate.token);
        candidate.token = static_cast<Token>(at - tokens.begin());
      }
    answer.best = best;
    check_line(answer, expected, queries[row]);
    if (!queries[row].edits.empty() || queries[row].temperature != 1.0f || !expected.valid) return;
    for (std::size_t i = 0; i < best.size(); ++i) REQUIRE(best[i].token == expected.list[i]);  // ties too
  }

  std::mt19937_64 random;
  std::size_t rows, size, stride, offset;
  std::int32_t k;
  std::vector<Bits> memory;
  std::vector<float> bias;
  std::vector<Token> tokens;
  std::vector<Query> queries;
  std::deque<std::vector<Edit>> edits;
  std::deque<std::vector<Token>> probes;
  std::deque<TokenSet> sets;

 private:
  /// A set of few tokens, of most, or of none; possibly made for another vocabulary.
  TokenSet const* set() {
    auto& made = sets.emplace_back(static_cast<std::int32_t>(one_of(3) ? below(size) : size + below(100)));
    auto const share = one_of(8) ? size + 1 : 1 + below(5);
    for (std::size_t v = 0; v < size + 3; ++v)
      if (one_of(share)) made.insert(static_cast<Token>(v));
    return &made;
  }

  void fill(std::size_t row) {
    auto const none = -std::numeric_limits<float>::infinity();
    std::normal_distribution<float> normal(0, std::vector<float>{0.1f, 1, 4, 30}[below(4)]);
    std::vector<float> x(size);
    for (auto& value : x) value = normal(random);
    switch (below(12)) {
      case 0: std::sort(x.begin(), x.end()); break;
      case 1: std::sort(x.rbegin(), x.rend()); break;
      case 2: std::fill(x.begin(), x.end(), x[0]); break;
      case 3:
        for (auto& value : x) value = std::round(value);  // ties; -0 and 0
        break;
      case 4:
        for (auto& value : x)
          if (!one_of(10)) value = none;
        break;
      case 5: std::fill(x.begin(), x.end(), none); break;
      case 6:  // the best among few threads
        for (std::size_t v = 0; v < size; ++v)
          if (v / Format::wide % 64 < 3) x[v] += 100;
        break;
      case 7:  // the best next to each other
        for (std::size_t v = below(size), end = std::min(size, v + 100); v < end; ++v) x[v] += 200;
        break;
      case 8: x[below(size)] = one_of(2) ? std::numeric_limits<float>::quiet_NaN() : -none; break;
      case 9:
        for (auto& value : x) value *= 300;
        break;
      default: break;
    }
    for (std::size_t v = 0; v < size; ++v) memory[first(row) + v] = encode<Format>(x[v]);
  }

  void ask(std::size_t row) {
    Query query{.best = row == 0 ? k : static_cast<std::int32_t>(below(static_cast<std::size_t>(k) + 1))};
    // Sometimes a token outside the line.
    auto const token = [&] {
      if (!one_of(12)) return static_cast<Token>(below(size));
      auto const behind = size + below(20);
      std::uint32_t const outside[] = {~std::uint32_t{0}, 1u << 31, 0x7fffffffu, static_cast<std::uint32_t>(behind)};
      return static_cast<Token>(outside[below(4)]);
    };
    if (one_of(2)) {
      auto& list = probes.emplace_back();
      for (auto n = below(6); n > 0; --n) list.push_back(token());
      query.probes = list;
    }
    if (one_of(2)) {
      if (one_of(2)) query.stage = Stage::after_softmax;
      auto const before = query.stage == Stage::before_softmax;
      auto& list = edits.emplace_back();
      auto const x = line(row);
      auto const top = static_cast<Token>(std::max_element(x.begin(), x.end()) - x.begin());
      for (auto n = one_of(4) ? 100 : below(5); n > 0; --n)
        list.push_back({one_of(3) ? top : token(), one_of(2) ? -std::numeric_limits<float>::infinity() : uniform(-3, 3),
                        before && one_of(2) ? uniform(0.5f, 2) : 1});
      query.edits = list;
    }
    if (one_of(4)) query.temperature = uniform(0.25f, 3);
    if (one_of(5)) query.only = set();
    if (one_of(6)) query.shortlist = row > 0 && one_of(2) && !sets.empty() ? &sets.front() : set();
    if (one_of(8)) query.normalise = false;
    queries.push_back(query);
  }
};

}  // namespace sluice::test
