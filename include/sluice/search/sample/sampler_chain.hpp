// SPDX-License-Identifier: Apache-2.0
/// \file
/// A chain of samplers: what it requests from a line, which candidates it leaves, and which token is drawn.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/expansion.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/search/sample/detail/cuts.hpp>
#include <sluice/search/sample/sampler_options.hpp>
#include <sluice/search/sample/samplers.hpp>
#include <sluice/search/sample/truncation.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// What a hypothesis remembers between draws.
struct SamplerState {
  float surprise = 0;                  ///< Mirostat's mu
  float weighted_sum = 0, weight = 0;  ///< for AdaptiveP's mean
};

/// The options of Sample as a chain. Each sampler sees what the one before it left, renormalised. If only the
/// temperature comes before it, the first cut is made on the line: a Query lists what it leaves, and of a large
/// vocabulary nothing else is read. XTC, DynamicTemperature and AdaptiveP need all remaining tokens: without a cut
/// before them, that is the whole line, sorted, O(V log V) per token (for XTC only where it removes tokens, if nothing
/// comes after it). The same holds for `typical` with `min_keep`. Mirostat alone needs only the tokens that it leaves.
///
/// Candidates and probabilities are those of llama.cpp's samplers of the same names in the same order. One known
/// difference: where top_n_sigma leaves tokens of probability 0 for `typical`, llama.cpp gets NaN; here they do not
/// count.
struct SamplerChain : SamplerOptions {
  /// Memory that apply() reuses.
  struct Scratch {
    std::vector<Candidate> left;     // by logits, best first, the best 0
    std::vector<Candidate> weights;  // the same with AdaptiveP's logits
  };

  template <class = void>
  SamplerState begin() const {
    auto const weight = 1 / (1 - adaptive_p.decay);
    return {2 * mirostat.tau, adaptive_p.target * weight, weight};
  }
  /// \param noise  of the draw; 0: several samples draw from the line, so the expander cannot draw
  template <class = void>
  void ask(Query& query, std::int32_t vocabulary, SamplerState const& state, std::uint64_t noise) const;
  /// Applies the samplers to a line requested this way, into scratch; does nothing if the line has no list.
  template <class = void>
  void apply(std::span<Candidate const> list, std::int32_t vocabulary, SamplerState const& state, std::uint64_t noise,
             Scratch& scratch) const;
  /// The candidates left by apply(), to draw from, with log-probabilities that are not normalised.
  std::span<Candidate const> candidates(Scratch const& scratch) const {
    return adaptive_p.target >= 0 ? scratch.weights : scratch.left;
  }
  /// Call when one of them was drawn. \returns its entry in `list`
  template <class = void>
  Candidate took(Token token, std::span<Candidate const> list, SamplerState& state, Scratch const& scratch) const;
  /// Whether XTC removes tokens from a line under this noise.
  template <class = void>
  bool strikes(std::uint64_t noise) const {
    constexpr std::uint64_t own = 0x787463;
    return uniform(derive(noise, own), 0) <= static_cast<double>(xtc.probability);
  }

 private:
  struct Start {
    float temperature = 1;           // acts before any cut
    std::optional<Sampler> first{};  // the next sampler, if any
    bool alone = true;               // no sampler follows
  };
  template <class = void>
  Start start() const;
  bool answered(Start const& start) const {
    return start.first && start.first != Sampler::temperature && start.first != Sampler::xtc &&
           (start.first != Sampler::typical || min_keep <= 1);
  }
  template <class = void>
  void adapt(SamplerState const& state, Scratch& scratch) const;
  template <class = void>
  void heat(std::vector<Candidate>& left, std::size_t size) const;
  std::size_t kept(std::size_t wanted, std::size_t size) const {
    return (std::max)(wanted, (std::min)(static_cast<std::size_t>(min_keep), size));
  }
};

template <class Void>
auto SamplerChain::start() const -> Start {
  Start start;
  for (auto const sampler : order.samplers()) {
    if (!on(sampler)) continue;
    if (start.first) {
      start.alone = false;
    } else if (sampler == Sampler::temperature && dynamic_temperature.range <= 0) {
      start.temperature = temperature;
    } else {
      start.first = sampler;
    }
  }
  if (mirostat.tau > 0 || adaptive_p.target >= 0) start.alone = false;
  return start;
}

template <class Void>
void SamplerChain::ask(Query& query, std::int32_t vocabulary, SamplerState const& state, std::uint64_t noise) const {
  auto const from = start();
  query.temperature = from.temperature;
  query.best = answered(from) ? (std::max)(min_keep, 1) : vocabulary;
  if (!from.first && mirostat.tau > 0) {
    query.best = 1;
    query.at_least = (std::max)(std::exp2(-state.surprise), (std::numeric_limits<float>::min)());
  } else if (noise != 0 && from.alone && (!from.first || (from.first == Sampler::xtc && !strikes(noise)))) {
    query.best = 1, query.noise = noise;
  }
  if (!answered(from)) return;
  switch (*from.first) {
    case Sampler::top_n_sigma: query.best = 1, query.deviations = top_n_sigma; break;
    case Sampler::top_k: query.best = truncation.top_k; break;
    case Sampler::typical: query.best = 0, query.typical = truncation.typical; break;
    case Sampler::top_p: query.mass = truncation.top_p; break;
    case Sampler::min_p: query.within = truncation.min_p; break;
    case Sampler::temperature:
    case Sampler::xtc: break;
  }
}

template <class Void>
void SamplerChain::apply(std::span<Candidate const> list, std::int32_t vocabulary, SamplerState const& state,
                         std::uint64_t noise, Scratch& scratch) const {
  auto& left = scratch.left;
  left.assign(list.begin(), list.end());
  if (left.empty()) return;
  auto const from = start();
  auto begun = false;                                // a cut has been made
  auto size = static_cast<std::size_t>(vocabulary);  // llama.cpp counts tokens of probability 0
  for (auto const sampler : order.samplers()) {
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
        left.resize(detail::above(left, static_cast<double>(left[0].log_prob) -
                                            static_cast<double>(top_n_sigma) * std::sqrt(variance)));
        break;
      }
      case Sampler::top_k:
        size = (std::min)(size, static_cast<std::size_t>(truncation.top_k));
        left.resize((std::min)(size, left.size()));
        break;
      case Sampler::typical:
        keep(cut ? detail::sort_typical(left, static_cast<double>(truncation.typical)) : left.size());
        if (cut) detail::sort_by_score(left);
        break;
      case Sampler::top_p:
        keep(cut ? detail::head(left, static_cast<double>(truncation.top_p) * detail::mass(left)) : left.size());
        break;
      case Sampler::min_p:
        keep(cut ? detail::above(left, static_cast<double>(left[0].log_prob) +
                                           std::log(static_cast<double>(truncation.min_p)))
                 : left.size());
        break;
      case Sampler::xtc: {
        if (size < 2 || !strikes(noise)) break;
        auto const bar = std::log(static_cast<double>(xtc.threshold)) + std::log(detail::mass(left));
        auto const count = detail::above(left, bar);
        if (count < 2 || size - (count - 1) < static_cast<std::size_t>(min_keep)) break;
        left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count) - 1), size -= count - 1;
      }
    }
  }
  if (mirostat.tau > 0 && from.first) {
    constexpr auto nats = 0.6931471805599453;  // per bit
    auto const bar = std::log(detail::mass(left)) - static_cast<double>(state.surprise) * nats;
    left.resize((std::max)(detail::above(left, bar), std::size_t{1}));
  }
  auto const best = left[0].log_prob;
  for (auto& c : left) c.log_prob -= best;
  if (adaptive_p.target >= 0) adapt(state, scratch);
}

template <class Void>
void SamplerChain::adapt(SamplerState const& state, Scratch& scratch) const {
  auto const all = detail::mass(scratch.left);
  auto const target = std::clamp(2 * adaptive_p.target - state.weighted_sum / state.weight, 0.0f, 1.0f);
  scratch.weights.assign(scratch.left.begin(), scratch.left.end());
  for (auto& c : scratch.weights) {
    auto const probability = static_cast<float>(std::exp(static_cast<double>(c.log_prob)) / all);
    auto const distance = std::abs(probability - target) / 0.3f;
    c.log_prob = 5 - 10 * distance * distance / (1 + distance);
  }
}

/// Divides by the temperature; `size` tokens are left, including those of probability 0.
template <class Void>
void SamplerChain::heat(std::vector<Candidate>& left, std::size_t size) const {
  auto const best = static_cast<double>(left[0].log_prob);
  auto divisor = static_cast<double>(temperature);
  if (dynamic_temperature.range > 0) {
    if (size <= 1) return;
    auto const all = std::log(detail::mass(left));
    double entropy = 0;
    for (auto const c : left) {
      auto const log_prob = static_cast<double>(c.log_prob) - all;
      entropy -= std::exp(log_prob) * log_prob;
    }
    auto const range = static_cast<double>(dynamic_temperature.range);
    auto const least = (std::max)(0.0, divisor - range),
               share = (std::max)(0.0, entropy / std::log(static_cast<double>(size)));
    divisor = least + (divisor + range - least) * std::pow(share, static_cast<double>(dynamic_temperature.exponent));
  }
  if (divisor <= 0) return left.resize(1);
  for (auto& c : left) c.log_prob = static_cast<float>((static_cast<double>(c.log_prob) - best) / divisor);
}

template <class Void>
Candidate SamplerChain::took(Token token, std::span<Candidate const> list, SamplerState& state,
                             Scratch const& scratch) const {
  auto const is_it = [token](Candidate c) { return c.token == token; };
  if (mirostat.tau > 0 || adaptive_p.target >= 0) {
    auto const log_prob = static_cast<double>(std::find_if(scratch.left.begin(), scratch.left.end(), is_it)->log_prob);
    auto const taken = static_cast<float>(std::exp(log_prob) / detail::mass(scratch.left));
    if (mirostat.tau > 0) state.surprise -= mirostat.eta * (-std::log2(taken) - mirostat.tau);
    state.weighted_sum = taken + adaptive_p.decay * state.weighted_sum;
    state.weight = 1 + adaptive_p.decay * state.weight;
  }
  return *std::find_if(list.begin(), list.end(), is_it);
}

}  // namespace sluice::inline v0
