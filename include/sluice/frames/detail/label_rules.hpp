// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rule on the labels of alignments, to which blanks are invisible.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/language_model.hpp>
#include <sluice/frames/transducer.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Refuses requests that a search over the frames of a transducer cannot serve.
SLUICE_LAZY void require_frames(Sentence const& sentence, TransducerTokens const& tokens) {
  require(sentence.vocabulary->size == tokens.size(), "tokens.size()", tokens.size(),
          "the model's vocabulary has " + std::to_string(sentence.vocabulary->size) + ": use tokens = model.tokens()");
  require(sentence.source_length <= Limits::unlimited - TransducerTokens::furthest, "source length",
          sentence.source_length, "must be at most " + std::to_string(Limits::unlimited - TransducerTokens::furthest));
  require(sentence.source_length >= 0 || sentence.growth != nullptr, "source length", sentence.source_length,
          "a search over frames needs their number: the model has no source_length(source), and the source no size()");
  require(sentence.prompt.size() == 1 && sentence.prompt.front() == tokens.blank, "prompt",
          std::to_string(sentence.prompt.size()) + " tokens", "a search over frames begins with the blank alone");
  require(!sentence.confident, "confidence", "asked for",
          "a search over frames has none for its tokens: Hypothesis::log_probs has each label's");
  require(sentence.prefix.empty(), "prefix", std::to_string(sentence.prefix.size()) + " tokens",
          "a search over frames takes none: use a rule");
}

/// Makes a shortlist of labels one of an alignment's tokens: each label with every duration, and the blanks. Over them lines are normalised.
SLUICE_LAZY void insert_alignments(TransducerTokens const& tokens, TokenSet& set) {
  auto const given = set;
  for (Token token = 0; token < tokens.size(); ++token) {
    if (token >= tokens.labels)
      require(!given.contains(token), "shortlist", token,
              "is no label: a shortlist of a transducer names labels, below " + std::to_string(tokens.labels));
    auto const label = tokens.label(token);
    if (given.contains(label) || tokens.is_blank(label)) set.insert(token);
  }
}

/// Makes the queries for lines over alignments, with what a rule says of outputs. The rule sees labels and their
/// vocabulary (TransducerTokens::outputs()); what it says of a label holds for the label with every duration.
template <LogitsProcessor R>
class LabelRules {
 public:
  static constexpr bool none = std::same_as<R, NoRule> || std::same_as<R, Rules<>>;

  /// \throws std::invalid_argument  if the rule refuses its options for these outputs
  typename R::State begin(R const& rule, TransducerTokens const& tokens, Sentence const& sentence) {
    tokens_ = &tokens;
    blanks_ = tokens.blanks();
    vocabulary_ = tokens.outputs();
    auto seen = sentence;
    seen.vocabulary = &vocabulary_, seen.prompt = {};
    auto const state = rule.initial(seen);
    if constexpr (RestrictingProcessor<R>) rule.require_possible(state, output({}), Limits::unlimited);
    return state;
  }

  /// That of outputs.
  Vocabulary const& vocabulary() const { return vocabulary_; }
  /// The blanks, in the order of every query's probes.
  std::span<Token const> blanks() const { return blanks_; }

  /// Starts a plan of so many lines.
  void begin_lines(std::size_t lines) {
    count_ = 0;
    if (lines_.size() < lines) lines_.resize(lines);
  }
  /// What a hypothesis wants of its line.
  struct Wish {
    std::int32_t best = 0;  ///< labels listed (with their durations), besides blanks; 0: only blanks may follow
    double base = 0;
    std::int32_t rank = 0;
  };
  /// Asks for the next line.
  /// \param labels  the output so far; not looked at without a rule
  void ask(Plan& plan, R const& rule, typename R::State const& state, std::span<Token const> labels, Wish const& wish) {
    auto& line = lines_[count_++];
    line.edits.clear(), line.all = 0;
    Query query{.base = wish.base, .rank = wish.rank, .best = 0, .probes = blanks_, .stage = Stage::after_softmax};
    if (wish.best > 0) {
      query.best = (std::min)(wish.best, tokens_->size() - static_cast<std::int32_t>(blanks_.size())) +
                   static_cast<std::int32_t>(blanks_.size());
      if constexpr (!none) rule_line(rule, state, labels, query, line);
    }
    plan.ask(query);
  }
  /// What the rule adds to every label of a line.
  float all(std::size_t line) const { return lines_[line].all; }

  /// Whether the rule ends the output here.
  std::int32_t stop(R const& rule, typename R::State const& state, std::span<Token const> labels) const {
    if constexpr (EndingProcessor<R>) return labels.empty() ? -1 : rule.stop(state, output(labels));
    else return -1;
  }
  /// What the rule adds where an output ends; -infinity: it may not end here.
  SLUICE_LAZY double end(R const& rule, typename R::State const& state, std::span<Token const> labels) {
    if constexpr (none) {
      return 0;
    } else {
      if constexpr (RestrictingProcessor<R>) {
        auto const set = rule.may_follow(state, Limits::unlimited);
        if (set != nullptr && !set->contains(tokens_->blank)) return -std::numeric_limits<double>::infinity();
      }
      double sum = 0;
      scratch_.clear();
      if constexpr (BiasingProcessor<R>)
        sum += static_cast<double>(rule.bias(state, place(labels.empty(), true), scratch_).all);
      scratch_.clear();  // of an output that is over, the sum is all there is
      rule.edit(state, output(labels), scratch_);
      for (auto const& edit : scratch_)
        if (edit.token == tokens_->blank) sum += static_cast<double>(edit.add);
      return sum;
    }
  }

 private:
  struct Line {
    std::vector<Edit> edits;
    TokenSet only;
    float all = 0;
  };

  Output output(std::span<Token const> labels) const { return {labels, 0, vocabulary_}; }
  BiasPlace place(bool first, bool over) const {
    return {.vocabulary = vocabulary_,
            .left = Limits::unlimited,
            .first = first,
            .last = false,
            .over = over,
            .falling = false};
  }

  void rule_line(R const& rule, typename R::State const& state, std::span<Token const> labels, Query& query,
                 Line& line) {
    SortedEdits sorted;
    if constexpr (BiasingProcessor<R>) {
      auto const sum = rule.bias(state, place(labels.empty(), false), line.edits);
      line.all = sum.all, sorted = sum.sorted;
    }
    auto const promised = line.edits.size();
    rule.edit(state, output(labels), line.edits);
    for (auto const& e : line.edits)
      require(vocabulary_.contains(e.token), "a rule's edit", e.token, "is outside the vocabulary");
    auto const blanks = std::erase_if(line.edits, [&](Edit const& e) { return tokens_->is_blank(e.token); });
    auto const own = line.edits.size();
    for (Token first = tokens_->labels; first < tokens_->size(); first += tokens_->labels)
      for (std::size_t i = 0; i < own; ++i) {
        auto copy = line.edits[i];
        copy.token += first;
        line.edits.push_back(copy);
      }
    query.edits = line.edits;
    if (blanks == 0 && own == promised && line.edits.size() == own) query.sorted = sorted;
    if constexpr (RestrictingProcessor<R>) {
      auto const set = rule.may_follow(state, Limits::unlimited);
      if (set == nullptr) return;
      line.only = TokenSet(tokens_->size());
      auto const words = set->words();
      for (std::size_t w = 0; w < words.size(); ++w)
        for (auto bits = words[w]; bits != 0; bits &= bits - 1) {
          auto const label = static_cast<Token>(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
          if (label >= tokens_->labels || tokens_->is_blank(label)) continue;
          for (auto token = label; token < tokens_->size(); token += tokens_->labels) line.only.insert(token);
        }
      line.only.insert(blanks_);
      query.only = &line.only;
    }
  }

  TransducerTokens const* tokens_ = nullptr;
  Vocabulary vocabulary_;
  std::vector<Token> blanks_;
  std::vector<Line> lines_;
  std::size_t count_ = 0;
  std::vector<Edit> scratch_;
};

}  // namespace sluice::inline v0::detail
