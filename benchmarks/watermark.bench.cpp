// SPDX-License-Identifier: Apache-2.0
// What a watermark costs: decoding by Sample over lines that are there already, so that nothing but search and expander takes
// time, marked and unmarked in one run; and the detector. A real model's step makes the difference smaller.
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/watermark/detect_watermark.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using sluice::Sample, sluice::Token, sluice::WatermarkPrf, sluice::WatermarkScheme;

constexpr std::size_t lines = 64;

/// A model whose lines are fixed: by Zipf's law, a token of rank r has a probability ~ r^-1.5; each step has the next ones.
class Fixed {
 public:
  using Source = std::uint64_t;
  static constexpr sluice::Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  explicit Fixed(std::int32_t vocabulary) : vocabulary_{.size = vocabulary} {
    auto const size = static_cast<std::size_t>(vocabulary);
    all_.resize(2 * lines * size);
    for (std::size_t i = 0; i < 2 * lines; ++i)
      for (std::size_t v = 0; v < size; ++v)
        all_[i * size + v] =
            -1.5f * std::log(static_cast<float>(sluice::derive(i, v) % static_cast<std::uint64_t>(vocabulary)) + 1);
  }
  sluice::Vocabulary const& vocabulary() const { return vocabulary_; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  auto step(std::span<sluice::Row const> rows) {
    auto const size = static_cast<std::size_t>(vocabulary_.size);
    at_ = (at_ + 7) % lines;
    return sluice::scores(all_.data() + at_ * size, rows.size(), static_cast<std::ptrdiff_t>(size));
  }

 private:
  sluice::Vocabulary vocabulary_;
  std::vector<float> all_;
  std::size_t at_ = 0;
};

Sample marked(WatermarkScheme scheme, WatermarkPrf prf) {
  return {.length = {.max = 128}, .watermark = {.scheme = scheme, .prf = prf, .key = sluice::WatermarkKey(11)}};
}

void decode(benchmark::State& state, Sample search, std::int32_t top_k) {
  Fixed model(static_cast<std::int32_t>(state.range(0)));
  search.length.max = 64, search.top_k = top_k;
  std::vector<std::uint64_t> const sources(4);
  std::size_t tokens = 0;
  for (auto _ : state)
    for (auto const& result : sluice::decode(model, sources, search)) tokens += result.hypotheses.at(0).tokens.size();
  state.SetItemsProcessed(static_cast<std::int64_t>(tokens));
}

void detect(benchmark::State& state, WatermarkScheme scheme, WatermarkPrf prf) {
  std::vector<Token> text(1000);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(sluice::derive(3, i) % 32000);
  auto const options = marked(scheme, prf).watermark;
  for (auto _ : state) benchmark::DoNotOptimize(sluice::detect_watermark(text, options).p_value);
  state.SetItemsProcessed(state.iterations() * 1000);
}

}  // namespace

BENCHMARK_CAPTURE(decode, unmarked, Sample{}, 0)->Arg(32000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, gumbel, marked(WatermarkScheme::gumbel, WatermarkPrf::sluice), 0)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, unmarked_top_k_40, Sample{}, 40)->Arg(32000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, gumbel_top_k_40, marked(WatermarkScheme::gumbel, WatermarkPrf::sluice), 40)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, gumbel_philox_top_k_40, marked(WatermarkScheme::gumbel, WatermarkPrf::philox), 40)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, synthid_top_k_40, marked(WatermarkScheme::synthid, WatermarkPrf::sluice), 40)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, red_green_top_k_40, marked(WatermarkScheme::red_green, WatermarkPrf::sluice), 40)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, gumbel_philox, marked(WatermarkScheme::gumbel, WatermarkPrf::philox), 0)
    ->Arg(32000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(detect, gumbel, WatermarkScheme::gumbel, WatermarkPrf::sluice)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(detect, synthid, WatermarkScheme::synthid, WatermarkPrf::philox)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(detect, sbw, WatermarkScheme::sbw, WatermarkPrf::philox)->Unit(benchmark::kMicrosecond);
