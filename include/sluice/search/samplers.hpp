// SPDX-License-Identifier: Apache-2.0
/// \file
/// The samplers of Sample: what each of them is told, and their order.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

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

/// Draws one of `list` in proportion to its probability, by the Gumbel-max trick: the argmax of log_prob +
/// gumbel(noise, token); ties: the lower token. The list need not be normalised or sorted, but must not be empty.
SLUICE_LAZY Candidate draw(std::span<Candidate const> list, std::uint64_t noise) {
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

}  // namespace sluice::inline v0
