// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a sample may be asked beside temperature and truncation, and the order in which it is done.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace sluice::inline v0 {

/// Exclude top choices: with this probability, drawn for each token, all tokens of at least `threshold` but the least
/// probable of them are removed, unless fewer than Sample::min_keep would be left (p-e-w 2024, text-generation-webui; as in
/// llama.cpp, llama_sampler_init_xtc).
struct Xtc {
  float probability = 0;    ///< in [0, 1]; 0 = off
  float threshold = 0.10f;  ///< in [0, 1]; above 0.5 nothing is removed
};

/// The temperature follows the entropy H of the n tokens left: from temperature - range, where one token has everything, to
/// temperature + range, where all are alike, as (H / log n)^exponent (llama.cpp, llama_sampler_init_temp_ext; the lower end
/// is 0 at least, and at 0 the best token alone is left). n counts tokens of probability 0, as llama.cpp does, unless a cut took them away.
struct DynamicTemperature {
  float range = 0;     ///< >= 0; 0 = off: Sample::temperature as it is
  float exponent = 1;  ///< > 0
};

/// Mirostat 2 (Basu et al. 2021, algorithm 2; llama_sampler_init_mirostat_v2): tokens whose surprise -log2 p is above mu are
/// cut off, and mu, 2 tau at the beginning, moves by eta times what the drawn token's surprise, among those left, lacks of
/// tau. Each hypothesis has its own mu, which begins behind a forced prefix. Acts last; llama.cpp applies temperature alone before it.
struct Mirostat {
  float tau = 0;      ///< the surprise aimed at, in bits; >= 0; 0 = off. llama.cpp: 5
  float eta = 0.10f;  ///< how fast mu moves; > 0
};

/// Prefers tokens near a probability (llama.cpp, llama_sampler_init_adaptive_p, pull request 17927): what is left is drawn
/// from by the logits 5 - 10 d^2 / (1 + d), d = |p - t| / 0.3, where t is 2 target - a mean of the probabilities that the
/// tokens drawn before had, in [0, 1]. The newest counts 1, the one before it `decay`, and so on; at the beginning, and
/// behind a forced prefix, the mean is `target`. Acts last.
struct AdaptiveP {
  float target = -1;    ///< at most 1; negative = off
  float decay = 0.90f;  ///< in [0, 0.99]
};

/// What acts in an order that can be set.
enum class Sampler : std::uint8_t { temperature, top_n_sigma, top_k, typical, top_p, min_p, xtc };

/// As its field of Sample is called.
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

/// The order in which samplers act, each at most once. One that is on has to be in it.
class SamplerOrder {
 public:
  static constexpr std::size_t most = 7;

  /// \throws std::invalid_argument  for more than `most`
  constexpr SamplerOrder(std::initializer_list<Sampler> samplers) : count_(samplers.size()) {
    if (samplers.size() > most) require(false, "order", samplers.size(), "has more samplers than there are");
    std::copy(samplers.begin(), samplers.end(), all_.begin());
  }
  /// One more, behind the others.
  constexpr void push_back(Sampler sampler) {
    if (count_ == most) require(false, "order", count_ + 1, "has more samplers than there are");
    all_[count_++] = sampler;
  }
  /// Hugging Face transformers' (4.50, GenerationMixin._get_logits_processor): temperature, top_k, top_p, min_p, typical.
  /// top_n_sigma stands before them and xtc, which it has not, behind: Sample's default.
  static constexpr SamplerOrder hugging_face() {
    return {Sampler::temperature, Sampler::top_n_sigma, Sampler::top_k, Sampler::top_p,
            Sampler::min_p,       Sampler::typical,     Sampler::xtc};
  }
  /// llama.cpp's (common_params_sampling::samplers): the temperature comes last. Its penalties, DRY and logit bias come before
  /// all: they are rules.
  static constexpr SamplerOrder llama_cpp() {
    return {Sampler::top_n_sigma, Sampler::top_k, Sampler::typical,    Sampler::top_p,
            Sampler::min_p,       Sampler::xtc,   Sampler::temperature};
  }

  std::span<Sampler const> samplers() const { return std::span(all_).first(count_); }
  bool contains(Sampler sampler) const { return std::ranges::find(samplers(), sampler) != samplers().end(); }
  void check() const {
    for (auto const sampler : samplers())
      require(std::ranges::count(samplers(), sampler) == 1, "order", name(sampler), "is a sampler that comes twice");
  }

 private:
  std::array<Sampler, most> all_{};
  std::size_t count_ = 0;
};

}  // namespace sluice::inline v0
