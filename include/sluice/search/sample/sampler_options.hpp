// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a chain of samplers, checked.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/search/sample/samplers.hpp>
#include <sluice/search/sample/truncation.hpp>

#include <cmath>
#include <cstdint>

namespace sluice::inline v0 {

/// The sampler options of Sample.
struct SamplerOptions {
  float temperature = 1;
  Truncation truncation{};
  float top_n_sigma = 0;
  Xtc xtc{};
  DynamicTemperature dynamic_temperature{};
  Mirostat mirostat{};
  AdaptiveP adaptive_p{};
  std::int32_t min_keep = 1;
  SamplerOrder order = SamplerOrder::hugging_face();

  template <class = void>
  void check() const;
  template <class = void>
  bool on(Sampler sampler) const {
    switch (sampler) {
      case Sampler::temperature: return temperature != 1.0f || dynamic_temperature.range > 0;
      case Sampler::top_n_sigma: return top_n_sigma > 0;
      case Sampler::top_k: return truncation.top_k > 0;
      case Sampler::typical: return truncation.typical < 1;
      case Sampler::top_p: return truncation.top_p < 1;
      case Sampler::min_p: return truncation.min_p > 0;
      case Sampler::xtc: return xtc.probability > 0 && xtc.threshold <= 0.5f;
    }
    return false;
  }
  /// Whether it is only a temperature followed by a Truncation.
  template <class = void>
  bool plain() const;
};

template <class Void>
void SamplerOptions::check() const {
  require(temperature > 0 && std::isfinite(temperature), "temperature", temperature,
          "must be a number > 0 (Greedy is the limit 0)");
  truncation.check(), order.check();
  require(top_n_sigma >= 0 && std::isfinite(top_n_sigma), "top_n_sigma", top_n_sigma, "must be a number >= 0");
  auto const part = [](float x) { return x >= 0 && x <= 1; };
  require(part(xtc.probability), "xtc.probability", xtc.probability, "must be in [0, 1]");
  require(part(xtc.threshold), "xtc.threshold", xtc.threshold, "must be in [0, 1]");
  auto const& dynamic = dynamic_temperature;
  require(dynamic.range >= 0 && std::isfinite(dynamic.range), "dynamic_temperature.range", dynamic.range,
          "must be a number >= 0");
  require(dynamic.exponent > 0 && std::isfinite(dynamic.exponent), "dynamic_temperature.exponent", dynamic.exponent,
          "must be a number > 0");
  require(mirostat.tau >= 0 && std::isfinite(mirostat.tau), "mirostat.tau", mirostat.tau, "must be a number >= 0");
  require(mirostat.eta > 0 && std::isfinite(mirostat.eta), "mirostat.eta", mirostat.eta, "must be a number > 0");
  require(adaptive_p.target <= 1, "adaptive_p.target", adaptive_p.target, "must be at most 1");
  require(adaptive_p.decay >= 0 && adaptive_p.decay <= 0.99f, "adaptive_p.decay", adaptive_p.decay,
          "must be in [0, 0.99]");
  require(mirostat.tau <= 0 || adaptive_p.target < 0, "adaptive_p.target", adaptive_p.target,
          "does not go with mirostat: each of them draws the token");
  require(min_keep >= 0, "min_keep", min_keep, "must not be negative");
  require(truncation.top_k == 0 || min_keep <= truncation.top_k, "min_keep", min_keep,
          "must not be more than top_k leaves");
  auto const all = SamplerOrder::hugging_face();  // samplers() refers to it
  for (auto const sampler : all.samplers())
    require(!on(sampler) || order.contains(sampler), "order", name(sampler),
            "is a sampler that is on, but not in the order");
}

template <class Void>
bool SamplerOptions::plain() const {
  constexpr auto rank = [](Sampler sampler) {
    switch (sampler) {
      case Sampler::temperature: return 0;
      case Sampler::top_k: return 1;
      case Sampler::top_p: return 2;
      case Sampler::min_p: return 3;
      default: return 4;
    }
  };
  if (top_n_sigma > 0 || on(Sampler::xtc) || dynamic_temperature.range > 0 || mirostat.tau > 0 ||
      adaptive_p.target >= 0 || min_keep > 1)
    return false;
  auto last = 0;
  for (auto const sampler : order.samplers()) {
    if (!on(sampler)) continue;
    if (rank(sampler) < last) return false;
    last = rank(sampler);
  }
  return true;
}

}  // namespace sluice::inline v0
