// SPDX-License-Identifier: Apache-2.0
/// \file
/// Projected: a model that gives hidden vectors, together with its output layer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/forwarding.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace sluice::inline v0 {

// clang-format off
/// Turns hidden vectors into whole lines of scores: `logits(hidden)` gives Scores, valid until its next call. Optional:
/// `vocabulary_size()`. DenseProjection is one.
template <class P, class AnswerType>
concept Projection = requires(P& projection, AnswerType const& hidden) { projection.logits(hidden).kind; };
// clang-format on

/// A model of hidden vectors and its output layer, as a model of scores, which Ensemble and Fused need. Outside
/// these, passing the projection to the decoder as its expander is faster, since that need not store whole lines.
///
/// Refers to the model and the projection, which must outlive it. Has the model's abilities.
template <Model M, Projection<Answer<M>> P>
class Projected : public detail::Forwarding<M> {
  using detail::Forwarding<M>::model_;

 public:
  using Source = typename M::Source;

  /// \throws std::invalid_argument  if the projection has another vocabulary size
  Projected(M& model, P& projection) : detail::Forwarding<M>(model), projection_(projection) {
    if constexpr (requires { projection.vocabulary_size(); }) {
      Vocabulary const vocabulary = model.vocabulary();
      require(projection.vocabulary_size() == vocabulary.size, "Projected: projection.vocabulary_size()",
              projection.vocabulary_size(), "must be that of the model, " + std::to_string(vocabulary.size));
    }
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    model_.start(sources, slot_numbers);
  }
  auto step(std::span<Row const> rows) { return projection_.logits(model_.step(rows)); }

  void release(std::span<Slot const> slot_numbers) requires ReleasingModel<M> { model_.release(slot_numbers); }
  template <class Encoded>
    requires EncodingModel<M>
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    model_.start(encoded, items, slot_numbers);
  }
  void propose(std::span<Draft const> drafts) requires ProposingModel<M> { model_.propose(drafts); }
  void remember(Decoded const& decoded) requires RememberingModel<M> { model_.remember(decoded); }

 private:
  P& projection_;
};

}  // namespace sluice::inline v0
