// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <translate/beam.hpp>

namespace translate {

namespace {

/// The options of the preset, overridden by those of the command line.
sluice::BeamSearch rules(Options const& options) {
  auto const k = options.width;
  auto const penalty = options.length_penalty;
  if (!options.preset) return {.width = k, .penalty = {.alpha = penalty.value_or(1)}};
  // ctranslate2 stops by another rule without a penalty, so that it is told at once.
  if (*options.preset == PresetName::ctranslate2) return sluice::presets::ctranslate2(k, penalty.value_or(1));
  auto search = [&] {
    switch (*options.preset) {
      case PresetName::huggingface: return sluice::presets::huggingface(k);
      case PresetName::sockeye: return sluice::presets::sockeye(k);
      case PresetName::marian: return sluice::presets::marian(k);
      case PresetName::varstream: return sluice::presets::varstream(k);
      case PresetName::ctranslate2:
      case PresetName::fairseq: break;
    }
    return sluice::presets::fairseq(k);
  }();
  search.penalty.alpha = penalty.value_or(search.penalty.alpha);
  return search;
}

}  // namespace

sluice::BeamSearch make_beam_search(Options const& options) {
  auto search = rules(options);
  search.n_best = options.candidates;
  search.length = {.min = options.min_length, .max = options.max_length};
  auto& pruning = search.pruning;
  pruning.absolute_threshold = options.absolute_threshold.value_or(pruning.absolute_threshold);
  pruning.relative_threshold = options.relative_threshold.value_or(pruning.relative_threshold);
  pruning.max_per_parent = options.max_per_parent.value_or(pruning.max_per_parent);
  return search;
}

}  // namespace translate
