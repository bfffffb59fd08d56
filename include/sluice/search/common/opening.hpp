// SPDX-License-Identifier: Apache-2.0
/// \file
/// What every search begins with: feeding the prompt and the forced prefix.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The tokens that a search may not choose at its next step, as edits: those never generated, and eos while the output
/// is too short.
class Bans {
 public:
  void start(Vocabulary const& vocabulary) {
    edits_.clear();
    for (auto const token : vocabulary.never) edits_.push_back(forbid(token));
    never_ = edits_.size();
    for (auto const token : vocabulary.eos)
      if (std::ranges::find(vocabulary.never, token) == vocabulary.never.end()) edits_.push_back(forbid(token));
  }
  std::span<Edit const> edits(bool eos_too) const {
    return eos_too ? std::span(edits_) : std::span(edits_).first(never_);
  }

 private:
  static Edit forbid(Token token) { return {token, -std::numeric_limits<float>::infinity(), 1}; }
  std::vector<Edit> edits_;
  std::size_t never_ = 0;
};

/// Feeds prompt and forced prefix into slot 0, at once where rows may differ and bring several tokens, else token by
/// token, and notes the prefix's log-probabilities. The last line of its last row is the search's first free choice.
class Opening {
 public:
  void start(Sentence const& sentence) {
    for (auto const token : sentence.prefix)
      require(std::ranges::find(sentence.vocabulary->eos, token) == sentence.vocabulary->eos.end(), "prefix", token,
              "is an end of sentence: nothing could follow");
    restart(sentence);
  }
  /// start() for targets that may end in eos (forced scoring).
  void restart(Sentence const& sentence) {
    tokens_.assign(sentence.prompt.begin(), sentence.prompt.end());
    prompt_ = tokens_.size();
    tokens_.insert(tokens_.end(), sentence.prefix.begin(), sentence.prefix.end());
    log_probs_.clear();
    fed_ = now_ = 0;
    // A row of several tokens beside rows of one is ragged too.
    blocks_ = sentence.abilities.blocks && sentence.abilities.ragged;
  }

  bool done() const { return fed_ == tokens_.size(); }
  /// Whether the row that has just been planned is the last.
  bool ends() const { return fed_ + now_ == tokens_.size(); }
  std::int32_t length() const { return static_cast<std::int32_t>(fed_); }
  /// Tokens that plan() would feed next.
  std::int32_t rows() const { return blocks_ ? static_cast<std::int32_t>(tokens_.size() - fed_) : 1; }
  /// Of the prefix's tokens, as far as it has been told.
  std::span<float const> log_probs() const { return log_probs_; }
  std::span<Token const> prefix() const { return std::span(tokens_).subspan(prompt_); }

  /// Plans the next row; `free` is what to ask of the line after the last token.
  void plan(Plan& plan, Query const& free) {
    now_ = blocks_ ? tokens_.size() - fed_ : 1;
    auto const first = blocks_ ? std::max(prompt_ - 1, fed_) : fed_;  // the model gives at least one line a row
    auto const end = fed_ + now_;
    plan.row(0, 0, length(), std::span<Token const>(tokens_).subspan(fed_, now_),
             static_cast<std::int32_t>(end - first));
    for (auto i = first; i < end; ++i) {
      if (i + 1 == tokens_.size()) plan.ask(free);
      else if (i + 1 < prompt_) plan.ask({.best = 0, .normalise = false});
      else
        plan.ask({.best = 0,
                  .probes = std::span<Token const>(tokens_).subspan(i + 1, 1),
                  .temperature = free.temperature,
                  .normalise = free.normalise});
    }
  }

  /// Takes the answer; true when its last line is the first free choice.
  bool advance(Expansion const& answer) {
    fed_ += now_;
    for (std::size_t j = 0; j < answer.size(); ++j) {
      auto const i = fed_ - answer.size() + j;  // the line after token i
      if (i + 1 < tokens_.size() && i + 1 >= prompt_) log_probs_.push_back(answer[j].probes[0]);
    }
    return done();
  }

 private:
  std::vector<Token> tokens_;
  std::vector<float> log_probs_;
  std::size_t prompt_ = 0, fed_ = 0, now_ = 0;
  bool blocks_ = false;
};

}  // namespace sluice::inline v0
