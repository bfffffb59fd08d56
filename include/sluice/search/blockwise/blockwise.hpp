// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blockwise parallel decoding: guess several tokens, verify them in one call, keep those that are right.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/blockwise/acceptance_rules.hpp>
#include <sluice/search/common/bans.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/prefix.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Predict, verify, accept (Stern, Shazeer and Uszkoreit 2018). Every round feeds the model its own last token and the
/// guesses of a proposer behind it, as one row, and looks at all of its lines: guesses are kept up to the first that the
/// rule does not accept, there the model's own token takes its place. The cache is rolled back by the next row's length. One
/// model call a round, for any number of sentences, each with its own accepted length.
///
/// Who guesses is a wrapper of the model: WithHeads, WithDraft, WithLookup, or any model with `propose`. Without one this
/// is greedy decoding (or sampling) in steps of one token. Guesses that are no tokens of the vocabulary, or more than were
/// asked for, are dropped, with all behind them.
///
/// `block` counts as the paper does: the model's own token and block - 1 guesses. A round settles 1 to `block` tokens; see
/// Hypothesis::blocks.
template <Acceptance A = Exact>
struct Blockwise {
  std::int32_t block = 4;  ///< tokens verified in a round at most; >= 1; 1: no guesses
  A accept{};
  std::int32_t minimum =
      1;  ///< tokens of a block that are kept whatever the rule says, if they are possible and eos is not
          ///< among them; >= 1. More than 1 is not lossless, and refused where the rule is
  LengthLimits length{};
  bool adaptive = false;  ///< choose the block of each round, up to `block`, by how many guesses of this sentence have
                          ///< been right so far
  /// adaptive: what a guess for each sentence, made and verified, adds to a step, as a part of it; > 0, or 0: the decoder
  /// measures it as it goes. A relaxed rule must be told, since its output depends on the blocks.
  double cost = A::lossless ? 0 : 0.25;

  static constexpr Abilities needs{.blocks = true, .roll_back = true};

  struct State {
    Bans bans;
    Prefix prefix;
    std::vector<Token> tokens;  // generated; the last is not in the slot yet
    std::vector<float> log_probs;
    std::vector<Token> guesses;        // of what follows
    std::vector<Token> row;            // the last token and the guesses
    std::vector<std::int32_t> blocks;  // settled in each round
    std::vector<Candidate> scratch;    // of the rule
    Vocabulary const* vocabulary = nullptr;
    LengthLimits::Bounds bounds{};
    std::uint64_t seed = 0;
    double right = 1, tried = 2;  // guesses, by and by forgotten; adaptive
    std::int32_t held = 0;        // tokens in the slot that stay
    std::int32_t resting = 0;     // rounds without guesses
    double added = 0;             // adaptive: what a token more adds to the step, as a part of it
    Token last = 0;               // to be fed
    bool first = true, finished = false, ended = false;  // first: nothing has been told

    /// Of the output so far.
    std::int32_t size() const { return prefix.size() + static_cast<std::int32_t>(tokens.size()); }
  };

  void check() const {
    require(block >= 1, "block", block, "must be at least 1");
    require(minimum >= 1 && minimum <= block, "minimum", minimum, "must be between 1 and the block");
    require(minimum == 1 || !A::lossless, "minimum", minimum,
            "keeps tokens that the model would not have given: choose TopK or Distance to say so");
    require(cost >= 0 && std::isfinite(cost), "cost", cost, "must be a number >= 0");
    require(cost > 0 || A::lossless, "cost", cost, "must be given: what a relaxed rule keeps would depend on the time");
    accept.check(), length.check();
  }
  std::int32_t slots() const { return 1; }

  void begin(State& s, Sentence const& sentence) const {
    s.bounds = length.of(sentence);
    s.bans.reset(*sentence.vocabulary);
    s.prefix = Prefix(sentence);
    s.vocabulary = sentence.vocabulary, s.seed = sentence.seed;
    s.tokens.clear(), s.log_probs.clear(), s.guesses.clear(), s.blocks.clear();
    s.right = 1, s.tried = 2;
    s.last = sentence.last, s.held = sentence.held, s.resting = 0;
    s.first = true, s.finished = s.ended = false;
  }

  void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    s.guesses.resize(usable(s));
    s.row.assign(1, s.last);
    s.row.insert(s.row.end(), s.guesses.begin(), s.guesses.end());
    plan.row(0, 0, s.held, s.row, static_cast<std::int32_t>(s.row.size()));
    for (std::size_t i = 0; i < s.row.size(); ++i) {
      auto q = query(s, s.size() + static_cast<std::int32_t>(i));
      // Of a guess that may be kept although it is not among the best, the log-probability is wanted.
      if (!A::lossless && i < s.guesses.size()) q.probes = std::span<Token const>(s.guesses).subspan(i, 1);
      plan.ask(q);
    }
  }

  bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    ++s.held;
    if (s.first) {  // no token of the model's own is settled by this round
      s.first = false;
      return take(s, own(s, answer.back()));
    }
    std::int32_t settled = 1;  // the last token, which was the model's own
    for (std::size_t i = 0; i < s.guesses.size(); ++i) {
      auto const line = answer[i];
      auto const choice = own(s, line);
      auto const guess = s.guesses[i];
      auto const right = accept.accepts(line, choice, guess);
      if (i == 0) s.tried = 0.9 * s.tried + 1, s.right = 0.9 * s.right + right;
      else s.tried += 1, s.right += right;
      auto const kept = right || (settled < minimum && !is_eos(s, guess));
      if (!kept || !possible(line)) {
        s.blocks.push_back(settled);
        return take(s, choice);
      }
      ++settled, ++s.held;
      auto const log_prob = A::lossless ? choice.log_prob : line.probes[0];
      if (keep(s, {guess, log_prob})) {
        s.blocks.push_back(settled);
        return s.ended = true;
      }
    }
    s.blocks.push_back(settled);
    return take(s, own(s, answer.back()));
  }

  /// How many guesses the next round wants.
  std::int32_t wanted(State const& s) const {
    auto const most = this->most(s);
    if (!adaptive || most == 0) return most;
    // With each guess right with probability p: tokens a round over time a round.
    auto const p = s.right / s.tried;
    auto best = 0;
    double best_rate = 1, tokens = 1, chance = 1;
    for (std::int32_t g = 1; g <= most; ++g) {
      tokens += chance *= p;
      if (auto const rate = tokens / (1 + s.added * g); rate > best_rate) best = g, best_rate = rate;
    }
    return best == 0 && s.resting >= 64 ? 1 : best;  // now and then: guesses may have become better
  }

  bool draft(State& s, Draft& draft) const {
    s.guesses.clear();
    if (s.ended) return false;
    s.added = cost > 0 ? cost : draft.added >= 0 ? draft.added : 0.25;
    auto count = wanted(s);
    if (adaptive && cost == 0 && draft.explore) count = std::max(count, std::min(1, most(s)));
    s.resting = count == 0 ? s.resting + 1 : 0;
    draft.length = s.held, draft.pending = {&s.last, 1}, draft.count = count;
    draft.tokens = &s.guesses, draft.seed = s.seed, draft.position = s.size();
    return count > 0;
  }

  Progress progress(State const& s) const {
    auto const rows = static_cast<std::int32_t>(usable(s)) + 1;
    return {s.held, 1, rows, rows};
  }

  void settled(State& s, std::vector<Token>& tokens) const { tokens = s.tokens; }

  void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    if (s.ended && !s.finished && s.size() < s.bounds.max)
      return result.fail(Failure::no_token_left, "every token was impossible");
    auto& h = result.hypotheses.emplace_back();
    h.tokens = s.tokens, h.log_probs = s.log_probs, h.finished = s.finished, h.blocks = s.blocks;
    h.log_prob = s.prefix.log_prob();
    for (auto const x : h.log_probs) h.log_prob += static_cast<double>(x);
    h.score = h.log_prob;
  }

 private:
  Query query(State const& s, std::int32_t position) const {
    Query q{.edits = s.bans.edits(position < s.bounds.min)};
    accept.ask(q, s.seed, position, s.vocabulary->size);
    return q;
  }
  Candidate own(State& s, Line const& line) const { return accept.own(line, s.seed, s.size(), s.scratch); }
  static bool is_eos(State const& s, Token token) {
    return std::find(s.vocabulary->eos.begin(), s.vocabulary->eos.end(), token) != s.vocabulary->eos.end();
  }
  static bool possible(Line const& line) {
    return line.probes.empty() || line.probes[0] > -std::numeric_limits<float>::infinity();
  }

  std::int32_t most(State const& s) const { return std::max(0, std::min(block - 1, s.bounds.max - s.size() - 1)); }

  /// How many of the guesses make sense: they are whatever a stranger says.
  std::size_t usable(State const& s) const {
    auto const count = std::min(s.guesses.size(), static_cast<std::size_t>(most(s)));
    auto const bad = std::find_if(s.guesses.begin(), s.guesses.begin() + static_cast<std::ptrdiff_t>(count),
                                  [&](Token token) { return !s.vocabulary->contains(token); });
    return static_cast<std::size_t>(bad - s.guesses.begin());
  }

  /// One token more; whether the sentence is over.
  bool keep(State& s, Candidate token) const {
    s.tokens.push_back(token.token), s.log_probs.push_back(token.log_prob);
    s.last = token.token, s.finished = is_eos(s, token.token);
    auto const full = s.size() >= s.bounds.max;
    if (full && s.vocabulary->eos.empty()) s.finished = true;
    return s.finished || full;
  }
  /// The model's own token, with which a round ends.
  bool take(State& s, Candidate own) const {
    s.guesses.clear();
    if (own.token < 0) return s.ended = true;
    if (keep(s, own)) {
      s.blocks.push_back(1);
      return s.ended = true;
    }
    return false;
  }
};

}  // namespace sluice::inline v0
