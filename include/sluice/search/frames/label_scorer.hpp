// SPDX-License-Identifier: Apache-2.0
/// \file
/// Language models that score labels within a search over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <concepts>
#include <variant>

namespace sluice::inline v0 {

// clang-format off
/// A language model of labels with a small state, which follows each hypothesis; blanks do not reach it. NGramLabels is
/// one.
///
///  - `start()`: the state before the first label;
///  - `advance(state, label)`: the state after the label, and the label's log-probability (natural);
///  - `end(state)`: the log-probability that the output ends here.
template <class L>
concept LabelScorer = std::copyable<typename L::State> &&
  requires(L const& scorer, typename L::State& state, typename L::State const& same, Token label) {
    { scorer.start() } -> std::same_as<typename L::State>;
    { scorer.advance(state, label) } -> std::convertible_to<double>;
    { scorer.end(same) } -> std::convertible_to<double>;
  };
// clang-format on

/// No language model.
struct NoLabelScorer {
  using State = std::monostate;
  State start() const { return {}; }
  double advance(State&, Token) const { return 0; }
  double end(State const&) const { return 0; }
};

}  // namespace sluice::inline v0
