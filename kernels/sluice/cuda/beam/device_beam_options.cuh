// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options of a DeviceBeam, and what it derives from a BeamSearch.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/device/step_options.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/search/beam_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::cuda {

/// The options of a DeviceBeam.
struct DeviceBeamOptions {
  std::int32_t sentences = 1;  ///< the most sentences at once; in [1, 2^20]
  /// The longest output, including forced prefix and eos; 0: the search's length.max, unless that is unlimited or
  /// depends on the source.
  std::int32_t length = 0;
  Kind kind = Kind::logits;  ///< of the model's scores
  StepOptions step{};        ///< `mapped_answers` has no effect here
};

namespace detail {

/// \throws std::invalid_argument  for invalid options, and for BeamSearch options that only the host supports, naming
///                                the option and its value
inline void check_device_beam(BeamSearch const& search, Vocabulary const& vocabulary,
                              DeviceBeamOptions const& options) {
  search.check(), vocabulary.check();
  auto const ends = static_cast<std::int64_t>(vocabulary.eos.size());
  auto const keep = search.candidates != 0 ? std::int64_t{search.candidates} : search.width * (1 + ends);
  require(search.finished == FinishedHypotheses::set_aside, "DeviceBeam: finished", static_cast<int>(search.finished),
          "must be FinishedHypotheses::set_aside on a device");
  require(search.at_maximum != AtMaximum::force_eos_free, "DeviceBeam: at_maximum", "force_eos_free",
          "is not there on a device");
  require(!search.pruning.by_total() && search.pruning.relative_local_threshold <= 0 &&
              search.pruning.max_per_parent >= search.width + ends && !(search.pruning.below_finished < Pruning::off),
          "DeviceBeam: pruning", "a threshold", "is not there on a device");
  require(!search.one_end, "DeviceBeam: one_end", "true", "is not there on a device");
  require(!search.early_stopping.ended_first, "DeviceBeam: early_stopping.ended_first", "true",
          "is not there on a device");
  require(search.sibling_penalty <= 0, "DeviceBeam: sibling_penalty", search.sibling_penalty,
          "is not there on a device");
  require(search.penalty.word_penalty == 0, "DeviceBeam: penalty.word_penalty", search.penalty.word_penalty,
          "is not there on a device");
  require(search.width + ends <= most_listed, "DeviceBeam: width", search.width,
          "must be at most 64, tokens of Vocabulary::eos included");
  require(keep <= LargeMerge::kept, "DeviceBeam: candidates", keep, "must be at most 256 for a sentence");
  require(options.sentences >= 1 && options.sentences <= 1 << 20, "DeviceBeam: sentences", options.sentences,
          "must be in [1, 1048576]");
  require(options.length >= 0 && options.length < LengthLimits::unlimited, "DeviceBeam: length", options.length,
          "must be at least 0, and a length");
  require(options.length > 0 || (search.length.max < LengthLimits::unlimited && search.length.max_factor <= 0),
          "DeviceBeam: length", options.length, "must be given where the search's length.max is no number");
}

/// The length of the longest output.
inline std::int32_t longest_of(BeamSearch const& search, DeviceBeamOptions const& options) {
  return options.length > 0 ? options.length : search.length.max;
}

inline BeamRules rules_of(BeamSearch const& search, Vocabulary const& vocabulary, Kind kind) {
  BeamRules rules;
  rules.width = search.width, rules.ends = static_cast<std::int32_t>(vocabulary.eos.size());
  rules.best = (std::min)(search.width + rules.ends, vocabulary.size);
  rules.keep = search.candidates != 0 ? search.candidates : search.width * (1 + rules.ends);
  rules.n_best = search.n_best, rules.needed = search.early_stopping.needed(search.width);
  rules.most_ended = (std::max)({rules.width, rules.n_best, rules.needed});
  rules.surplus = search.surplus, rules.guard_prefix = search.guard_prefix;
  rules.hopeful = search.early_stopping.rule == EarlyStopping::Rule::never_early && search.penalty.alpha > 0;
  rules.log_probs = kind == Kind::log_probs;
  rules.rule = search.early_stopping.rule, rules.at_maximum = search.at_maximum, rules.stage = search.stage;
  return rules;
}

/// The divisors for outputs of 0 to `longest` tokens, computed on the host, since a device's pow() gives other numbers.
/// \throws std::invalid_argument  if scores would not be numbers
inline std::vector<double> divisors_of(BeamSearch const& search, std::int32_t longest) {
  std::vector<double> divisors;
  for (std::int32_t length = 0; length <= longest; ++length) {
    divisors.push_back(search.penalty.divisor(length));
    require(std::isfinite(divisors.back()) && divisors.back() > 0, "DeviceBeam: penalty.alpha", search.penalty.alpha,
            "divides scores of long outputs by no number");
  }
  return divisors;
}

}  // namespace detail

}  // namespace sluice::inline v0::cuda
