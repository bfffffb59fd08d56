// SPDX-License-Identifier: Apache-2.0
/// \file
/// The samplers of Sample, one after the other, on the candidates of a line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/detail/cuts.hpp>
#include <sluice/search/detail/truncation.hpp>
#include <sluice/search/samplers.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// What a hypothesis remembers between draws.
struct SamplerState {
  float surprise = 0;                  ///< Mirostat's mu
  float weighted_sum = 0, weight = 0;  ///< for AdaptiveP's mean
};

/// Memory that SamplerChain::apply() reuses.
struct SamplerScratch {
  std::vector<Candidate> left;     // by logits, best first, the best 0
  std::vector<Candidate> weights;  // the same with AdaptiveP's logits
};

/// The samplers of Sample as a chain. Each sampler sees what the one before it left, renormalised. If only the
/// temperature comes before it, the first cut is made on the line: a Query lists what it leaves, and of a large
/// vocabulary nothing else is read. XTC, DynamicTemperature and AdaptiveP need all remaining tokens: without a cut
/// before them, that is the whole line, sorted, O(V log V) per token (for XTC only where it removes tokens, if nothing
/// comes after it). The same holds for `typical` with `min_keep`. Mirostat alone needs only the tokens that it leaves.
///
/// Candidates and probabilities are those of llama.cpp's samplers of the same names in the same order. One known
/// difference: where top_n_sigma leaves tokens of probability 0 for `typical`, llama.cpp gets NaN; here they do not
/// count.
/// \tparam Options  has the fields of Sample, or is a reference to one
template <class Options>
struct SamplerChain {
  Options options;  // by value, or a reference to what lives longer

  SLUICE_LAZY void check() const;
  SLUICE_LAZY bool on(Sampler sampler) const {
    switch (sampler) {
      case Sampler::temperature: return options.temperature != 1.0f || options.dynamic_temperature.range > 0;
      case Sampler::top_n_sigma: return options.top_n_sigma > 0;
      case Sampler::top_k: return options.top_k > 0;
      case Sampler::typical: return options.typical < 1;
      case Sampler::top_p: return options.top_p < 1;
      case Sampler::min_p: return options.min_p > 0;
      case Sampler::xtc: return options.xtc.probability > 0 && options.xtc.threshold <= 0.5f;
    }
    return false;
  }
  /// Whether it is only a temperature followed by a Truncation.
  SLUICE_LAZY bool plain() const;
  SLUICE_LAZY Truncation truncation() const { return {options.top_k, options.top_p, options.min_p, options.typical}; }

  SLUICE_LAZY SamplerState begin() const {
    auto const weight = 1 / (1 - options.adaptive_p.decay);
    return {2 * options.mirostat.tau, options.adaptive_p.target * weight, weight};
  }
  /// \param noise  of the draw; 0: several samples draw from the line, so the expander cannot draw
  SLUICE_LAZY void ask(Query& query, std::int32_t vocabulary, SamplerState const& state, std::uint64_t noise) const;
  /// Applies the samplers to a line requested this way, into scratch; does nothing if the line has no list.
  SLUICE_LAZY void apply(std::span<Candidate const> list, std::int32_t vocabulary, SamplerState const& state,
                         std::uint64_t noise, SamplerScratch& scratch) const;
  /// The candidates left by apply(), to draw from, with log-probabilities that are not normalised.
  std::span<Candidate const> candidates(SamplerScratch const& scratch) const {
    return options.adaptive_p.target >= 0 ? scratch.weights : scratch.left;
  }
  /// Call when one of them was drawn. \returns its entry in `list`
  SLUICE_LAZY Candidate took(Token token, std::span<Candidate const> list, SamplerState& state,
                             SamplerScratch const& scratch) const;
  /// Whether XTC removes tokens from a line under this noise.
  SLUICE_LAZY bool strikes(std::uint64_t noise) const {
    constexpr std::uint64_t own = 0x787463;
    return uniform(derive(noise, own), 0) <= static_cast<double>(options.xtc.probability);
  }

 private:
  struct Start {
    float temperature = 1;           // acts before any cut
    std::optional<Sampler> first{};  // the next sampler, if any
    bool alone = true;               // no sampler follows
  };
  SLUICE_LAZY Start start() const;
  bool answered(Start const& start) const {
    return start.first && start.first != Sampler::temperature && start.first != Sampler::xtc &&
           (start.first != Sampler::typical || options.min_keep <= 1);
  }
  SLUICE_LAZY void adapt(SamplerState const& state, SamplerScratch& scratch) const;
  SLUICE_LAZY void heat(std::vector<Candidate>& left, std::size_t size) const;
  std::size_t kept(std::size_t wanted, std::size_t size) const {
    return (std::max)(wanted, (std::min)(static_cast<std::size_t>(options.min_keep), size));
  }
};

template <class Options>
template <class Void>
void SamplerChain<Options>::check() const {
  require(options.temperature > 0 && std::isfinite(options.temperature), "temperature", options.temperature,
          "must be a number > 0 (Greedy is the limit 0)");
  auto const& o = options;
  require(o.top_k >= 0, "top_k", o.top_k, "must not be negative");
  require(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "must be in (0, 1]");
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "must be in [0, 1]");
  require(o.typical > 0 && o.typical <= 1, "typical", o.typical, "must be in (0, 1]");
  options.order.check();
  require(options.top_n_sigma >= 0 && std::isfinite(options.top_n_sigma), "top_n_sigma", options.top_n_sigma,
          "must be a number >= 0");
  auto const part = [](float x) { return x >= 0 && x <= 1; };
  require(part(options.xtc.probability), "xtc.probability", options.xtc.probability, "must be in [0, 1]");
  require(part(options.xtc.threshold), "xtc.threshold", options.xtc.threshold, "must be in [0, 1]");
  auto const& dynamic = options.dynamic_temperature;
  require(dynamic.range >= 0 && std::isfinite(dynamic.range), "dynamic_temperature.range", dynamic.range,
          "must be a number >= 0");
  require(dynamic.exponent > 0 && std::isfinite(dynamic.exponent), "dynamic_temperature.exponent", dynamic.exponent,
          "must be a number > 0");
  require(options.mirostat.tau >= 0 && std::isfinite(options.mirostat.tau), "mirostat.tau", options.mirostat.tau,
          "must be a number >= 0");
  require(options.mirostat.eta > 0 && std::isfinite(options.mirostat.eta), "mirostat.eta", options.mirostat.eta,
          "must be a number > 0");
  require(options.adaptive_p.target <= 1, "adaptive_p.target", options.adaptive_p.target, "must be at most 1");
  require(options.adaptive_p.decay >= 0 && options.adaptive_p.decay <= 0.99f, "adaptive_p.decay",
          options.adaptive_p.decay, "must be in [0, 0.99]");
  require(options.mirostat.tau <= 0 || options.adaptive_p.target < 0, "adaptive_p.target", options.adaptive_p.target,
          "does not go with mirostat: each of them draws the token");
  require(options.min_keep >= 0, "min_keep", options.min_keep, "must not be negative");
  require(options.top_k == 0 || options.min_keep <= options.top_k, "min_keep", options.min_keep,
          "must not be more than top_k leaves");
  auto const all = SamplerOrder::hugging_face();  // samplers() refers to it
  for (auto const sampler : all.samplers())
    require(!on(sampler) || options.order.contains(sampler), "order", name(sampler),
            "is a sampler that is on, but not in the order");
}

template <class Options>
template <class Void>
bool SamplerChain<Options>::plain() const {
  constexpr auto rank = [](Sampler sampler) {
    switch (sampler) {
      case Sampler::temperature: return 0;
      case Sampler::top_k: return 1;
      case Sampler::top_p: return 2;
      case Sampler::min_p: return 3;
      default: return 4;
    }
  };
  if (options.top_n_sigma > 0 || on(Sampler::xtc) || options.dynamic_temperature.range > 0 ||
      options.mirostat.tau > 0 || options.adaptive_p.target >= 0 || options.min_keep > 1)
    return false;
  auto last = 0;
  for (auto const sampler : options.order.samplers()) {
    if (!on(sampler)) continue;
    if (rank(sampler) < last) return false;
    last = rank(sampler);
  }
  return true;
}

template <class Options>
template <class Void>
auto SamplerChain<Options>::start() const -> Start {
  Start start;
  for (auto const sampler : options.order.samplers()) {
    if (!on(sampler)) continue;
    if (start.first) {
      start.alone = false;
    } else if (sampler == Sampler::temperature && options.dynamic_temperature.range <= 0) {
      start.temperature = options.temperature;
    } else {
      start.first = sampler;
    }
  }
  if (options.mirostat.tau > 0 || options.adaptive_p.target >= 0) start.alone = false;
  return start;
}

template <class Options>
template <class Void>
void SamplerChain<Options>::ask(Query& query, std::int32_t vocabulary, SamplerState const& state,
                                std::uint64_t noise) const {
  auto const from = start();
  query.temperature = from.temperature;
  query.best = answered(from) ? (std::max)(options.min_keep, 1) : vocabulary;
  if (!from.first && options.mirostat.tau > 0) {
    query.best = 1;
    query.at_least = (std::max)(std::exp2(-state.surprise), (std::numeric_limits<float>::min)());
  } else if (noise != 0 && from.alone && (!from.first || (from.first == Sampler::xtc && !strikes(noise)))) {
    query.best = 1, query.noise = noise;
  }
  if (!answered(from)) return;
  switch (*from.first) {
    case Sampler::top_n_sigma: query.best = 1, query.deviations = options.top_n_sigma; break;
    case Sampler::top_k: query.best = options.top_k; break;
    case Sampler::typical: query.best = 0, query.typical = options.typical; break;
    case Sampler::top_p: query.mass = options.top_p; break;
    case Sampler::min_p: query.within = options.min_p; break;
    case Sampler::temperature:
    case Sampler::xtc: break;
  }
}

template <class Options>
template <class Void>
void SamplerChain<Options>::apply(std::span<Candidate const> list, std::int32_t vocabulary, SamplerState const& state,
                                  std::uint64_t noise, SamplerScratch& scratch) const {
  auto& left = scratch.left;
  left.assign(list.begin(), list.end());
  if (left.empty()) return;
  auto const from = start();
  auto begun = false;                                // a cut has been made
  auto size = static_cast<std::size_t>(vocabulary);  // llama.cpp counts tokens of probability 0
  for (auto const sampler : options.order.samplers()) {
    if (!on(sampler) || !from.first || (!begun && sampler != from.first)) continue;
    auto const cut = begun || !answered(from);  // otherwise the line made it
    begun = true;
    auto const keep = [&](std::size_t count) {
      left.resize((std::min)(kept(count, size), left.size()));
      size = kept(count, size);
    };
    switch (sampler) {
      case Sampler::temperature: heat(left, size); break;
      case Sampler::top_n_sigma: {
        if (!cut || size <= 1) break;
        double mean = 0, variance = 0;
        auto const count = static_cast<double>(left.size());
        for (auto const c : left) mean += static_cast<double>(c.log_prob) / count;
        for (auto const c : left) variance += std::pow(static_cast<double>(c.log_prob) - mean, 2) / count;
        left.resize(above(left, static_cast<double>(left[0].log_prob) -
                                    static_cast<double>(options.top_n_sigma) * std::sqrt(variance)));
        break;
      }
      case Sampler::top_k:
        size = (std::min)(size, static_cast<std::size_t>(options.top_k));
        left.resize((std::min)(size, left.size()));
        break;
      case Sampler::typical:
        keep(cut ? sort_typical(left, static_cast<double>(options.typical)) : left.size());
        if (cut) sort_by_score(left);
        break;
      case Sampler::top_p: keep(cut ? head(left, static_cast<double>(options.top_p) * mass(left)) : left.size()); break;
      case Sampler::min_p:
        keep(cut ? above(left, static_cast<double>(left[0].log_prob) + std::log(static_cast<double>(options.min_p)))
                 : left.size());
        break;
      case Sampler::xtc: {
        if (size < 2 || !strikes(noise)) break;
        auto const bar = std::log(static_cast<double>(options.xtc.threshold)) + std::log(mass(left));
        auto const count = above(left, bar);
        if (count < 2 || size - (count - 1) < static_cast<std::size_t>(options.min_keep)) break;
        left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count) - 1), size -= count - 1;
      }
    }
  }
  if (options.mirostat.tau > 0 && from.first) {
    constexpr auto nats = 0.6931471805599453;  // per bit
    auto const bar = std::log(mass(left)) - static_cast<double>(state.surprise) * nats;
    left.resize((std::max)(above(left, bar), std::size_t{1}));
  }
  auto const best = left[0].log_prob;
  for (auto& c : left) c.log_prob -= best;
  if (options.adaptive_p.target >= 0) adapt(state, scratch);
}

template <class Options>
template <class Void>
void SamplerChain<Options>::adapt(SamplerState const& state, SamplerScratch& scratch) const {
  auto const all = mass(scratch.left);
  auto const target = std::clamp(2 * options.adaptive_p.target - state.weighted_sum / state.weight, 0.0f, 1.0f);
  scratch.weights.assign(scratch.left.begin(), scratch.left.end());
  for (auto& c : scratch.weights) {
    auto const probability = static_cast<float>(std::exp(static_cast<double>(c.log_prob)) / all);
    auto const distance = std::abs(probability - target) / 0.3f;
    c.log_prob = 5 - 10 * distance * distance / (1 + distance);
  }
}

/// Divides by the temperature; `size` tokens are left, including those of probability 0.
template <class Options>
template <class Void>
void SamplerChain<Options>::heat(std::vector<Candidate>& left, std::size_t size) const {
  auto const best = static_cast<double>(left[0].log_prob);
  auto divisor = static_cast<double>(options.temperature);
  if (options.dynamic_temperature.range > 0) {
    if (size <= 1) return;
    auto const all = std::log(mass(left));
    double entropy = 0;
    for (auto const c : left) {
      auto const log_prob = static_cast<double>(c.log_prob) - all;
      entropy -= std::exp(log_prob) * log_prob;
    }
    auto const range = static_cast<double>(options.dynamic_temperature.range);
    auto const least = (std::max)(0.0, divisor - range),
               share = (std::max)(0.0, entropy / std::log(static_cast<double>(size)));
    divisor =
        least + (divisor + range - least) * std::pow(share, static_cast<double>(options.dynamic_temperature.exponent));
  }
  if (divisor <= 0) return left.resize(1);
  for (auto& c : left) c.log_prob = static_cast<float>((static_cast<double>(c.log_prob) - best) / divisor);
}

template <class Options>
template <class Void>
Candidate SamplerChain<Options>::took(Token token, std::span<Candidate const> list, SamplerState& state,
                                      SamplerScratch const& scratch) const {
  auto const is_it = [token](Candidate c) { return c.token == token; };
  if (options.mirostat.tau > 0 || options.adaptive_p.target >= 0) {
    auto const log_prob = static_cast<double>(std::find_if(scratch.left.begin(), scratch.left.end(), is_it)->log_prob);
    auto const taken = static_cast<float>(std::exp(log_prob) / mass(scratch.left));
    if (options.mirostat.tau > 0) state.surprise -= options.mirostat.eta * (-std::log2(taken) - options.mirostat.tau);
    state.weighted_sum = taken + options.adaptive_p.decay * state.weighted_sum;
    state.weight = 1 + options.adaptive_p.decay * state.weight;
  }
  return *std::find_if(list.begin(), list.end(), is_it);
}

}  // namespace sluice::inline v0::detail
