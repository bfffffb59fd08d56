// SPDX-License-Identifier: Apache-2.0
/// \file
/// The samplers as formulas over the whole vocabulary in float64, after llama.cpp's src/llama-sampler.cpp. Whether that is what llama.cpp
/// does, tests/engine/llama_samplers.test.cpp asks llama.cpp itself.
#pragma once

#include <sluice/search/sample.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace sluice::test {

/// The state of mirostat and adaptive-p.
struct ReferenceSampler {
  explicit ReferenceSampler(Sample const& options)
      : s(options),
        surprise(2 * number(s.mirostat.tau)),
        weight(1 / (1 - number(s.adaptive_p.decay))),
        weighted_sum(number(s.adaptive_p.target) * weight) {}

  /// [V]: the probability of drawing each token; 0 if it was cut off. Sets `doubtful` if a cut is so close to a token
  /// that float arithmetic may decide differently.
  std::vector<double> probabilities(std::vector<double> const& scores, bool xtc_strikes) {
    x = scores, there.assign(x.size(), true), doubtful = false;
    for (auto const sampler : s.order.samplers()) apply(sampler, xtc_strikes);
    if (s.mirostat.tau > 0) {
      auto const p = softmax(x);
      auto const keep = most_probable();
      for (std::size_t v = 0; v < x.size(); ++v) {
        if (!there[v] || v == keep[0]) continue;
        near(-std::log2(p[v]), surprise);
        if (-std::log2(p[v]) > surprise) there[v] = false;
      }
    }
    before = softmax(x);
    if (s.adaptive_p.target < 0) return before;
    auto const target = std::clamp(2 * number(s.adaptive_p.target) - weighted_sum / weight, 0.0, 1.0);
    auto transformed = x;
    for (std::size_t v = 0; v < x.size(); ++v) {
      auto const d = std::abs(before[v] - target) / 0.3;
      if (x[v] > impossible) transformed[v] = 5 - 10 * d * d / (1 + d);
    }
    return softmax(transformed);
  }
  void take(Token token) {
    auto const p = before[static_cast<std::size_t>(token)];
    surprise -= number(s.mirostat.eta) * (-std::log2(p) - number(s.mirostat.tau));
    weighted_sum = p + number(s.adaptive_p.decay) * weighted_sum;
    weight = 1 + number(s.adaptive_p.decay) * weight;
  }
  bool doubtful = false;

 private:
  static constexpr double impossible = -std::numeric_limits<double>::infinity();
  static double number(float x) { return static_cast<double>(x); }
  void near(double value, double bar) { doubtful = doubtful || std::abs(value - bar) < 1e-5 * (1 + std::abs(bar)); }

  std::vector<double> softmax(std::vector<double> const& logits) const {
    double top = impossible, sum = 0;
    std::vector<double> p(logits.size());
    for (std::size_t v = 0; v < p.size(); ++v)
      if (there[v]) top = std::max(top, logits[v]);
    for (std::size_t v = 0; v < p.size(); ++v)
      if (there[v]) sum += p[v] = std::exp(logits[v] - top);
    for (auto& one : p) one /= sum;
    return p;
  }
  /// The remaining tokens, most probable first, including impossible ones.
  std::vector<std::size_t> most_probable() const {
    std::vector<std::size_t> order;
    for (std::size_t v = 0; v < x.size(); ++v)
      if (there[v]) order.push_back(v);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
    return order;
  }
  /// Keeps the first until they hold `wanted`, and at least min_keep of them.
  void keep_until(std::vector<std::size_t> const& order, double wanted) {
    auto const p = softmax(x);
    double held = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (held >= wanted && i >= static_cast<std::size_t>(s.min_keep)) there[order[i]] = false;
      held += p[order[i]];
      near(held, wanted);
    }
  }
  void apply(Sampler sampler, bool xtc_strikes) {
    auto const order = most_probable();
    auto const p = softmax(x);
    switch (sampler) {
      case Sampler::temperature: {
        auto divisor = number(s.temperature);
        if (auto const range = number(s.dynamic_temperature.range); range > 0 && order.size() > 1) {
          double entropy = 0;
          for (auto const one : p) entropy -= one > 0 ? one * std::log(one) : 0;
          auto const least = std::max(0.0, divisor - range);
          divisor = least + (divisor + range - least) * std::pow(entropy / std::log(static_cast<double>(order.size())),
                                                                 number(s.dynamic_temperature.exponent));
        }
        for (auto& one : x) one /= divisor;
        break;
      }
      case Sampler::top_n_sigma: {
        if (s.top_n_sigma <= 0) break;
        double count = 0, mean = 0, variance = 0;
        for (auto const v : order) count += x[v] > impossible;
        for (auto const v : order) mean += x[v] > impossible ? x[v] / count : 0;
        for (auto const v : order) variance += x[v] > impossible ? (x[v] - mean) * (x[v] - mean) / count : 0;
        auto const bar = x[order[0]] - number(s.top_n_sigma) * std::sqrt(variance);
        for (auto const v : order) {
          near(x[v], bar);
          if (x[v] < bar) x[v] = impossible;
        }
        break;
      }
      case Sampler::top_k:
        for (auto i = static_cast<std::size_t>(s.top_k); s.top_k > 0 && i < order.size(); ++i) there[order[i]] = false;
        break;
      case Sampler::top_p:
        if (s.top_p < 1) keep_until(order, number(s.top_p));
        break;
      case Sampler::min_p:
        for (std::size_t i = 0; s.min_p > 0 && i < order.size(); ++i) {
          near(p[order[i]] / p[order[0]], number(s.min_p));
          if (p[order[i]] < number(s.min_p) * p[order[0]] && i >= static_cast<std::size_t>(s.min_keep))
            there[order[i]] = false;
        }
        break;
      case Sampler::typical: {
        if (s.typical >= 1) break;
        double entropy = 0;
        for (auto const one : p) entropy -= one > 0 ? one * std::log(one) : 0;
        auto const distance = [&](std::size_t v) {
          return p[v] > 0 ? std::abs(-std::log(p[v]) - entropy) : std::numeric_limits<double>::infinity();
        };
        auto by_distance = order;
        std::sort(by_distance.begin(), by_distance.end(),
                  [&](auto a, auto b) { return distance(a) != distance(b) ? distance(a) < distance(b) : a < b; });
        for (std::size_t i = 1; i < order.size() && p[by_distance[i]] > 0; ++i)
          doubtful = doubtful || distance(by_distance[i]) - distance(by_distance[i - 1]) < 1e-5;
        keep_until(by_distance, number(s.typical));
        break;
      }
      case Sampler::xtc: {
        if (s.xtc.probability <= 0 || s.xtc.threshold > 0.5f || !xtc_strikes) break;
        std::size_t likely = 0;
        for (auto const v : order) likely += p[v] >= number(s.xtc.threshold), near(p[v], number(s.xtc.threshold));
        if (likely < 2 || order.size() - likely + 1 < static_cast<std::size_t>(s.min_keep)) break;
        for (std::size_t i = 0; i + 1 < likely; ++i) there[order[i]] = false;
      }
    }
  }

  Sample s;
  double surprise, weight, weighted_sum;
  std::vector<double> x, before;
  std::vector<bool> there;
};

/// Random options: most samplers are usually off. Without `state`: no mirostat and no adaptive-p.
inline Sample random_sampler(std::mt19937_64& random, bool state = true) {
  auto const one_of = [&](std::uint64_t n) { return random() % n == 0; };
  auto const part = [&] { return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-53); };
  Sample s;
  std::vector<Sampler> all{Sampler::top_n_sigma, Sampler::top_k, Sampler::typical,    Sampler::top_p,
                           Sampler::min_p,       Sampler::xtc,   Sampler::temperature};
  if (one_of(3)) std::shuffle(all.begin(), all.end(), random);
  auto const hugging_face = one_of(3);
  if (one_of(2)) s.temperature = 0.2f + 2 * part();
  if (state && one_of(5)) s.mirostat = {.tau = 0.5f + 4 * part(), .eta = 0.05f + part()};
  else if (state && one_of(4)) s.adaptive_p = {.target = part(), .decay = 0.99f * part()};
  if (one_of(3)) s.top_k = static_cast<std::int32_t>(1 + random() % 50);
  if (one_of(3)) s.top_p = 0.3f + 0.69f * part();
  if (one_of(3)) s.min_p = 0.3f * part() * part();
  if (one_of(4)) s.typical = 0.3f + 0.69f * part();
  if (one_of(3)) s.top_n_sigma = 0.01f + 2 * part();
  if (one_of(3)) s.xtc = {.probability = 0.1f + 0.9f * part(), .threshold = 0.3f * part()};
  if (one_of(4)) s.dynamic_temperature = {.range = 2 * part(), .exponent = 0.3f + 2 * part()};
  if (one_of(3)) s.min_keep = static_cast<std::int32_t>(random() % 8);
  if (s.top_k > 0) s.min_keep = std::min(s.min_keep, s.top_k);
  s.order = hugging_face ? SamplerOrder::hugging_face()
                         : SamplerOrder({all[0], all[1], all[2], all[3], all[4], all[5], all[6]});
  return s;
}

}  // namespace sluice::test
