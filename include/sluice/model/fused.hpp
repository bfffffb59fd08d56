// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shallow fusion: a model, a language model over its own vocabulary, and a bonus for words.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/model/detail/fused_lines.hpp>
#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
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

/// How Fused adds.
struct FusedOptions {
  double weight = 0.3;    ///< of the language model; < 0 subtracts it
  double word_bonus = 0;  ///< added for each token of `words`
  /// Tokens of the model that count as words, for `word_bonus`; empty: all but eos. Those that begin a word are usual.
  std::vector<Token> words{};
  /// [V of the model]: the language model's token for each of the model's; < 0: none, `unknown` stands for it. Empty: both
  /// have the same vocabulary.
  std::vector<Token> tokens{};
  Token unknown = -1;           ///< the language model's token for tokens that it has not; < 0: these are impossible
  double unknown_log_prob = 0;  ///< added to the log-probability of each of them, before the weight
  bool normalise = false;       ///< the answer is a softmax of the sum (Kind::logits): for sampling
};

namespace detail {

/// F gives no source, so that what is encoded ahead is the model's alone.
template <class M, class F>
inline constexpr bool fuses_encoded = EncodingModel<M>&& std::same_as<F, NoSource>;

template <class M, class F>
struct EncodedOfFused {};
template <class M, class F>
  requires(fuses_encoded<M, F>)
struct EncodedOfFused<M, F> {
  using Encoded = typename M::Encoded;
};

/// The abilities that both have; rows go to both as they are.
constexpr Abilities common_of_rows(Abilities a, Abilities b) {
  auto both = common(a, b);
  both.trees = a.trees && b.trees;
  return both;
}

}  // namespace detail

inline namespace SLUICE_ISA {

/// Shallow fusion: score = log p_M + weight * log p_L + word_bonus * words, for every token, under any search (Gulcehre et al. 2015;
/// Hannun et al. 2014 for the bonus). L is any model: an n-gram (NGramModel), a network, an engine. It is fed what the model is fed, in
/// the same slots, as its own tokens. A token that is impossible for one of the two stays impossible. The log_probs of hypotheses
/// are these sums. With weight 0, L is never run.
///
/// A language model that was learnt from the model's own training text is subtracted by a second one (the density ratio of McDermott
/// et al. 2019): `Fused without(model, internal, {.weight = -0.2}); Fused both(without, language, {.weight = 0.5});`.
///
/// What M encodes ahead, attaches and guesses is passed on, and trees are taken if both take them.
///
/// Refers to both models, which must outlive it. A line costs both models' lines, one softmax over those that are logits, and one pass
/// over V. A NaN or +infinity in one model's line makes the line NaN; a language model with for_each_line(rows, f), as NGramModel has,
/// promises that its lines, log-probabilities, have none. Forbid tokens after the softmax (BeamSearch::stage; the
/// default). ExactSearch, BestFirstBeam and the stop rule EarlyStopping::Rule::exact need scores that only fall, and are refused with
/// another weight than >= 0 or a word_bonus > 0 (Limits::log_prob; LengthPenalty::word_penalty may reward tokens).
///
/// \tparam F  function from a source of M to L's source within it, which must live as long: `&Pair::context`; std::identity{} if both
/// have the same source; omitted if L needs none (std::monostate)
// clang-format off
template <detail::ScoringModel M, detail::ScoringModel L, class F = detail::NoSource>
  requires std::same_as<std::invoke_result_t<F const&, typename M::Source const&>, typename L::Source const&>
class Fused
    : public detail::EncodedOfFused<M, F>,
      public detail::Claim<detail::KnownAbilities<M> && detail::KnownAbilities<L>,
                           detail::common_of_rows(detail::known_abilities<M>(), detail::known_abilities<L>())> {
  // clang-format on
  static constexpr bool ahead = detail::fuses_encoded<M, F>;
  static_assert(!GrowingModel<M>, "sluice: Fused: sources that grow are not passed on");

 public:
  using Source = typename M::Source;
  using Wrapped = M;  ///< see core/named.hpp

  /// \throws std::invalid_argument  if a number is none, a token is outside its vocabulary, or no map is given and the vocabularies
  ///     differ in size, bos, eos or never
  Fused(M& model, L& language, FusedOptions options = {}, F source_of = {})
      : Fused::Claim(detail::common_of_rows(sluice::abilities(std::as_const(model)),
                                            sluice::abilities(std::as_const(language)))),
        model_(model),
        language_(language),
        options_(std::move(options)),
        source_of_(std::move(source_of)),
        vocabulary_(model.vocabulary()) {
    check(language.vocabulary());
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  Limits limits() const {
    auto const ours = sluice::limits(std::as_const(model_)), theirs = sluice::limits(std::as_const(language_));
    auto both = detail::common(ours, theirs);
    auto const most = theirs.log_prob + (scored_.empty() ? 0 : (std::max)(options_.unknown_log_prob, 0.0));
    both.log_prob = options_.normalise ? 0
                                       : detail::highest_sum(ours.log_prob, options_.weight, most) +
                                             (std::max)(options_.word_bonus, 0.0);
    return both;
  }
  std::int32_t source_length(Source const& source) const {
    return sluice::source_length(std::as_const(model_), source);
  }
  bool encodes() const { return ahead && sluice::encodes(std::as_const(model_)); }
  bool proposes() const { return sluice::proposes(std::as_const(model_)); }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    sources_.clear();
    if (fused())
      for (auto const* source : sources) sources_.push_back(&std::invoke(std::as_const(source_of_), *source));
    start_both(slot_numbers, [&] { model_.start(sources, slot_numbers); });
  }
  auto encode(std::span<Source const* const> sources) const requires(ahead) {
    return std::as_const(model_).encode(sources);
  }
  template <class Batch>
    requires(ahead)
  void start(Batch& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    if constexpr (ahead) sources_.assign(slot_numbers.size(), &detail::NoSource::nothing);
    start_both(slot_numbers, [&] { model_.start(encoded, items, slot_numbers); });
  }
  void release(std::span<Slot const> slot_numbers) {
    detail::release(model_, slot_numbers);
    if (fused()) detail::release(language_, slot_numbers);
  }

  /// Throws what a model throws, and std::logic_error if a model's answer has the wrong shape.
  Scores<float> step(std::span<Row const> rows) {
    lines_.begin(detail::lines(rows), vocabulary_.size);
    auto const ours = model_.step(rows);
    if (!fused()) {
      lines_.add(ours, bonus_);
    } else if constexpr (requires { language_.for_each_line(rows, [](std::span<float const>) {}); }) {
      lines_.check(ours, vocabulary_.size);
      std::ptrdiff_t i = 0;
      language_.for_each_line(translated(rows),
                              [&](std::span<float const> line) { lines_.add_line(i++, ours, line, addition()); });
    } else {
      lines_.add(ours, language_.step(translated(rows)), addition());
    }
    return lines_.scores(options_.normalise ? Kind::logits : Kind::log_probs);
  }

  void propose(std::span<Draft const> drafts) requires ProposingModel<M> { model_.propose(drafts); }
  void remember(Decoded const& decoded) requires RememberingModel<M> { model_.remember(decoded); }
  Attachments attachments() requires AttachingModel<M> { return model_.attachments(); }

 private:
  bool fused() const { return options_.weight != 0; }
  detail::FusedLines::Addition addition() const {
    return {static_cast<float>(options_.weight), bonus_, scored_, extra_, columns_};
  }

  template <class Start>
  void start_both(std::span<Slot const> slot_numbers, Start&& start_model) {
    start_model();
    if (!fused()) return;
    try {
      language_.start(std::span<typename L::Source const* const>(sources_), slot_numbers);
    } catch (...) {
      detail::release(model_, slot_numbers);
      throw;
    }
  }

  void check(Vocabulary const& theirs) {
    auto& o = options_;
    require(std::isfinite(o.weight), "Fused: weight", o.weight, "must be a number");
    require(std::isfinite(o.word_bonus), "Fused: word_bonus", o.word_bonus, "must be a number");
    require(!std::isnan(o.unknown_log_prob) && o.unknown_log_prob < HUGE_VAL, "Fused: unknown_log_prob",
            o.unknown_log_prob, "must be a number, or -infinity");
    auto const size = static_cast<std::size_t>(vocabulary_.size);
    for (auto const token : o.words)
      require(vocabulary_.contains(token), "Fused: words", token, "is outside the vocabulary");
    if (o.word_bonus != 0) {
      auto const bonus = static_cast<float>(o.word_bonus);
      bonus_.assign(size, o.words.empty() ? bonus : 0);
      for (auto const token : o.words) bonus_[static_cast<std::size_t>(token)] = bonus;
      if (o.words.empty())
        for (auto const token : vocabulary_.eos) bonus_[static_cast<std::size_t>(token)] = 0;
    }
    columns_ = theirs.size;
    if (o.tokens.empty()) return detail::check_same(vocabulary_, theirs, "Fused: language model", "the model");
    require(o.tokens.size() == size, "Fused: tokens.size()", o.tokens.size(),
            "must be that of the model's vocabulary, " + std::to_string(size));
    require(o.unknown < theirs.size, "Fused: unknown", o.unknown, "is outside the language model's vocabulary");
    scored_.resize(size), fed_.resize(size), extra_.assign(size, 0);
    for (std::size_t v = 0; v < size; ++v) {
      auto const token = o.tokens[v];
      require(token < theirs.size, "Fused: tokens", token, "is outside the language model's vocabulary");
      scored_[v] = token >= 0 ? token : o.unknown;
      fed_[v] = scored_[v] >= 0 ? scored_[v] : theirs.bos;
      if (token < 0) extra_[v] = static_cast<float>(o.unknown_log_prob);
    }
    auto const begin = static_cast<std::size_t>(vocabulary_.bos);
    if (o.tokens[begin] < 0) fed_[begin] = theirs.bos;
  }

  /// The rows in the language model's tokens.
  std::span<Row const> translated(std::span<Row const> rows) {
    if (fed_.empty()) return rows;
    std::size_t count = 0;
    for (auto const& row : rows) count += row.tokens.size();
    tokens_.resize(count), rows_.assign(rows.begin(), rows.end());
    auto* to = tokens_.data();
    for (auto& row : rows_) {
      auto* const begin = to;
      for (auto const token : row.tokens) *to++ = fed_[static_cast<std::size_t>(token)];
      row.tokens = {begin, to};
    }
    return rows_;
  }

  M& model_;
  L& language_;
  FusedOptions options_;
  F source_of_;
  Vocabulary vocabulary_;
  std::int32_t columns_ = 0;          // the language model's V
  std::vector<Token> scored_, fed_;   // [V]: the language model's token; empty: the same
  std::vector<float> extra_, bonus_;  // [V]; empty: 0
  std::vector<typename L::Source const*> sources_;
  std::vector<Row> rows_;
  std::vector<Token> tokens_;
  detail::FusedLines lines_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
