// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sampling from the model: the chain of samplers, its options and its order, and the tokens of a line from which a sample may be
/// drawn.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/cuts.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Exclude top choices: with this probability, drawn for each token, all tokens of at least `threshold` are removed
/// except the least probable of them, unless fewer than Sample::min_keep would be left (p-e-w 2024,
/// text-generation-webui; as in llama.cpp, llama_sampler_init_xtc).
struct Xtc {
  float probability = 0;    ///< in [0, 1]; 0 = off
  float threshold = 0.10f;  ///< in [0, 1]; above 0.5 nothing is removed
};

/// The temperature follows the entropy H of the n remaining tokens: from temperature - range, if one token has all the
/// probability, to temperature + range, if all are equal, as (H / log n)^exponent (llama.cpp,
/// llama_sampler_init_temp_ext; the lower end is at least 0, where only the best token is left). n counts tokens of
/// probability 0, as in llama.cpp, unless a cut removed them.
struct DynamicTemperature {
  float range = 0;     ///< >= 0; 0 = off: Sample::temperature as it is
  float exponent = 1;  ///< > 0
};

/// Mirostat 2 (Basu et al. 2021, algorithm 2; llama_sampler_init_mirostat_v2): tokens whose surprise -log2 p is above
/// mu are cut off. mu starts at 2 tau and changes by eta * (tau - the drawn token's surprise among the tokens left).
/// Each hypothesis has its own mu, which starts after a forced prefix. Acts last; llama.cpp applies only the
/// temperature before it.
struct Mirostat {
  float tau = 0;      ///< target surprise, in bits; >= 0; 0 = off. llama.cpp: 5
  float eta = 0.10f;  ///< learning rate of mu; > 0
};

/// Prefers tokens near a target probability (llama.cpp, llama_sampler_init_adaptive_p, pull request 17927). The
/// remaining tokens get the logits 5 - 10 d^2 / (1 + d), with d = |p - t| / 0.3 and t = 2 target - the mean probability
/// of the tokens drawn before, clamped to [0, 1]. In that mean the newest token counts 1, the one before it `decay`,
/// and so on; at the beginning, and after a forced prefix, the mean is `target`. Acts last.
struct AdaptiveP {
  float target = -1;    ///< at most 1; negative = off
  float decay = 0.90f;  ///< in [0, 0.99]
};

/// The samplers whose order can be set.
enum class Sampler : std::uint8_t { temperature, top_n_sigma, top_k, typical, top_p, min_p, xtc };

/// The name of its field in Sample.
constexpr char const* name(Sampler sampler) {
  switch (sampler) {
    case Sampler::temperature: return "temperature";
    case Sampler::top_n_sigma: return "top_n_sigma";
    case Sampler::top_k: return "top_k";
    case Sampler::typical: return "typical";
    case Sampler::top_p: return "top_p";
    case Sampler::min_p: return "min_p";
    case Sampler::xtc: return "xtc";
  }
  return "unknown";
}

/// The order in which samplers act, each at most once. Every active sampler must be in it.
class SamplerOrder {
 public:
  static constexpr std::size_t most = 7;

  /// \throws std::invalid_argument  for more than `most`
  constexpr SamplerOrder(std::initializer_list<Sampler> samplers) : count_(samplers.size()) {
    if (samplers.size() > most) require(false, "order", samplers.size(), "lists more samplers than there are");
    std::copy(samplers.begin(), samplers.end(), all_.begin());
  }
  /// Appends a sampler.
  constexpr void push_back(Sampler sampler) {
    if (count_ == most) require(false, "order", count_ + 1, "lists more samplers than there are");
    all_[count_++] = sampler;
  }
  /// The order of Hugging Face transformers (4.50, GenerationMixin._get_logits_processor): temperature, top_k, top_p,
  /// min_p, typical. top_n_sigma comes before them, and xtc, which Hugging Face does not have, after: the default of
  /// Sample.
  static constexpr SamplerOrder hugging_face() {
    return {Sampler::temperature, Sampler::top_n_sigma, Sampler::top_k, Sampler::top_p,
            Sampler::min_p,       Sampler::typical,     Sampler::xtc};
  }
  /// The order of llama.cpp (common_params_sampling::samplers): the temperature comes last. Its penalties, DRY and
  /// logit bias come before all samplers: they are rules.
  static constexpr SamplerOrder llama_cpp() {
    return {Sampler::top_n_sigma, Sampler::top_k, Sampler::typical,    Sampler::top_p,
            Sampler::min_p,       Sampler::xtc,   Sampler::temperature};
  }

  std::span<Sampler const> samplers() const { return std::span(all_).first(count_); }
  bool contains(Sampler sampler) const { return std::ranges::find(samplers(), sampler) != samplers().end(); }
  void check() const {
    for (auto const sampler : samplers())
      require(std::ranges::count(samplers(), sampler) == 1, "order", name(sampler),
              "is a sampler that is listed twice");
  }

 private:
  std::array<Sampler, most> all_{};
  std::size_t count_ = 0;
};

/// Cuts the tail off a distribution. Several cuts are applied in the order of the members (Hugging Face's), each to the
/// renormalised result of the one before. At least one token stays. Of equally probable tokens the lower one ranks
/// first.
struct Truncation {
  std::int32_t top_k = 0;  ///< the k most probable (Fan, Lewis and Dauphin 2018); 0 = all
  float top_p = 1;         ///< the most probable that together hold this much (Holtzman et al. 2020); in (0, 1]; 1 =
                           ///< all
  float min_p = 0;         ///< all that are at least this times as probable as the best (Nguyen et al. 2024); in [0,
                           ///< 1]; 0 = all
  float typical = 1;       ///< those whose information is nearest to the entropy and that together hold this much
                           ///< (Meister et al. 2023); in (0, 1]; 1 = all

  template <class = void>
  void check() const {
    require(top_k >= 0, "top_k", top_k, "must not be negative");
    require(top_p > 0 && top_p <= 1, "top_p", top_p, "must be in (0, 1]");
    require(min_p >= 0 && min_p <= 1, "min_p", min_p, "must be in [0, 1]");
    require(typical > 0 && typical <= 1, "typical", typical, "must be in (0, 1]");
  }
  bool off() const { return top_k == 0 && top_p >= 1 && min_p <= 0 && typical >= 1; }

  /// Requests the list that the first cut leaves; the whole line if there is no cut.
  template <class = void>
  void ask(Query& query, std::int32_t vocabulary) const {
    query.best = 0;
    if (top_k > 0) query.best = top_k;
    else if (top_p < 1) query.mass = top_p;
    else if (min_p > 0) query.within = min_p;
    else if (typical < 1) query.typical = typical;
    else query.best = vocabulary;
  }

  /// Applies the other cuts to that list. Returns a part of `list`, or of `sorted`, which is overwritten. O(n), with
  /// `typical` O(n log n).
  template <class = void>
  std::span<Candidate const> apply(std::span<Candidate const> list, std::vector<Candidate>& sorted) const {
    auto asked = top_k > 0;
    if (top_p < 1 && asked) list = list.first(detail::head(list, static_cast<double>(top_p) * detail::mass(list)));
    asked = asked || top_p < 1;
    if (min_p > 0 && asked && !list.empty())
      list =
          list.first(detail::above(list, static_cast<double>(list[0].log_prob) + std::log(static_cast<double>(min_p))));
    asked = asked || min_p > 0;
    if (typical < 1 && asked) {
      sorted.assign(list.begin(), list.end());
      list = std::span<Candidate const>(sorted).first(detail::sort_typical(sorted, static_cast<double>(typical)));
    }
    return list;
  }
};

/// Draws one of `list` in proportion to its probability, by the Gumbel-max trick: the argmax of log_prob +
/// gumbel(noise, token); ties: the lower token. The list need not be normalised or sorted, but must not be empty.
template <class = void>
Candidate draw(std::span<Candidate const> list, std::uint64_t noise) {
  auto best = list[0];
  if (list.size() == 1) return best;
  auto bar = static_cast<double>(best.log_prob) + gumbel(noise, best.token);
  for (auto const c : list.subspan(1)) {
    // gumbel <= -log(1 - uniform): most tokens need no logarithm
    auto const log_prob = static_cast<double>(c.log_prob);
    if (1 - uniform(noise, c.token) > std::exp(log_prob - bar)) continue;
    auto const value = log_prob + gumbel(noise, c.token);
    if (value > bar || (value == bar && c.token < best.token)) best = c, bar = value;
  }
  return best;
}

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

/// Draws outputs token by token from p(v) ~ exp(x(v) / temperature), where x are the model's scores, optionally
/// restricted to a part of the tokens (see Truncation) or by the samplers of SamplerChain, until eos or the maximum
/// length. An output cut at the maximum length is not `finished`.
///
/// Tokens never generated, and eos while the output is too short, are forbidden before the softmax: the remaining
/// tokens are normalised. `log_prob` and `score` are the log-probability of the output under that model, before any
/// truncation. They include the temperature only if no active cut comes before it in `order` and it is not dynamic.
///
/// Samplers that look at the tokens generated so far are logits processors: Penalties, Dry, TokenBias. Presets:
/// presets.hpp.
///
/// The n-th token of sample i of a sentence is the argmax of log p(v) + gumbel(noise(seed, i, n), v) over the remaining
/// tokens. So the same seed gives the same text in any batch and under any schedule. A sample does not depend on the
/// number of samples, and continues in the same way if its beginning is given as a prefix (except that Mirostat and
/// AdaptiveP do not take a prefix into account).
///
/// With a Watermark the argmax is over the key's numbers, or probabilities are changed by them, after all samplers; log_prob
/// stays the model's. The scheme gumbel with the function `sluice` draws in the expander as without a watermark; any other
/// needs a list of all remaining tokens: without truncation that is the whole line, sorted, O(V log V). Repeated contexts are
/// looked for in the output, O(length) per token.
///
/// The samples of one sentence share the prompt: it is run once, in one slot. One row per step for each sample that has
/// not ended. Without truncation the expander draws; but several samples draw their first token from a list of the
/// whole line, sorted once, O(V log V).
struct Sample {
  float temperature = 1;   ///< > 0; the nearer to 0, the nearer to Greedy
  std::int32_t top_k = 0;  ///< for this and the next three see Truncation; 0 = off
  float top_p = 1;         ///< 1 = off
  float min_p = 0;         ///< 0 = off
  float typical = 1;       ///< 1 = off
  float top_n_sigma =
      0;      ///< only tokens whose score is at most this many standard deviations of the line's scores below the best
              ///< (Tang et al. 2024; as llama.cpp's top-n-sigma); 0 = off
  Xtc xtc{};  ///< removes the most probable tokens now and then; off by default, like the next three
  DynamicTemperature dynamic_temperature{};  ///< temperature that depends on the entropy
  Mirostat mirostat{};                       ///< truncation for a constant mean surprise
  AdaptiveP adaptive_p{};                    ///< prefers tokens near a target probability
  std::int32_t min_keep =
      1;  ///< minimum number of tokens that top_p, min_p, typical and xtc leave (Hugging Face's min_tokens_to_keep);
          ///< not more than top_k
  SamplerOrder order = SamplerOrder::hugging_face();  ///< the order in which samplers act
  std::int32_t samples =
      1;                  ///< per sentence; >= 1. Returned in their order; a sample that has no possible token left is
                          ///< omitted
  bool distinct = false;  ///< drop duplicates, and sort by log_prob (ties by tokens): up to `samples` different
                          ///< hypotheses, best first
  LengthLimits length{};
  Watermark watermark{};  ///< marks that detect_watermark() finds; off by default

  /// The noise with which sample `sample` of a sentence draws token `position` of its output, forced prefix included.
  template <class = void>
  static std::uint64_t noise(std::uint64_t seed, std::int32_t sample, std::int32_t position) {
    return derive(derive(seed, static_cast<std::uint64_t>(sample)), static_cast<std::uint64_t>(position));
  }
  Truncation truncation() const { return {top_k, top_p, min_p, typical}; }
  SamplerChain chain() const {
    return {{temperature, truncation(), top_n_sigma, xtc, dynamic_temperature, mirostat, adaptive_p, min_keep, order}};
  }

  struct State : detail::OutputLimits {
    struct Drawn {
      double log_prob = 0;
      History::Node node = History::root;
      Token token = 0;  // the last token; to be fed
      Slot slot = -1;
      SamplerState sampler{};
      bool alive = true, finished = false, lost = false;  // lost: no token was possible
    };
    History history;
    std::uint64_t seed = 0;
    std::vector<Drawn> drawn;        // [samples]
    std::vector<Token> own;          // of settled()
    std::vector<Slot> unused;        // to be released
    std::vector<Candidate> scratch;  // of the truncation
    SamplerChain chain{};            // all options
    SamplerChain::Scratch left;
    detail::Marker marker;
    std::vector<std::vector<Token>> texts;  // [samples]: of the outputs, prefix included; if marked
    std::vector<detail::Mark> marks;        // [samples]: of their next token
    detail::MarkScratch weights;
    std::int32_t held = 0;       // tokens in the slots
    std::int32_t generated = 0;  // tokens, prefix included
    Token last = 0;              // the first token fed
    // first: one line serves all samples; forked: each sample has its slot
    bool first = true, forked = false, plain = true;  // plain: just a Truncation
  };

  template <class = void>
  void check() const {
    detail::require_slots("samples", samples);
    chain().check(), length.check(), watermark.check();
    require(samples == 1 || watermark.scheme != WatermarkScheme::gumbel || watermark.second > 0, "samples", samples,
            "would all be the same: the watermark's key draws each of them alike. Set watermark.second, or choose the "
            "scheme synthid");
  }
  std::int32_t slot_count() const { return samples; }

  template <class = void>
  void begin(State& s, Sentence const& sentence) const;
  template <class = void>
  void plan(State& s, Plan& plan) const;
  template <class = void>
  bool advance(State& s, Expansion const& answer) const;
  template <class = void>
  Progress progress(State const& s) const {
    if (s.first) return {s.held, 1, 1};
    auto const alive = std::count_if(s.drawn.begin(), s.drawn.end(), [](auto const& d) { return d.alive; });
    return {s.held, static_cast<std::int32_t>(alive)};
  }
  template <class = void>
  void settled(State& s, std::vector<Token>& tokens) const {
    tokens.clear();
    auto first = true;
    for (auto const& d : s.drawn) {  // tokens, not nodes: equal samples have separate nodes
      if (d.lost) continue;
      s.history.write(d.node, first ? tokens : s.own);
      if (!first)
        tokens.erase(std::mismatch(tokens.begin(), tokens.end(), s.own.begin(), s.own.end()).first, tokens.end());
      first = false;
    }
  }
  template <class = void>
  void finish(State const& s, Result& result) const;

 private:
  template <class = void>
  Query query(State const& s, std::int32_t sample) const;
  template <class = void>
  void mark(State& s) const;
  /// The candidates from which a sample draws, or from which the chain chooses.
  template <class = void>
  std::span<Candidate const> cut(State& s, Line const& line) const {
    return s.plain ? truncation().apply(line.best, s.scratch) : line.best;
  }
  template <class = void>
  void take(State& s, std::size_t sample, std::span<Candidate const> list) const;
  template <class = void>
  Candidate choose(State& s, std::size_t sample, std::span<Candidate const> list, std::uint64_t own) const {
    auto& state = s.drawn[sample].sampler;
    auto const drawn = [&](std::span<Candidate const> from) {
      if (from.size() == 1 || !s.marker.on()) return draw(from, own);
      auto const& mark = s.marks[sample];
      if (!mark.marked || s.marker.by_noise()) return draw(from, s.marker.noise(mark, own));
      return from[s.marker.draw(from, mark, own, s.weights)];
    };
    if (s.plain) return drawn(list);
    s.chain.apply(list, s.vocabulary->size, state, own, s.left);
    return s.chain.took(drawn(s.chain.candidates(s.left)).token, list, state, s.left);
  }
};

template <class Void>
void Sample::begin(State& s, Sentence const& sentence) const {
  s.begin(sentence, length);
  s.history.clear(s.prefix.size());
  s.seed = sentence.seed;
  s.chain = chain(), s.plain = s.chain.plain();
  s.drawn.assign(static_cast<std::size_t>(samples), {.sampler = s.chain.begin()});
  s.unused.clear();
  s.marker = detail::Marker(watermark);
  if (s.marker.on()) {
    s.texts.resize(s.drawn.size()), s.marks.resize(s.drawn.size());
    for (auto& text : s.texts) text.assign(sentence.prefix.begin(), sentence.prefix.end());
  }
  s.held = sentence.held, s.last = sentence.last;
  s.first = true, s.forked = false;
  s.generated = s.prefix.size();
}

/// Finds out how the next tokens are marked.
template <class Void>
void Sample::mark(State& s) const {
  if (!s.marker.on()) return;
  for (std::size_t i = 0; i < s.drawn.size(); ++i)
    if (s.drawn[i].alive)
      s.marks[i] = s.marker.mark(s.texts[i], noise(s.seed, static_cast<std::int32_t>(i), s.generated));
}

/// The query for the line that `sample` draws from; -1: all samples draw from it.
template <class Void>
Query Sample::query(State const& s, std::int32_t sample) const {
  Query q{.edits = s.edits(s.generated), .temperature = temperature};
  auto const own = sample >= 0 ? noise(s.seed, sample, s.generated) : 0;
  auto const marked = sample >= 0 && s.marker.on() && s.marks[static_cast<std::size_t>(sample)].marked;
  auto const alone = own != 0 && (!marked || s.marker.by_noise());  // the expander may draw
  if (!s.plain) {
    s.chain.ask(q, s.vocabulary->size, s.drawn[static_cast<std::size_t>((std::max)(sample, 0))].sampler,
                alone ? own : 0);
  } else if (alone && truncation().off()) q.best = 1, q.noise = own;
  else truncation().ask(q, s.vocabulary->size);
  if (q.noise != 0 && marked) q.noise = s.marks[static_cast<std::size_t>(sample)].place.noise;
  return q;
}

template <class Void>
void Sample::plan(State& s, Plan& plan) const {
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  mark(s);
  if (s.first) {
    plan.row(0, 0, s.held, {&s.last, 1});
    return plan.ask(query(s, samples == 1 ? 0 : -1));
  }
  for (std::size_t i = 0; i < s.drawn.size(); ++i) {
    auto const& d = s.drawn[i];
    if (!d.alive) continue;
    plan.row(s.forked ? d.slot : 0, d.slot, s.held, {&d.token, 1});
    plan.ask(query(s, static_cast<std::int32_t>(i)));
  }
  s.forked = true;
}

template <class Void>
bool Sample::advance(State& s, Expansion const& answer) const {
  if (s.bounds.max == 0) return true;
  ++s.held;
  if (s.first) {
    s.first = false;
    for (auto& d : s.drawn) d.log_prob = s.prefix.ranked();
    auto const list = cut(s, answer.back());
    for (std::size_t i = 0; i < s.drawn.size(); ++i) take(s, i, list);
    Slot slot = 0;
    for (auto& d : s.drawn)
      if (d.alive) d.slot = slot++;
  } else {
    std::size_t line = 0;
    for (std::size_t i = 0; i < s.drawn.size(); ++i)
      if (s.drawn[i].alive) take(s, i, cut(s, answer[line++]));
  }
  ++s.generated;
  return std::none_of(s.drawn.begin(), s.drawn.end(), [](auto const& d) { return d.alive; });
}

/// Draws the next token of one sample.
template <class Void>
void Sample::take(State& s, std::size_t sample, std::span<Candidate const> list) const {
  auto& d = s.drawn[sample];
  d.lost = list.empty();
  if (!d.lost) {
    auto const chosen = choose(s, sample, list, noise(s.seed, static_cast<std::int32_t>(sample), s.generated));
    if (s.marker.on()) s.texts[sample].push_back(chosen.token);
    d.node = s.history.add(d.node, chosen.token, chosen.log_prob);
    d.token = chosen.token, d.log_prob += static_cast<double>(chosen.log_prob);
    auto const full = s.generated + 1 >= s.bounds.max;
    d.finished = s.finished_by(chosen.token, s.generated + 1);
    d.alive = !d.finished && !full;
  } else {
    d.alive = false;
  }
  if (!d.alive && d.slot >= 0) s.unused.push_back(d.slot);
}

template <class Void>
void Sample::finish(State const& s, Result& result) const {
  result.hypotheses.clear();
  for (auto const& d : s.drawn) {
    if (d.lost) continue;
    auto& h = result.hypotheses.emplace_back();
    s.history.write(d.node, h);
    h.log_prob = h.score = d.log_prob, h.finished = d.finished;
  }
  if (result.hypotheses.empty()) return result.fail(Failure::no_token_left, "every token was impossible");
  if (!distinct) return s.prefix.complete(result);
  auto& all = result.hypotheses;
  std::sort(all.begin(), all.end(), [](Hypothesis const& a, Hypothesis const& b) { return a.tokens < b.tokens; });
  auto const same = [](Hypothesis const& a, Hypothesis const& b) { return a.tokens == b.tokens; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  std::sort(all.begin(), all.end(), [](Hypothesis const& a, Hypothesis const& b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.tokens < b.tokens;
  });
  s.prefix.complete(result);
}

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(Sample)
