// SPDX-License-Identifier: Apache-2.0
/// \file
/// The proposer that is a draft model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/slot_tokens.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/detail/draft_trees.hpp>
#include <sluice/speculative/detail/marked_acceptance.hpp>
#include <sluice/speculative/speculated.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#define SLUICE_BAD_DRAFT                                                                                               \
  "sluice: a draft model must be ragged, take blocks and roll back (sluice::Restarting gives roll-back)"

namespace sluice::inline v0 {

/// A proposer that is a smaller model: it makes its guesses token by token, for all sentences of a step together (speculative
/// decoding: Leviathan et al. 2023; Xia et al. 2023 for encoder-decoders). The draft model has its own slots under the
/// same numbers, feeds itself the tokens that were accepted, and rolls back by itself. It reads the same sources and
/// has the same vocabulary.
///
/// `Choice` says how the draft model chooses tokens: acceptance::Exact takes its best token; acceptance::Sampling{...}
/// takes what Sample would draw with the sentence's seed. Use acceptance::Sampling where Blockwise samples. A guess
/// costs one call of the draft model for all sentences that still want one.
///
/// For a search that takes trees, a beam of the draft model makes them, as wide as the number of paths that the search
/// takes, with one call for all guesses of a depth. If guesses are to be drawn (acceptance::Rejection), they are drawn
/// from the draft model's 16 most probable tokens, at the temperature of `Choice`, if it has one.
///
/// Refers to the draft model, which must outlive it.
template <Model D, class E = LogSoftmaxTopK, Acceptance Choice = acceptance::Exact>
class SLUICE_ABI_TAG DraftModel {
  static_assert(Expander<E, Answer<D>>, "sluice: E does not expand what the draft answers");
  static constexpr Abilities needed{.ragged = true, .blocks = true, .roll_back = true};
  static_assert(!detail::KnownAbilities<D> || detail::known_abilities<D>().include(needed), SLUICE_BAD_DRAFT);
  template <class M>
  struct EncodedBy {
    using Encoded = void;
  };
  template <EncodingModel M>
  struct EncodedBy<M> {
    using Encoded = typename M::Encoded;
  };

 public:
  using Source = typename D::Source;
  using Encoded = typename EncodedBy<D>::Encoded;  ///< void unless the draft model encodes

  /// \throws std::invalid_argument  if the draft model lacks a needed ability
  explicit DraftModel(D& draft, E expander = {}, Choice choice = {})
      : draft_(draft), expander_(std::move(expander)), choice_(choice) {
    choice_.check();
    if constexpr (marks) marks_.marker = detail::marker_of(choice_);
    if (!sluice::abilities(std::as_const(draft)).include(needed)) throw std::invalid_argument(SLUICE_BAD_DRAFT);
  }

  /// \throws std::invalid_argument  if the model has another vocabulary
  void bind(Vocabulary const& vocabulary) {
    detail::check_same(vocabulary, draft_.vocabulary(), "DraftModel: draft", "the model");
    vocabulary_ = vocabulary;
  }
  bool encodes() const { return sluice::encodes(std::as_const(draft_)); }
  Limits limits() const { return sluice::limits(std::as_const(draft_)); }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    clear(slot_numbers);
    draft_.start(sources, slot_numbers);
    note_started(slot_numbers);
  }
  auto encode(std::span<Source const* const> sources) const requires EncodingModel<D> {
    return std::as_const(draft_).encode(sources);
  }
  template <class Batch>
    requires EncodingModel<D>
  void start(Batch& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    clear(slot_numbers);
    draft_.start(encoded, items, slot_numbers);
    note_started(slot_numbers);
  }
  void release(std::span<Slot const> slot_numbers) {
    started_here_.clear();  // the model's forks are not forks of the draft model
    for (auto const slot : slot_numbers) {
      drafted_.clear(slot);
      auto const i = static_cast<std::size_t>(slot);
      if (i < started_.size() && std::exchange(started_[i], std::uint8_t{0}) != 0) started_here_.push_back(slot);
    }
    if (!started_here_.empty()) detail::release(draft_, started_here_);
  }

  void propose(std::span<Draft const> drafts, SlotTexts const& all) {
    texts_.resize((std::max)(texts_.size(), drafts.size()));
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      texts_[i].clear();
      all.append(drafts[i], texts_[i]);
    }
    order_.resize(drafts.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(),  // rows ascend
              [&](std::size_t a, std::size_t b) { return drafts[a].slot < drafts[b].slot; });
    branch(drafts);
    for (std::int32_t n = 0; ask(drafts, n); ++n) {
      auto const answer = expander_.expand(draft_.step(std::span<Row const>(rows_)), queries_, groups_);
      drafted_.apply(rows_);
      for (std::size_t row = 0; row < who_.size(); ++row) {
        auto const& draft = drafts[who_[row]];
        auto const guess = own(answer[row], draft, n, texts_[who_[row]]).token;
        if (guess < 0) continue;
        draft.tokens->push_back(guess);
        texts_[who_[row]].push_back(guess);
      }
    }
  }

 private:
  static constexpr bool marks = detail::MarkingAcceptance<Choice>;  // Watermark
  /// The mark of guess n after `text`, which ends in the n guesses before it.
  auto mark(Draft const& draft, std::int32_t n, std::span<Token const> text) const requires marks {
    auto const output = (std::min)(text.size(), static_cast<std::size_t>(draft.position + n));
    return detail::draft_mark_of(choice_, marks_.marker, text.last(output), draft.seed, draft.position + n);
  }
  Candidate own(Line const& line, Draft const& draft, std::int32_t n, std::span<Token const> text) {
    if constexpr (marks)
      if (marks_.marker.on())
        return detail::own_marked(choice_, line, draft.seed, draft.position + n, scratch_, marks_.marker,
                                  mark(draft, n, text), marks_.weights);
    return choice_.own(line, draft.seed, draft.position + n, scratch_);
  }
  static bool branches(Draft const& draft) {
    return draft.tree != nullptr && (draft.tree->leaves > 1 || draft.tree->draws);
  }

  /// Makes the guesses for sentences that take trees.
  void branch(std::span<Draft const> drafts) {
    branching_.clear(), branching_texts_.clear();
    for (auto const i : order_)
      if (branches(drafts[i])) branching_.push_back(&drafts[i]), branching_texts_.push_back(&texts_[i]);
    if (branching_.empty()) return;
    try {
      trees_.grow(
          branching_, branching_texts_, drafted_, vocabulary_,
          [&](Query& query, Draft const& draft, std::int32_t n) {
            choice_.ask(query, draft.seed, draft.position + n, vocabulary_.size);
            query.mass = query.within = query.typical = 0;  // the best few are looked at, whatever the choice
          },
          [&](std::span<Row const> rows, std::span<Query const> queries, std::span<Group const> groups) {
            auto const answer = expander_.expand(draft_.step(rows), queries, groups);
            drafted_.apply(rows);
            return answer;
          },
          [&](std::size_t i, std::span<Token const> path) -> std::uint64_t {
            if constexpr (marks) {
              if (!marks_.marker.on() || !branching_[i]->tree->draws) return 0;
              marked_text_ = *branching_texts_[i];
              marked_text_.insert(marked_text_.end(), path.begin(), path.end());
              auto const its = mark(*branching_[i], static_cast<std::int32_t>(path.size()), marked_text_);
              return its.marked ? its.place.noise : 0;
            } else return 0;
          });
    } catch (...) {
      free_forks();  // the caller does not know of them
      throw;
    }
    free_forks();
  }
  void free_forks() {
    auto const forked = trees_.forked();
    for (auto const slot : forked) drafted_.clear(slot);
    if (!forked.empty()) detail::release(draft_, forked);
  }

  void clear(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) drafted_.clear(slot);
  }
  void note_started(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) {
      auto const i = static_cast<std::size_t>(slot);
      if (i >= started_.size()) started_.resize(i + 1);
      started_[i] = 1;
    }
  }

  /// Makes the rows that lead to guess `n`, for the sentences that want it; false if none does.
  bool ask(std::span<Draft const> drafts, std::int32_t n) {
    rows_.clear(), queries_.clear(), groups_.clear(), who_.clear();
    for (auto const i : order_) {
      auto const& draft = drafts[i];
      auto const guessed = static_cast<std::int32_t>(draft.tokens->size());
      if (branches(draft)) continue;
      auto const over = guessed > 0 && vocabulary_.ends(draft.tokens->back());
      if (guessed != n || n >= draft.count || over) continue;
      std::span<Token const> const text = texts_[i];
      auto const had = drafted_[draft.slot];
      auto const same = std::mismatch(had.begin(), had.end(), text.begin(), text.end() - 1).first - had.begin();
      rows_.push_back(
          {draft.slot, draft.slot, static_cast<std::int32_t>(same), text.subspan(static_cast<std::size_t>(same))});
      Query query;
      choice_.ask(query, draft.seed, draft.position + n, vocabulary_.size);
      if constexpr (marks)
        if (marks_.marker.on())
          detail::ask_marked(choice_, query, marks_.marker, mark(draft, n, text), vocabulary_.size);
      queries_.push_back(query), groups_.push_back({.lines = 1}), who_.push_back(i);
    }
    return !rows_.empty();
  }

  D& draft_;
  E expander_;
  Choice choice_;
  Vocabulary vocabulary_;
  detail::SlotTokens drafted_;
  std::vector<std::vector<Token>> texts_;  // for each sentence, the tokens that the draft model continues
  std::vector<Row> rows_;
  std::vector<Query> queries_;
  std::vector<Group> groups_;
  std::vector<std::size_t> order_, who_;  // of drafts: by slot; of each row
  std::vector<Candidate> scratch_;
  [[no_unique_address]] detail::MarksOf<Choice> marks_{};
  std::vector<Token> marked_text_;
  std::vector<std::uint8_t> started_;  // [slot]: whether the draft holds something there
  std::vector<Slot> started_here_;
  detail::DraftTrees trees_;
  std::vector<Draft const*> branching_;  // by slot
  std::vector<std::vector<Token> const*> branching_texts_;
};

}  // namespace sluice::inline v0

#undef SLUICE_BAD_DRAFT
