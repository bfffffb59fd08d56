// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prefill: feeds prompt and forced prefix before the search gets its first answer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/check_plan.hpp>
#include <sluice/decode/detail/interfaces.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Feeds prompt and prefix into slot 0 of a sentence, and notes the log-probabilities of the prefix. The search feeds the last
/// of these tokens with its first plan. The plan is made at the start, since the prefix is scored as that plan scores, and is
/// run when all other tokens have been fed. If the model is ragged and takes blocks, a row feeds as many tokens as allowed.
class Prefill {
 public:
  SLUICE_LAZY void reset(std::span<Token const> prompt, std::span<Token const> prefix, Abilities abilities) {
    tokens_.assign(prompt.begin(), prompt.end());
    tokens_.insert(tokens_.end(), prefix.begin(), prefix.end());
    prompt_ = prompt.size();
    log_probs_.clear();
    log_prob_ = 0;
    fed_ = now_ = own_ = 0;
    asked_ = done_ = false;
    blocks_ = abilities.blocks && abilities.ragged;  // a row of several tokens beside rows of one is ragged too
  }

  Token last() const { return tokens_.back(); }
  std::int32_t held() const { return static_cast<std::int32_t>(tokens_.size()) - 1; }
  double const& log_prob() const { return log_prob_; }

  /// Whether the prefill is over: the search has its first answer.
  bool done() const { return done_; }
  /// For the schedule, while it is not done().
  Progress progress() const {
    return {static_cast<std::int32_t>(fed_), 1, blocks_ ? static_cast<std::int32_t>(tokens_.size() - fed_) : 1};
  }

  /// Whether nothing has been fed yet, and a prefix of the prompt could be forked from another slot.
  bool fresh() const { return fed_ == 0 && !asked_ && prompt_ > 1; }
  SLUICE_LAZY std::span<Token const> rest() const { return std::span(tokens_).subspan(fed_); }  ///< tokens not fed yet
  SLUICE_LAZY std::span<Token const> prompt() const { return std::span(tokens_).first(prompt_); }
  /// Tokens that the next row can feed if `count` tokens of the prompt are forked.
  std::int32_t next(std::int32_t count = 0) const {
    return blocks_ ? static_cast<std::int32_t>(tokens_.size() - fed_) - count : 1;
  }
  /// How many tokens of the prompt can be forked: all but the last, after which scores are needed.
  std::size_t shareable() const { return prompt_ - 1; }
  /// Skips `count` tokens: the slot that the next row continues holds them.
  void skip(std::size_t count) { fed_ = count; }

  /// Plans the next row, of at most `most` tokens if it can be split, or adds the search's first plan.
  SLUICE_LAZY void plan(AnySearch& search, StepPlan& step, PlanRules const& rules, std::size_t most) {
    if (!asked_ && tokens_.size() == 1) {
      Plan plan(step, rules.base);
      search.plan(plan);
      asked_ = due_ = true, now_ = 0, own_ = all;
      return;
    }
    if (!asked_) ask(search, rules);
    auto const rest = tokens_.size() - fed_;
    if (first_.rows.empty() || rest == 1) return plan_first(step, rules.base);
    if (blocks_ && rest <= most && widens()) return plan_first(step, rules.base, rest - 1);
    plan_row(step, rules.base, blocks_ ? (std::min)(rest - 1, most) : 1);
  }

  /// Takes the answer. Returns the part of it that is the search's: empty until done().
  SLUICE_LAZY Expansion advance(Expansion const& answer) {
    auto const own = own_ == all ? answer.size() : own_;
    auto const before = answer.size() - own;
    for (std::size_t j = 0; j < before; ++j) {
      auto const i = first_line_ + j;  // this is the line after token i
      if (i + 1 < prompt_ || !scored_) continue;
      log_probs_.push_back(normalised_ ? answer[j].probes[0] : std::numeric_limits<float>::quiet_NaN());
    }
    fed_ += now_;
    if (!due_) return {};
    done_ = true;
    if (!scored_) log_probs_.assign(tokens_.size() - prompt_, 0.0f);
    for (auto const x : log_probs_) log_prob_ += static_cast<double>(x);
    return answer.window(before, own);
  }

  /// Puts the prefix in front of the search's tokens.
  SLUICE_LAZY void complete(Result& result) const {
    if (tokens_.size() == prompt_) return;
    for (auto& h : result.hypotheses) {
      h.tokens.insert(h.tokens.begin(), prefix().begin(), prefix().end());
      h.log_probs.insert(h.log_probs.begin(), log_probs_.begin(), log_probs_.end());
      h.log_prob = 0;
      for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    }
  }
  SLUICE_LAZY void complete(std::vector<Token>& settled) const {
    settled.insert(settled.begin(), prefix().begin(), prefix().end());
  }

 private:
  static constexpr auto all = static_cast<std::size_t>(-1);

  SLUICE_LAZY std::span<Token const> prefix() const { return std::span(tokens_).subspan(prompt_); }

  /// Gets the search's first plan, with slots numbered from 0.
  SLUICE_LAZY void ask(AnySearch& search, PlanRules const& rules) {
    first_.clear();
    Plan plan(first_, 0);
    search.plan(plan);
    auto alone = rules;
    alone.base = 0, alone.begun = held();
    check_plan(first_, {}, alone);
    scored_ = plan.prefix_scored();
    temperature_ = first_.queries.empty() ? 1 : first_.queries.front().temperature;
    normalised_ = first_.queries.empty() || first_.queries.front().normalise;
    asked_ = true;
  }

  /// Whether the first plan is one row that can feed the tokens before it too.
  SLUICE_LAZY bool widens() const {
    if (first_.rows.size() != 1) return false;
    auto const& row = first_.rows.front();
    return row.to == 0 && row.depths == nullptr && row.length == held() &&
           static_cast<std::size_t>(row.lines) == row.tokens.size();
  }

  /// Adds the first plan, with the `more` tokens before it in its row.
  SLUICE_LAZY void plan_first(StepPlan& step, Slot base, std::size_t more = 0) {
    auto const group = step.groups.size();
    step.groups.append(first_.groups);
    auto const lines = ask_before(step, more);
    step.groups[group].lines += lines;
    if (lines > 0) step.groups[group].keep = 0;
    for (auto row : first_.rows) {
      row.from += base, row.to += base;
      if (more > 0) {
        row_.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(fed_), tokens_.end() - 1);
        row_.insert(row_.end(), row.tokens.begin(), row.tokens.end());
        row.length = static_cast<std::int32_t>(fed_), row.tokens = row_, row.lines += lines;
      }
      step.rows.push_back(row);
    }
    step.queries.append(first_.queries);
    for (auto const slot : first_.released) step.released.push_back(slot + base);
    due_ = true, now_ = more, own_ = first_.queries.size();
  }

  /// Adds a row of `count` tokens that does not feed the last.
  SLUICE_LAZY void plan_row(StepPlan& step, Slot base, std::size_t count) {
    step.groups.push_back({});
    auto const tokens = std::span<Token const>(tokens_).subspan(fed_, count);
    auto lines = ask_before(step, count);
    if (lines == 0) {  // a row must ask for a line
      step.queries.push_back({.best = 0, .normalise = false});
      lines = 1, first_line_ = fed_ + count - 1;
    }
    step.groups.back().lines = lines;
    step.rows.push_back({base, base, static_cast<std::int32_t>(fed_), tokens, lines});
    due_ = false, now_ = count, own_ = 0;
  }

  /// Asks for the log-probabilities of the prefix tokens that follow the next `count` tokens. Returns how many lines that is.
  SLUICE_LAZY std::int32_t ask_before(StepPlan& step, std::size_t count) {
    first_line_ = (std::max)(prompt_ - 1, fed_);
    std::int32_t lines = 0;
    for (auto i = first_line_; scored_ && i < fed_ + count; ++i, ++lines)
      step.queries.push_back({.best = 0,
                              .probes = std::span<Token const>(tokens_).subspan(i + 1, 1),
                              .temperature = temperature_,
                              .normalise = normalised_});
    return lines;
  }

  std::vector<Token> tokens_, row_;
  std::vector<float> log_probs_;  // of the prefix
  double log_prob_ = 0;           // their sum
  StepPlan first_;
  std::size_t prompt_ = 0, fed_ = 0, now_ = 0, own_ = 0, first_line_ = 0;
  float temperature_ = 1;
  bool blocks_ = false, asked_ = false, done_ = false, due_ = false, scored_ = true, normalised_ = true;
};

}  // namespace sluice::inline v0::detail
