// SPDX-License-Identifier: Apache-2.0
// A draw from a line of logits: the expander's Gumbel-max compared with the obvious code, softmax, cumulative sum and
// binary search; with chains of samplers.
#include <sluice/core/noise.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace {

constexpr std::size_t lines = 16;

/// Lines by Zipf's law: the token of rank r has a probability ~ r^-1.5, in random order.
std::vector<float> logits(std::size_t vocabulary) {
  std::mt19937_64 random(1);
  std::vector<float> line(vocabulary), all;
  for (std::size_t r = 0; r < vocabulary; ++r) line[r] = -1.5f * std::log(static_cast<float>(r + 1));
  for (std::size_t i = 0; i < lines; ++i) {
    std::shuffle(line.begin(), line.end(), random);
    all.insert(all.end(), line.begin(), line.end());
  }
  return all;
}

void expand(benchmark::State& state, auto const& ask) {
  auto const vocabulary = static_cast<std::size_t>(state.range(0));
  auto const all = logits(vocabulary);
  auto const view = sluice::scores(all.data(), lines, static_cast<std::ptrdiff_t>(vocabulary));
  sluice::LogSoftmaxTopK expander;
  std::vector<sluice::Query> queries(lines);
  std::vector<sluice::Candidate> scratch;
  std::uint64_t step = 0;
  for (auto _ : state) {
    ++step;
    for (std::size_t i = 0; i < lines; ++i) queries[i] = ask(sluice::derive(step, i));
    auto const answer = expander.expand(view, queries, {});
    for (std::size_t i = 0; i < lines; ++i)
      benchmark::DoNotOptimize(sluice::draw(answer[i].best, sluice::derive(step, i)));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lines));
}

void sample(benchmark::State& state) {
  expand(state, [](std::uint64_t noise) { return sluice::Query{.best = 1, .noise = noise}; });
}
void sample_top_k_40(benchmark::State& state) {
  expand(state, [](std::uint64_t) { return sluice::Query{.best = 40}; });
}
void sample_top_p_0_9(benchmark::State& state) {
  expand(state, [](std::uint64_t) { return sluice::Query{.best = 0, .mass = 0.9f}; });
}
void sample_tempered(benchmark::State& state) {
  expand(state, [](std::uint64_t noise) { return sluice::Query{.best = 1, .temperature = 0.8f, .noise = noise}; });
}
void stochastic_beam_5(benchmark::State& state) {
  expand(state, [](std::uint64_t noise) { return sluice::Query{.best = 5, .noise = noise}; });
}
void argmax(benchmark::State& state) {
  expand(state, [](std::uint64_t) { return sluice::Query{.best = 1}; });
}

/// Draws by a chain, as Sample does.
void chain(benchmark::State& state, sluice::Sample const& options) {
  auto const vocabulary = static_cast<std::size_t>(state.range(0));
  auto const size = static_cast<std::int32_t>(vocabulary);
  auto const all = logits(vocabulary);
  auto const view = sluice::scores(all.data(), lines, static_cast<std::ptrdiff_t>(vocabulary));
  sluice::LogSoftmaxTopK expander;
  std::vector<sluice::Query> queries(lines);
  auto const samplers = options.chain();
  std::vector<sluice::detail::SamplerState> states(lines, samplers.begin());
  sluice::detail::SamplerScratch scratch;
  std::uint64_t step = 0;
  for (auto _ : state) {
    ++step;
    for (std::size_t i = 0; i < lines; ++i)
      queries[i] = {}, samplers.ask(queries[i], size, states[i], sluice::derive(step, i));
    auto const answer = expander.expand(view, queries, {});
    for (std::size_t i = 0; i < lines; ++i) {
      auto const noise = sluice::derive(step, i);
      samplers.apply(answer[i].best, size, states[i], noise, scratch);
      auto const token = sluice::draw(samplers.candidates(scratch), noise).token;
      benchmark::DoNotOptimize(samplers.took(token, answer[i].best, states[i], scratch));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lines));
}
void chain_llama_cpp(benchmark::State& state) { chain(state, sluice::presets::llama_cpp_sample()); }
void chain_llama_cpp_xtc_dynamic(benchmark::State& state) {
  auto options = sluice::presets::llama_cpp_sample();
  options.xtc.probability = 0.5f, options.dynamic_temperature.range = 0.5f;
  chain(state, options);
}
void chain_top_n_sigma(benchmark::State& state) { chain(state, {.top_n_sigma = 1}); }
void chain_mirostat(benchmark::State& state) { chain(state, {.mirostat = {.tau = 5}}); }
void chain_xtc_alone(benchmark::State& state) { chain(state, {.xtc = {.probability = 0.5f}}); }
void chain_adaptive_p(benchmark::State& state) { chain(state, {.min_p = 0.05f, .adaptive_p = {.target = 0.5f}}); }

/// The baseline: one uniform number per draw.
void cumulative_sum(benchmark::State& state) {
  auto const vocabulary = static_cast<std::size_t>(state.range(0));
  auto const all = logits(vocabulary);
  std::vector<float> cumulative(vocabulary);
  std::uint64_t step = 0;
  for (auto _ : state) {
    ++step;
    for (std::size_t i = 0; i < lines; ++i) {
      auto const line = std::span(all).subspan(i * vocabulary, vocabulary);
      auto const top = *std::max_element(line.begin(), line.end());
      float sum = 0;
      for (std::size_t v = 0; v < vocabulary; ++v) cumulative[v] = sum += std::exp(line[v] - top);
      auto const u = static_cast<float>(sluice::uniform(sluice::derive(step, i), 0)) * sum;
      benchmark::DoNotOptimize(std::upper_bound(cumulative.begin(), cumulative.end(), u));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lines));
}

}  // namespace

#define SLUICE_VOCABULARIES ArgName("vocabulary")->Arg(8192)->Arg(32768)->Arg(131072)->Unit(benchmark::kMicrosecond)
BENCHMARK(sample)->SLUICE_VOCABULARIES;
BENCHMARK(cumulative_sum)->SLUICE_VOCABULARIES;
BENCHMARK(sample_tempered)->SLUICE_VOCABULARIES;
BENCHMARK(sample_top_k_40)->SLUICE_VOCABULARIES;
BENCHMARK(sample_top_p_0_9)->SLUICE_VOCABULARIES;
BENCHMARK(chain_llama_cpp)->SLUICE_VOCABULARIES;
BENCHMARK(chain_llama_cpp_xtc_dynamic)->SLUICE_VOCABULARIES;
BENCHMARK(chain_top_n_sigma)->SLUICE_VOCABULARIES;
BENCHMARK(chain_mirostat)->SLUICE_VOCABULARIES;
BENCHMARK(chain_xtc_alone)->SLUICE_VOCABULARIES;
BENCHMARK(chain_adaptive_p)->SLUICE_VOCABULARIES;
BENCHMARK(stochastic_beam_5)->SLUICE_VOCABULARIES;
BENCHMARK(argmax)->SLUICE_VOCABULARIES;
