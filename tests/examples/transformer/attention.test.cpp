// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/matrix_view.hpp>

#include <support/catch.hpp>
#include <transformer/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::example;

namespace {

constexpr std::ptrdiff_t page = KeysValues::page, most = 40;

/// softmax(q k) v for one head, in double precision.
void attend_plainly(float const* query, std::ptrdiff_t d, int heads, int head, KeysValues const& memory,
                    std::int32_t count, std::vector<double>& out) {
  std::vector<double> weights;
  for (std::int32_t p = 0; p < count; ++p) {
    double score = 0;
    for (std::ptrdiff_t i = head; i < d; i += heads) score += static_cast<double>(query[i] * memory.key(p)[i]);
    weights.push_back(score);
  }
  auto const best = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (auto& weight : weights) total += weight = std::exp(weight - best);
  for (std::ptrdiff_t i = head; i < d; i += heads) {
    auto& sum = out[static_cast<std::size_t>(i)] = 0;
    for (std::int32_t p = 0; p < count; ++p)
      sum += weights[static_cast<std::size_t>(p)] / total * static_cast<double>((memory.key(p) + memory.value)[i]);
  }
}

}  // namespace

TEST_CASE("attention is that of double precision, for any number of heads", "[attention]") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (int const heads : {1, 2, 3, 4, 5, 8, 12, 16, 20})
    for (std::ptrdiff_t const size : {16, 48, 64}) {
      auto const d = heads * size;
      std::vector<AlignedVector<float>> numbers(most / page);
      std::vector<float const*> pages;
      for (auto& one : numbers) {
        one.resize(static_cast<std::size_t>(2 * page * d));
        for (auto& x : one) x = normal(random);
        pages.push_back(one.data());
      }
      KeysValues const memory{pages, 0, d, page * d};
      AlignedVector<float> query(static_cast<std::size_t>(d)), out(query.size()), again(query.size());
      for (auto& x : query) x = normal(random) / std::sqrt(static_cast<float>(size));
      std::vector<double> expected(query.size());
      AlignedVector<float> scratch(static_cast<std::size_t>(attention_scratch(heads, static_cast<std::int32_t>(most))),
                                   1e30f);
      for (std::int32_t const count : {1, 3, 4, 7, 16, 17, 33, 40}) {
        attend(query.data(), d, heads, memory, count, scratch.data(), out.data());
        auto worst = 0.0;
        for (int head = 0; head < heads; ++head) attend_plainly(query.data(), d, heads, head, memory, count, expected);
        for (std::size_t i = 0; i < out.size(); ++i)
          worst = std::max(worst, std::abs(static_cast<double>(out[i]) - expected[i]));
        INFO(heads << " heads of " << size << ", " << count << " positions");
        CHECK(worst < 3e-6);
        std::fill(scratch.begin(), scratch.end(), -1e30f);  // what was there must not matter
        attend(query.data(), d, heads, memory, count, scratch.data(), again.data());
        CHECK(again == out);
      }
    }
}
