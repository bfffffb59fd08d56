// SPDX-License-Identifier: Apache-2.0
/// \file
/// Samplers as options of a command line, under llama.cpp's names.
#pragma once

#include <sluice/core/logits_processor_list.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/search/sample.hpp>

#include <text/lines.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace text {

/// Sample's samplers besides temperature and truncation, their order, and the penalties.
struct Samplers {
  sluice::Sample sample{};
  sluice::Penalties penalties{};
  sluice::Dry dry{};
  std::string order = "hugging_face";
  bool given = false;  // any of them

  /// \param add  (name, value, type, text) -> CLI::Option*
  /// \returns those
  template <class Option, class Add>
  std::vector<Option*> add_by(Add const& add) {
    return {
        add("--top-n-sigma", sample.top_n_sigma, "N", "samples: keep scores at most N deviations below the best (off)"),
        add("--min-keep", sample.min_keep, "N", "samples: minimum number of tokens kept by truncation (1)"),
        add("--xtc-probability", sample.xtc.probability, "P",
            "samples: probability of excluding the most probable tokens (0)"),
        add("--xtc-threshold", sample.xtc.threshold, "P",
            "samples: exclude tokens of at least P but the least probable (0.1)"),
        add("--dynatemp-range", sample.dynamic_temperature.range, "T", "samples: temperature +- T, by entropy (0)"),
        add("--dynatemp-exp", sample.dynamic_temperature.exponent, "X", "samples: exponent of the entropy in that (1)"),
        add("--mirostat-ent", sample.mirostat.tau, "TAU",
            "samples: mirostat 2 with a target surprise of TAU bits (off)"),
        add("--mirostat-lr", sample.mirostat.eta, "ETA", "samples: learning rate of mirostat (0.1)"),
        add("--adaptive-target", sample.adaptive_p.target, "P", "samples: prefer tokens of probability P (off)"),
        add("--adaptive-decay", sample.adaptive_p.decay, "D",
            "samples: decay of the average over earlier tokens (0.9)"),
        add("--samplers", order, "ORDER", "samples: hugging_face, llama_cpp or a list: top_k,top_p,temperature"),
        add("--repeat-last-n", penalties.window, "N",
            "samples: number of last tokens that penalties consider; -1: all (64)"),
        add("--repeat-penalty", penalties.repetition, "P", "samples: penalty factor for tokens that occurred (1)"),
        add("--frequency-penalty", penalties.frequency, "P", "samples: subtracted for each occurrence (0)"),
        add("--presence-penalty", penalties.presence, "P", "samples: subtracted once if the token occurred (0)"),
        add("--dry-multiplier", dry.multiplier, "M", "samples: DRY, a penalty for longer repetitions (0)"),
        add("--dry-base", dry.base, "B", "samples: DRY grows by a factor B for each token (1.75)"),
        add("--dry-allowed-length", dry.allowed_length, "N", "samples: DRY penalizes repetitions from N tokens on (2)"),
        add("--dry-penalty-last-n", dry.window, "N",
            "samples: number of last tokens that DRY considers; -1: all (64)")};
  }
  /// The rest of `sample`, once options are read.
  /// \throws InputError  for invalid values
  void check() {
    static std::map<std::string, sluice::Sampler> const names{{"temperature", sluice::Sampler::temperature},
                                                              {"top_n_sigma", sluice::Sampler::top_n_sigma},
                                                              {"top_k", sluice::Sampler::top_k},
                                                              {"typical", sluice::Sampler::typical},
                                                              {"top_p", sluice::Sampler::top_p},
                                                              {"min_p", sluice::Sampler::min_p},
                                                              {"xtc", sluice::Sampler::xtc}};
    if (order == "llama_cpp") {
      sample.order = sluice::SamplerOrder::llama_cpp();
    } else if (order != "hugging_face") {
      sluice::SamplerOrder list{};
      std::istringstream stream(order);
      for (std::string name; std::getline(stream, name, ',');) {
        if (!names.contains(name)) throw InputError("--samplers: there is no '" + name + "'");
        if (list.contains(names.at(name))) throw InputError("--samplers: '" + name + "' comes twice");
        list.push_back(names.at(name));
      }
      sample.order = list;
    }
    try {
      sample.check(), penalties.check(), dry.check();
    } catch (std::invalid_argument const& error) {
      throw InputError(error.what());
    }
  }
  /// \param options  those given and others
  /// \throws InputError  for an option that has no effect, because none that it belongs to is given
  template <class Option>
  void check_effects(std::vector<Option*> const& options) const {
    struct Effect {
      std::vector<std::string> dependent, needed;  // one of these
    };
    static std::vector<Effect> const effects{
        {{"--xtc-threshold"}, {"--xtc-probability"}},
        {{"--dynatemp-exp"}, {"--dynatemp-range"}},
        {{"--mirostat-lr"}, {"--mirostat-ent"}},
        {{"--adaptive-decay"}, {"--adaptive-target"}},
        {{"--repeat-last-n"}, {"--repeat-penalty", "--frequency-penalty", "--presence-penalty"}},
        {{"--dry-base", "--dry-allowed-length", "--dry-penalty-last-n", "--dry-sequence-breaker"},
         {"--dry-multiplier"}}};
    auto const is_given = [&](std::string const& name) {
      return std::any_of(options.begin(), options.end(),
                         [&](auto const* option) { return option->get_name() == name && option->count() > 0; });
    };
    for (auto const& [dependent, needed] : effects) {
      if (std::any_of(needed.begin(), needed.end(), is_given)) continue;
      std::string names;
      for (auto const& name : needed) names += (names.empty() ? "" : name == needed.back() ? " or " : ", ") + name;
      for (auto const& name : dependent)
        if (is_given(name)) throw InputError(name + " has no effect without " + names);
    }
    if (sample.xtc.probability > 0 && sample.xtc.threshold > 0.5f)
      throw InputError("--xtc-probability has no effect with --xtc-threshold above 0.5, as no two tokens have that");
  }
  /// Those that look at the tokens generated so far.
  sluice::LogitsProcessorList processors() const { return {penalties, dry}; }
};

}  // namespace text
