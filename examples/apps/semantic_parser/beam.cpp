// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <semantic_parser/decoding.hpp>

namespace semantic_parser {

Outcome decode_beam(Data const& data, std::shared_ptr<Weights const> const& weights, Options const& options) {
  // FIXED is the variable width without pruning: what has ended stays, costs nothing, and leaves when nothing alive is
  // better; the sentence ends when all k have.
  auto const variable = options.search == SearchName::variable;
  auto beam = variable ? sluice::presets::varstream(options.width, options.absolute_threshold, options.max_per_parent)
                       : sluice::presets::varstream(options.width, sluice::Pruning::off, options.width);
  beam.n_best = options.width;
  beam.length.max = longest(data);
  beam.penalty.kind = sluice::LengthPenalty::Kind::none;  // these lists are in the order of log-probability
  beam.at_maximum = variable ? sluice::AtMaximum::best_unfinished : sluice::AtMaximum::truncate;
  return decode(data, SemanticParser(weights), options, beam);
}

}  // namespace semantic_parser
