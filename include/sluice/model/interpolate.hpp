// SPDX-License-Identifier: Apache-2.0
/// \file
/// Interpolate: shallow fusion with a language model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/log_mixture.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// For a language model that needs no source.
struct NoSource {
  static constexpr std::monostate nothing{};
  template <class Source>
  std::monostate const& operator()(Source const&) const {
    return nothing;
  }
};

}  // namespace detail

inline namespace SLUICE_ISA {

/// score = log p_M + weight * log p_L for every token, not renormalised (Gulcehre et al. 2015, "On Using Monolingual
/// Corpora in Neural Machine Translation", section 4.1; fairseq's --lm-weight). The language model is fed the same
/// tokens in the same slots. A token that is impossible for one of the two stays impossible. The log_probs of
/// hypotheses are these sums. With weight 0, the language model is never run. A negative weight subtracts the language
/// model's scores. Fused does the same, and more: other vocabularies, a bonus for words, what is encoded ahead.
///
/// Refers to both models, which must outlive it. A line costs both models' lines, and one softmax and one pass over V
/// for each. The result is the same bits in every batch if the models' lines are. A NaN or +infinity in one model's
/// line makes the line NaN. Forbid tokens after the softmax (BeamSearch::stage; the default): a softmax after edits
/// would normalise the sum.
///
/// \tparam F  function from a source of M to L's source within it, which must live as long: `&Pair::context`;
/// std::identity{} if both have the same source; omitted if L needs none (std::monostate)
// clang-format off
template <detail::ScoringModel M, detail::ScoringModel L, class F = detail::NoSource>
  requires std::same_as<std::invoke_result_t<F const&, typename M::Source const&>, typename L::Source const&>
class Interpolate
    : public detail::Claim<detail::KnownAbilities<M> && detail::KnownAbilities<L>,
                           detail::common(detail::known_abilities<M>(), detail::known_abilities<L>())> {
  // clang-format on
 public:
  using Source = typename M::Source;
  using Wrapped = M;  ///< see core/named.hpp
  static_assert(!GrowingModel<M>, "sluice: Interpolate: sources that grow are not passed on");

  /// \throws std::invalid_argument  if the weight is no number, or the vocabularies differ in size, bos, eos or never
  Interpolate(M& model, L& language, double weight, F source_of = {})
      : Interpolate::Claim(
            detail::common(sluice::abilities(std::as_const(model)), sluice::abilities(std::as_const(language)))),
        model_(model),
        language_(language),
        weight_(weight),
        source_of_(std::move(source_of)),
        vocabulary_(model.vocabulary()) {
    require(std::isfinite(weight), "Interpolate: weight", weight, "must be a number");
    detail::check_same(vocabulary_, language.vocabulary(), "Interpolate: language model", "the model");
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const {
    auto const ours = sluice::limits(std::as_const(model_)), theirs = sluice::limits(std::as_const(language_));
    auto both = detail::common(ours, theirs);
    both.log_prob = detail::highest_sum(ours.log_prob, weight_, theirs.log_prob);
    return both;
  }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    language_sources_.clear();
    if (fused())
      for (auto const* source : sources) language_sources_.push_back(&std::invoke(std::as_const(source_of_), *source));
    model_.start(sources, slot_numbers);
    if (!fused()) return;
    try {
      language_.start(std::span(std::as_const(language_sources_)), slot_numbers);
    } catch (...) {
      detail::release(model_, slot_numbers);
      throw;
    }
  }

  void release(std::span<Slot const> slot_numbers) {
    detail::release(model_, slot_numbers);
    if (fused()) detail::release(language_, slot_numbers);
  }

  /// Throws what a model throws, and std::logic_error if a model's answer has the wrong shape.
  Scores<float> step(std::span<Row const> rows) {
    mixture_.begin(detail::lines(rows), vocabulary_.size);
    mixture_.add_log_probs(model_.step(rows), 1);
    if (fused()) mixture_.add_log_probs(language_.step(rows), weight_);
    return mixture_.scores(Kind::log_probs);
  }

  bool proposes() const { return sluice::proposes(std::as_const(model_)); }
  void propose(std::span<Draft const> drafts) requires ProposingModel<M> { model_.propose(drafts); }
  void remember(Decoded const& decoded) requires RememberingModel<M> { model_.remember(decoded); }
  Attachments attachments() requires AttachingModel<M> { return model_.attachments(); }

 private:
  bool fused() const { return weight_ != 0; }

  M& model_;
  L& language_;
  double weight_;
  F source_of_;
  Vocabulary vocabulary_;
  std::vector<typename L::Source const*> language_sources_;
  detail::LogMixture mixture_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
