// SPDX-License-Identifier: Apache-2.0
// A user's program, of many searches and all output layers, in a build of the user's own: `-Wall -Wextra -O2` and more over
// headers that no -isystem silences must say nothing.
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/precision.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/output/train_clusters.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <vector>

namespace {

class Model {
 public:
  using Source = std::vector<sluice::Token>;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};
  sluice::Vocabulary vocabulary() const { return {.size = 100, .bos = 0, .eos = {1}, .never = {0}}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Hidden<float> step(std::span<sluice::Row const> rows) {
    std::size_t lines = 0;
    for (auto const& row : rows) lines += static_cast<std::size_t>(row.lines);
    hidden_.assign(lines * 8, 0.5F);
    return sluice::hidden(hidden_.data(), static_cast<std::ptrdiff_t>(lines), 8);
  }

 private:
  std::vector<float> hidden_;
};

template <class Expander>
std::size_t run(Expander const& expander) {
  Model model;
  std::vector<std::vector<sluice::Token>> const sources{{1, 2}, {3}};
  std::size_t count = 0;
  auto const all = [&](auto const& search) {
    count += sluice::decode(model, sources, search, sluice::Batched{.size = 2}, expander).size();
  };
  all(sluice::presets::ctranslate2(4));
  all(sluice::presets::ctranslate2_greedy());
  all(sluice::Sample{.top_k = 5, .length = {.max = 9}});
  all(sluice::DiverseBeamSearch{.search = {.width = 2, .length = {.max = 9}}});
  all(sluice::Blockwise<>{.length = {.max = 9}});
  return count;
}

}  // namespace

int main() {
  std::vector<float> const weights(800, 0.1F);
  sluice::MatrixView<float const> const matrix{weights.data(), 100, 8, 8};
  sluice::ClusterSamples samples({.hidden_size = 8, .vocabulary_size = 100});
  auto const clusters = sluice::train_clusters(samples);
  std::size_t count = 0;
  for (auto const precision : {sluice::Precision::float32, sluice::Precision::bfloat16, sluice::Precision::int8})
    count += run(sluice::DenseProjection(matrix, {}, precision));
  count += run(sluice::ClusteredProjection(matrix, {}, clusters, {.always = {1}}));
  count += run(sluice::ShortlistProjection(matrix));
  std::cout << count << '\n';
}
