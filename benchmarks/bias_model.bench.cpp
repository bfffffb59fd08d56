// SPDX-License-Identifier: Apache-2.0
// The cost of boosted phrases in a step of the shipped Transformer: a beam of 5, a batch of 16, one thread, with and without
// phrases, alternating. Sentences and weights: as in decode.bench.cpp. bias_model/phrases; the phrases are of one to six tokens,
// the first one of 2,000, and earn so little that outputs stay as they are. bias_model_lead: nothing is lent for a first token.
//
// Counters, medians of the thread's CPU time: ms_step, a step without phrases; ratio, one with phrases to the mean of its two
// neighbours without.

#include <sluice/core/noise.hpp>
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/sluice.hpp>

#include "shipped_model.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cpu_clock.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace {

using ::bench::data;
using sluice::Token;

std::vector<sluice::BiasedPhrase> phrases(std::size_t count) {
  auto const size = static_cast<std::uint64_t>(data().weights->vocabulary.size);
  std::vector<sluice::BiasedPhrase> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto& spelling = all[i].spellings.emplace_back();
    for (std::size_t n = 0; n <= sluice::derive(1, i) % 6; ++n)
      spelling.push_back(static_cast<Token>(4 + sluice::derive(i, n) % (n == 0 ? 2000 : size - 4)));
    all[i].per_token = 1e-5f;
  }
  return all;
}

template <class Search>
double step(Search const& search) {
  auto const& d = data();
  sluice::example::Transformer model(d.weights);
  sluice::Decoder decoder(model, search, sluice::Batched{.size = 16}, *d.projection);
  auto const time = sluice::bench::seconds([&] {
    for (auto const& sentence : d.sentences) decoder.submit({.source = sentence});
    sluice::Result result;
    while (decoder.step())
      while (decoder.poll(result)) benchmark::DoNotOptimize(result.hypotheses.data());
  });
  auto const& s = decoder.statistics().seconds;
  return 1e3 * time * (1 - s.encode / s.total()) / static_cast<double>(decoder.statistics().steps);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void compare(benchmark::State& state, std::int32_t lead) {
  sluice::BeamSearch const beam{.width = 5, .length = {.min = 1}};
  sluice::Processed<sluice::BeamSearch> const biased{
      beam, sluice::Bias(phrases(static_cast<std::size_t>(state.range(0))), {.lead = lead})};
  std::vector<double> plain, ratios;
  for (auto _ : state) {
    auto const before = step(beam), with = step(biased), after = step(beam);
    plain.push_back((before + after) / 2), ratios.push_back(with / plain.back());
  }
  state.counters["ms_step"] = median(plain), state.counters["ratio"] = median(ratios);
}

void bias_model(benchmark::State& state) { compare(state, 0); }
void bias_model_lead(benchmark::State& state) { compare(state, 1); }

BENCHMARK(bias_model)->ArgName("phrases")->Arg(0)->Arg(1000)->Arg(20000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(bias_model_lead)->ArgName("phrases")->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
