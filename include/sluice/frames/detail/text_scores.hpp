// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a rule and a language model add to the prefixes of a beam over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/language_model.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/text_rows.hpp>
#include <sluice/frames/language_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::inline v0::detail {

/// What is added to the score of a prefix when a token follows, for each prefix of a beam: computed once a prefix, from what a rule
/// says about the next token, and from what a language model says. -infinity forbids.
template <LogitsProcessor R, LanguageModelOrWeights L>
class TextScores {
 public:
  static constexpr bool ruled = !std::is_same_v<R, NoRule>, modelled = !std::is_same_v<L, NoRule>;
  static constexpr bool any = ruled || modelled;
  static constexpr bool in_rows = !LanguageModel<L>;  // what the language model says comes with the model's lines
  static_assert(!EndingProcessor<R>,
                "sluice: a search over frames ends with its frames: it takes no rule that ends outputs");

  /// \param sentence  its vocabulary has the blank as its eos
  /// \param first     the first slot of a text, of `slot_count` slots in all; in_rows
  /// \returns the number of the empty prefix
  SLUICE_LAZY std::int32_t begin(R const& rule, L const& model, Sentence const& sentence, std::int32_t slot_count,
                                 Slot first = 1) {
    vocabulary_ = sentence.vocabulary;
    free_.clear();
    for (auto i = texts_.size(); i-- > 0;) free_.push_back(static_cast<std::int32_t>(i));
    auto const made = take();
    auto& text = texts_[static_cast<std::size_t>(made)];
    text.rule = rule.initial(sentence);
    if constexpr (!in_rows) text.model = model.initial(sentence);
    tokens_.clear();
    if constexpr (RestrictingProcessor<R>)
      rule.require_possible(text.rule, {tokens_, 0, *vocabulary_}, Limits::unlimited);
    fill(rule, model, text);
    if constexpr (in_rows) {
      rows_.begin(first, slot_count, vocabulary_->size);
      text.slot = rows_.open(0, 0, sentence.last, made);
    }
    return made;
  }
  /// The number of a prefix that is `token` after prefix `from`.
  /// \param tree  a tree of prefixes, of which `node` is the new one
  template <class Tree>
  std::int32_t make(R const& rule, L const& model, std::int32_t from, Token token, Tree const& tree,
                    std::int32_t node) {
    auto const made = take();
    auto& text = texts_[static_cast<std::size_t>(made)];
    auto const& parent = texts_[static_cast<std::size_t>(from)];
    if constexpr (ruled) {
      text.rule = rule.next(parent.rule, token);
      tree.spell(node, tokens_);
    }
    if constexpr (modelled && !in_rows) text.model = model.next(parent.model, token);
    fill(rule, model, text);
    if constexpr (in_rows) text.slot = rows_.open(parent.slot, tree.depth(node), token, made);
    return made;
  }
  void drop(std::int32_t text) {
    free_.push_back(text);
    if constexpr (in_rows) rows_.drop(texts_[static_cast<std::size_t>(text)].slot);
  }

  /// The rows of new prefixes; see take_lines().
  TextRows& rows() { return rows_; }
  TextRows const& rows() const { return rows_; }
  /// Takes the lines of the rows that were planned: `lines` are theirs alone.
  SLUICE_LAZY void take_lines(FusionWeights const& weights, Expansion const& lines) {
    rows_.done([&](std::int32_t number, std::size_t i) {
      auto& text = texts_[static_cast<std::size_t>(number)];
      auto const line = lines[i].probes;
      auto best = never;
      for (std::size_t v = 0; v < line.size(); ++v) {
        text.modelled[v] = line[v] == never
                               ? never  // also at weight 0
                               : static_cast<float>(weights.weight * static_cast<double>(line[v]) + weights.bonus);
        best = (std::max)(best, text.modelled[v]);
      }
      text.most += best;
    });
  }

  /// Whether the line of a prefix has come; in_rows.
  bool known(std::int32_t number) const {
    return !std::isnan(texts_[static_cast<std::size_t>(number)].modelled.front());
  }
  /// What is added if `token` follows.
  float add(L const& model, std::int32_t number, Token token) {
    auto& text = texts_[static_cast<std::size_t>(number)];
    float sum = 0;
    if constexpr (ruled) sum = text.ruled[static_cast<std::size_t>(token)];
    if constexpr (modelled) {
      auto& known = text.modelled[static_cast<std::size_t>(token)];
      if constexpr (!in_rows)
        if (std::isnan(known)) known = model.score(text.model, token);
      sum += known;
    }
    return sum;
  }
  /// What is added if the text ends here.
  /// \param blank  stands for the end in the rule
  float end(L const& model, std::int32_t number, Token blank) const {
    auto const& text = texts_[static_cast<std::size_t>(number)];
    float sum = 0;
    if constexpr (in_rows) sum = text.modelled[static_cast<std::size_t>(blank)] - static_cast<float>(model.bonus);
    else sum = model.end(text.model);
    if constexpr (ruled) sum += text.ruled[static_cast<std::size_t>(blank)];
    return sum;
  }
  /// add() is at most this for any token.
  float most(std::int32_t number) const { return texts_[static_cast<std::size_t>(number)].most; }

 private:
  static constexpr float never = -std::numeric_limits<float>::infinity();

  struct NoState {};
  template <class X>
  struct StateOf {
    using type = NoState;
  };
  template <LanguageModel X>
  struct StateOf<X> {
    using type = typename X::State;
  };
  struct Text {
    typename R::State rule{};
    typename StateOf<L>::type model{};
    std::vector<float> ruled, modelled;  // [V]; modelled: NaN if not known yet
    float most = 0;
    Slot slot = 0;  // in_rows
  };

  std::int32_t take() {
    if (free_.empty()) {
      texts_.emplace_back();
      return static_cast<std::int32_t>(texts_.size()) - 1;
    }
    auto const number = free_.back();
    free_.pop_back();
    return number;
  }
  SLUICE_LAZY void fill(R const& rule, L const& model, Text& text) {
    auto const size = static_cast<std::size_t>(vocabulary_->size);
    text.most = 0;
    if constexpr (!in_rows) text.most = model.most(text.model);
    if constexpr (modelled) text.modelled.assign(size, std::numeric_limits<float>::quiet_NaN());
    if constexpr (ruled) {
      text.ruled.assign(size, 0);
      edits_.clear();
      if constexpr (BiasingProcessor<R>) {
        BiasPlace const place{*vocabulary_, Limits::unlimited, tokens_.empty(), false, false, false};
        text.ruled.assign(size, rule.bias(text.rule, place, edits_).all);
      }
      rule.edit(text.rule, {tokens_, 0, *vocabulary_}, edits_);
      for (auto const& edit : edits_) {
        require(vocabulary_->contains(edit.token), "a rule's edit", edit.token, "is outside the vocabulary");
        require(edit.penalty == 1, "a rule's edit: penalty", edit.penalty,
                "a search over frames has no one score of a token that it could penalise: only add");
        text.ruled[static_cast<std::size_t>(edit.token)] += edit.add;
      }
      if constexpr (RestrictingProcessor<R>) {
        if (auto const set = rule.may_follow(text.rule, Limits::unlimited); set != nullptr)
          for (Token token = 0; token < vocabulary_->size; ++token)
            if (!set->contains(token)) text.ruled[static_cast<std::size_t>(token)] = never;
      }
      text.most += *std::max_element(text.ruled.begin(), text.ruled.end());
    }
  }

  Vocabulary const* vocabulary_ = nullptr;
  std::vector<Text> texts_;
  std::vector<std::int32_t> free_;
  TextRows rows_;
  std::vector<Token> tokens_;  // scratch: the prefix
  std::vector<Edit> edits_;    // scratch
};

}  // namespace sluice::inline v0::detail
