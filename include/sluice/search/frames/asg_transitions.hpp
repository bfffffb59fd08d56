// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scores of transitions between the labels of frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// What transitions add to the texts of AsgFrames, as a Rule of CtcBeamSearch: with it, a hypothesis' score sums, over its alignments,
/// the scores of frames and transitions. Between two labels of a text there is one transition, whatever the alignment; those of a label
/// to itself are charged by the model on every frame, one too many, which is taken back here when the label begins. So
/// Hypothesis::log_prob has what does not depend on how labels follow each other, and `score` has all.
///
/// A prefix costs N edits. Copies are cheap.
class AsgTransitions {
 public:
  struct State {
    Token last = -1;
  };

  /// Adds nothing.
  AsgTransitions() = default;
  /// \param transitions  [N, N]: the score of label `column` before label `row`; -infinity forbids. Those of the model
  /// \throws std::invalid_argument  for a matrix that is not square, a NaN, +infinity, or a transition of a label to itself that is no number
  template <class = void>
  explicit AsgTransitions(MatrixView<float const> const& transitions) {
    require(transitions.rows >= 1 && transitions.rows == transitions.columns, "transitions",
            std::to_string(transitions.rows) + " x " + std::to_string(transitions.columns),
            "must be a square of the number of labels");
    labels_ = static_cast<std::int32_t>(transitions.rows);
    std::vector<float> adds;
    for (std::int32_t label = 0; label < labels_; ++label) {
      auto const stays = transitions[label][static_cast<std::size_t>(label)];
      require(std::isfinite(stays), "transitions: of label " + std::to_string(label) + " to itself", stays,
              "must be a number");
      adds.push_back(-stays);  // the first label of a text
    }
    for (std::int32_t before = 0; before < labels_; ++before)
      for (std::int32_t label = 0; label < labels_; ++label) {
        auto const comes = transitions[label][static_cast<std::size_t>(before)];
        require(comes < HUGE_VALF, "transitions: from " + std::to_string(before) + " to " + std::to_string(label),
                comes, "must be a number, or -infinity");
        adds.push_back(comes + adds[static_cast<std::size_t>(label)]);
      }
    adds_ = std::make_shared<std::vector<float> const>(std::move(adds));
  }

  /// \throws std::invalid_argument  for a vocabulary of another number of labels
  template <class = void>
  State initial(Sentence const& sentence) const {
    require(adds_ == nullptr || sentence.vocabulary->size == labels_ + 1, "transitions: labels", labels_,
            "those of the frames are " + std::to_string(sentence.vocabulary->size - 1));
    return {};
  }
  State next(State, Token token) const { return {token}; }
  template <class = void>
  void edit(State const& state, Output const&, std::vector<Edit>& edits) const {
    if (adds_ == nullptr || state.last >= labels_) return;
    auto const* const adds = adds_->data() + std::ptrdiff_t{state.last + 1} * labels_;
    for (Token label = 0; label < labels_; ++label) edits.push_back({.token = label, .add = adds[label]});
  }

 private:
  std::shared_ptr<std::vector<float> const> adds_;  // [1 + N, N]: of each label as the first, and after each
  std::int32_t labels_ = 0;
};

}  // namespace sluice::inline v0
