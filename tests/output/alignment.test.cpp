// SPDX-License-Identifier: Apache-2.0
// Memory that begins anywhere and ends anywhere: lines of scores and products. Each array ends with its last number, so that
// the address sanitizer sees who reads, or writes, further.
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <support/catch.hpp>
#include <support/line_reference.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t offsets = 16;  // floats, of a cache line

/// Numbers that begin `offset` floats behind a multiple of 64 bytes.
class Anywhere {
 public:
  Anywhere(std::span<float const> numbers, std::size_t offset) : memory_(offset + numbers.size()), offset_(offset) {
    std::ranges::copy(numbers, data());
  }
  float* data() { return memory_.data() + offset_; }

 private:
  AlignedVector<float> memory_;
  std::size_t offset_;
};

std::vector<float> drawn(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(size);
  for (auto& x : numbers) x = 3 * normal(random);
  return numbers;
}

/// All that a line tells, as bits.
std::vector<std::uint32_t> bits(Line const& line) {
  std::vector<std::uint32_t> all;
  for (auto const& candidate : line.best) {
    all.push_back(static_cast<std::uint32_t>(candidate.token));
    all.push_back(std::bit_cast<std::uint32_t>(candidate.log_prob));
  }
  for (auto const probe : line.probes) all.push_back(std::bit_cast<std::uint32_t>(probe));
  return all;
}

}  // namespace

TEST_CASE("lines of every length from every place", "[alignment]") {
  LogSoftmaxTopK expander;
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n <= 140; ++n) sizes.push_back(n);
  for (std::size_t n = 1008; n <= 1042; ++n) sizes.push_back(n);  // a chunk
  for (std::size_t n = 2047; n <= 2049; ++n) sizes.push_back(n);
  Group const group{.lines = 1};
  for (auto const n : sizes) {
    auto const numbers = drawn(n, n);
    std::vector<Token> const probes{0, static_cast<Token>(n - 1)};
    for (auto const& query :
         {Query{.best = 3, .probes = probes}, Query{.best = 4, .mass = 0.7f}, Query{.best = 2, .noise = 5}}) {
      std::vector<std::uint32_t> first;
      for (std::size_t offset = 0; offset < offsets; ++offset) {
        Anywhere line(numbers, offset);
        auto const answer = expander.expand(scores(line.data(), 1, static_cast<std::ptrdiff_t>(n), Kind::logits),
                                            std::span(&query, 1), std::span(&group, 1))[0];
        INFO(n << " scores, " << offset << " behind a cache line");
        if (offset == 0) {
          check_line(answer, expected_line<float>(numbers, Kind::logits, query), query);
          first = bits(answer);
        } else {
          CHECK(bits(answer) == first);
        }
      }
    }
  }
}

TEST_CASE("products of every size from every place to every place", "[alignment]") {
  std::vector<std::pair<std::size_t, std::size_t>> sizes;  // outputs, inputs
  for (std::size_t d = 1; d <= 66; ++d)
    for (std::size_t const n : {1, 33}) sizes.emplace_back(n, d);
  for (std::size_t n = 1; n <= 66; ++n) sizes.emplace_back(n, 19);
  constexpr std::ptrdiff_t rows = 3;
  for (auto const& [n, d] : sizes) {
    auto const weights = drawn(n * d, 1), bias = drawn(n, 2), x = drawn(rows * d, 3);
    auto const outputs = static_cast<std::ptrdiff_t>(n), inputs = static_cast<std::ptrdiff_t>(d);
    for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      std::vector<float> first;
      for (std::size_t offset = 0; offset < offsets; ++offset) {
        Anywhere w(weights, offset), b(bias, (offset + 5) % offsets), in(x, offset);
        Anywhere out(std::vector<float>(rows * n, -1), (7 * offset) % offsets);
        PackedMatrix const matrix({w.data(), outputs, inputs, inputs}, std::span(b.data(), n), precision);
        matrix.multiply({in.data(), rows, inputs, inputs}, {out.data(), rows, outputs, outputs});
        std::vector<float> const y(out.data(), out.data() + rows * n);
        INFO(n << " outputs of " << d << " inputs, " << offset << " behind a cache line");
        if (offset > 0) {
          CHECK(y == first);
          continue;
        }
        first = y;
        for (std::size_t i = 0; i < y.size(); ++i) {
          double exact = bias[i % n], size = std::abs(exact);
          for (std::size_t k = 0; k < d; ++k) {
            auto const product = double{x[i / n * d + k]} * weights[i % n * d + k];
            exact += product, size += std::abs(product);
          }
          auto const error = precision == Precision::float32 ? 1e-6 : precision == Precision::bfloat16 ? 8e-3 : 0.1;
          CHECK(std::abs(y[i] - exact) <= error * (1 + size));
        }
      }
    }
  }
}
