// SPDX-License-Identifier: Apache-2.0
// The snippet of docs/model.md about PagedCache: a model that attends to everything it has seen.
#include <sluice/model/paged_cache.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <variant>
#include <vector>

namespace {

// [pages]
/// The hidden vector is the mean of the vectors of all tokens so far: attention with equal weights.
class Averager {
 public:
  using Source = std::monostate;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  sluice::Vocabulary vocabulary() const { return {.size = 100, .bos = 0, .eos = {1}, .never = {0}}; }

  void start(std::span<Source const* const>, std::span<sluice::Slot const> slots) { release(slots); }
  void release(std::span<sluice::Slot const> slots) {
    for (auto const slot : slots) cache_.release(slot);
  }

  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) cache_.fork(row.from, row.to, row.length);
    for (auto const& row : rows) cache_.truncate(row.to, row.length);

    hidden_.clear();
    for (auto const& row : rows)
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        auto const place = cache_.append(row.to);
        std::ranges::copy(vector_of(row.tokens[i]), place.page.begin() + place.position * d);
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size()) attend(row.to);
      }
    return sluice::hidden(hidden_.data(), std::ssize(hidden_) / d, d);
  }

  sluice::PagedCacheUse const& use() const { return cache_.use(); }

 private:
  void attend(sluice::Slot slot) {
    auto const length = cache_.length(slot);
    pages_.clear();
    cache_.pages(slot, pages_);
    std::array<float, d> sum{};
    for (std::int32_t p = 0; p < length; ++p) {
      auto const* const value = pages_[static_cast<std::size_t>(p / positions)] + p % positions * d;
      for (std::size_t k = 0; k < d; ++k) sum[k] += value[k];
    }
    for (auto const x : sum) hidden_.push_back(x / static_cast<float>(length));
  }
  // [/pages]

 public:
  static constexpr int d = 4;
  static std::array<float, d> vector_of(sluice::Token token) {
    std::array<float, d> vector{};
    for (int k = 0; k < d; ++k) vector[static_cast<std::size_t>(k)] = 2 * std::sin(static_cast<float>(token * (k + 1)));
    return vector;
  }

 private:
  static constexpr std::int32_t positions = 16;
  sluice::PagedCache<float> cache_{{.elements_per_position = d, .positions_per_page = positions}};
  std::vector<float const*> pages_;
  std::vector<float> hidden_;
};

}  // namespace

int main() {
  std::vector<float> weights;
  for (sluice::Token token = 0; token < 100; ++token) {
    auto const vector = Averager::vector_of(token * 7 + 1);
    weights.insert(weights.end(), vector.begin(), vector.end());
  }
  sluice::DenseProjection const projection({weights.data(), 100, Averager::d, Averager::d});
  Averager model;
  auto const results = sluice::decode(model, std::vector<std::monostate>(1),
                                      sluice::BeamSearch{.width = 8, .length{.min = 200, .max = 200}}, {}, projection);
  auto const& use = model.use();
  std::cout << results[0].hypotheses.at(0).tokens.size() << " tokens, beam of 8: " << use.forks << " forks copied "
            << use.copies << " pages; at most " << use.peak << " pages in use, " << use.pages << " at the end\n";
  return 0;
}
