// SPDX-License-Identifier: Apache-2.0
/// \file
/// GreenList: a watermark for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/watermark.hpp>

#include <memory>
#include <vector>

namespace sluice::inline v0 {

/// Adds Watermark::delta to the scores of green tokens (Kirchenbauer et al. 2023, Algorithm 2; or sbw), in any search: Greedy
/// and beams too, where nothing is drawn. detect_watermark() finds the marks with the same Watermark. Sample::watermark does
/// it after its samplers, this before them. Where the output so far ends in a context that it had before, nothing is added.
/// Off without a scheme.
///
/// In a beam it acts at the search's stage: after the softmax (the default), the log-probability and score of an output hold
/// delta for each green token, so hypotheses compete with it, as with Hugging Face's.
///
/// O(V) per line: a number for each token, and an edit for each green one.
struct GreenList {
  Watermark watermark{};

  /// Whether outputs' log-probabilities may rise. ExactSearch and BestFirstBeam do not compile with this rule.
  bool raising() const { return watermark.on(); }

  void check() const {
    watermark.check();
    require(!watermark.on() || watermark.scheme == WatermarkScheme::red_green ||
                watermark.scheme == WatermarkScheme::sbw,
            "watermark.scheme", name(watermark.scheme), "draws tokens, which a rule cannot: give it to Sample");
  }
  /// The watermark, ready; null: off.
  struct State {
    std::shared_ptr<detail::Marker const> marker{};
  };
  template <class = void>
  State initial(Sentence const&) const {
    return {watermark.on() ? std::make_shared<detail::Marker const>(watermark) : nullptr};
  }
  State next(State const& state, Token) const { return state; }
  template <class = void>
  void edit(State const& state, Output const& output, std::vector<Edit>& edits) const {
    if (state.marker == nullptr) return;
    auto const mark = state.marker->mark_with(output.tokens, false);
    if (!mark.marked) return;
    for (Token token = 0; token < output.vocabulary.size; ++token)
      if (state.marker->is_green(mark, token)) edits.push_back({token, watermark.delta, 1});
  }
};

}  // namespace sluice::inline v0
