// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/diverse_beam_search.hpp>

#include <llama/run.hpp>
#include <vector>

namespace generate {

int run_beam(Options const& o, Engine& engine, sluice::Grammar const& grammar) {
  sluice::BeamSearch beam{.width = o.width,
                          .n_best = o.n_best,
                          .length = {.min = o.min_length, .max = o.max_length},
                          .penalty = {.alpha = o.alpha},
                          .at_maximum = sluice::AtMaximum::truncate,  // as in greedy search
                          .one_end = true};
  if (o.search == SearchName::diverse) {
    beam.n_best = o.width;
    return run(o, engine, grammar, sluice::DiverseBeamSearch{.search = beam, .groups = o.groups, .n_best = o.n_best});
  }
  if (o.phrases.empty()) return run(o, engine, grammar, beam);
  std::vector<sluice::Phrase> phrases;
  for (auto const& text : o.phrases) phrases.push_back(engine.tokenizer().tokens(text, false));
  return run(o, engine, grammar,
             sluice::ConstrainedBeamSearch<sluice::Phrases>{.beam = beam, .constraints = sluice::Phrases(phrases)});
}

}  // namespace generate
