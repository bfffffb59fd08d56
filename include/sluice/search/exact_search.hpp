// SPDX-License-Identifier: Apache-2.0
/// \file
/// Exact search: the most probable output, with a proof.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Finds the highest-scoring outputs of all that the model can generate (Stahlberg and Byrne 2019, "On NMT Search
/// Errors and Model Errors: Cat Got Your Tongue?", algorithm 1). The search is depth-first, more probable children
/// first, and skips everything that cannot score more than the n_best found so far. Only outputs that end within
/// `length.max` tokens count.
///
/// Uses one slot, which rolls back (Restarting adds that to any model), and one row of one token per step. The number
/// of steps is bounded only by the number of outputs: models that give long outputs low probabilities need thousands. A
/// good `floor`, such as the score of a beam search result, saves most of them; so does a small length.max. `steps`
/// limits them: Result::bound is then the bound proved so far.
///
/// The result is proved as long as log-probabilities only fall: a model with Limits::log_prob above 0 is refused. Under a
/// Bias all outputs begin at the most that it may add, which is taken back token by token: the bound is loose, and it
/// takes more steps.
struct ExactSearch {
  std::int32_t n_best = 1;                                   ///< number of outputs, best first; >= 1
  LengthPenalty penalty{.kind = LengthPenalty::Kind::none};  ///< for the score
  double floor =
      -std::numeric_limits<double>::infinity();  ///< outputs that score less are not searched for; there may be none
  std::int64_t steps = 0;                        ///< maximum number of steps; 0 = no bound
  std::int32_t list = 32;                        ///< children requested at once; more where that is not enough; >= 1
  LengthLimits length{};

  static constexpr Abilities needs{.roll_back = true};
  static constexpr bool assumes_falling = true;
  static constexpr bool bears_bonus = true;  ///< its proofs compare outputs alone, so a bonus for all may be taken back

  struct State : detail::OutputLimits {
    /// A prefix of outputs, whose children are being searched.
    struct Node {
      Token token = 0;                // the last token, as it was fed
      float token_log_prob = 0;       // its log-probability
      double log_prob = 0;            // of all tokens
      std::size_t next = 0, end = 0;  // its children, in `children`
      std::int32_t asked = 0;         // number of children requested
      float worst = 0;                // log-probability of the last child listed
      bool complete = false;          // there are no more children
    };
    struct Found {
      double score = 0, log_prob = 0;
      std::vector<Token> tokens{};
      std::vector<float> log_probs{};
      bool finished = true;
    };
    TokenSet ends;
    detail::Buffer<Node> path;  // the first node is the state before the first generated token
    detail::Buffer<Candidate> children;
    detail::Buffer<Found> found;  // best first
    std::int64_t taken = 0;       // steps
    std::int32_t held = 0;        // tokens in the slot before the path
    double bound = 0;             // of everything not searched, once the search is over
    bool ended = false;

    /// The number of output tokens at the end of the path.
    std::int32_t size() const { return prefix.size() + static_cast<std::int32_t>(path.size()) - 1; }
  };

  SLUICE_LAZY void check() const {
    require(n_best >= 1, "n_best", n_best, "must be at least 1");
    require(list >= 1, "list", list, "must be at least 1");
    require(steps >= 0, "steps", steps, "must be 0 (no bound) or more");
    require(!std::isnan(floor), "floor", floor, "must be a number, or -infinity");
    penalty.check(), length.check();
  }
  std::int32_t slot_count() const { return 1; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    s.begin(sentence, length);
    s.ends = TokenSet(sentence.vocabulary->size);
    s.ends.insert(sentence.vocabulary->eos);
    s.path.assign(1, {.token = sentence.last});
    s.found.clear();
    s.taken = 0, s.held = sentence.held, s.ended = false;
    s.bound = -std::numeric_limits<double>::infinity();
  }

  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    if (s.bounds.max == 0) return;
    auto& node = s.path.back();
    plan.row(0, 0, s.held + static_cast<std::int32_t>(s.path.size()) - 1, {&node.token, 1});
    node.asked = node.asked == 0 ? list : node.asked < s.vocabulary->size / 8 ? node.asked * 8 : s.vocabulary->size;
    auto const last = s.size() + 1 >= s.bounds.max && !s.vocabulary->eos.empty();  // only an end is useful
    plan.ask({.best = node.asked,
              .edits = s.bans.edits(!last && s.size() < s.bounds.min),
              .stage = Stage::after_softmax,
              .only = last ? &s.ends : nullptr});
  }

  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    if (s.bounds.max == 0) return s.ended = true;
    if (s.taken++ == 0) s.path[0].log_prob = s.prefix.ranked();
    auto& node = s.path.back();
    auto const all = answer.back().best;
    auto const seen = node.end == 0 ? 0 : node.end - first_child(s);  // the line was requested again: these are done
    node.complete = all.size() < static_cast<std::size_t>(node.asked) || node.asked >= s.vocabulary->size;
    node.worst = all.empty() ? 0 : all.back().log_prob;
    s.children.resize(first_child(s));
    s.children.append(all);
    node.next = first_child(s) + (std::min)(seen, all.size()), node.end = s.children.size();
    return s.ended = !go_on(s) || (steps > 0 && s.taken >= steps && stop(s));
  }

  Progress progress(State const& s) const { return {s.held + static_cast<std::int32_t>(s.path.size()) - 1, 1, 1}; }

  SLUICE_LAZY void finish(State const& s, Result& result) const {
    result.hypotheses.clear();
    for (auto const& one : s.found)
      result.hypotheses.push_back({.tokens = one.tokens,
                                   .log_probs = one.log_probs,
                                   .log_prob = one.log_prob,
                                   .score = one.score,
                                   .finished = one.finished});
    if (s.bounds.max == 0) result.hypotheses.assign(1, {});
    auto const proved = !s.found.empty() && s.found.front().finished ? s.found.front().score : floor;
    result.bound = s.prefix.impossible() ? floor : s.ended ? (std::max)(s.bound, proved) : infinite;
    if (result.hypotheses.empty() && s.ended) {
      if (s.bound == -infinite && floor == -infinite)
        result.fail(Failure::no_token_left, "no output ends within the maximum length");
      else result.fail(Failure::none, "no output was found that scores floor = " + std::to_string(floor) + " or more");
    }
    s.prefix.complete(result);
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  static std::size_t first_child(State const& s) { return s.path.size() > 1 ? s.path[s.path.size() - 2].end : 0; }

  /// The score that an output must exceed.
  double bar(State const& s) const {
    return static_cast<std::int32_t>(s.found.size()) < n_best ? -infinite : s.found.back().score;
  }
  SLUICE_LAZY bool promises(State const& s, double bound) const {
    return (s.prefix.impossible() ? floor == -infinite : bound >= floor) && bound > bar(s);
  }

  /// An upper bound on the score of an output that continues from `size` tokens of `log_prob` and ends later.
  SLUICE_LAZY double bound(State const& s, double log_prob, std::int32_t size) const {
    auto const least = s.vocabulary->eos.empty() ? s.bounds.max : (std::max)(size, s.bounds.min) + 1;
    return penalty.bound(log_prob, (std::min)(least, s.bounds.max), s.bounds.max);
  }
  /// An upper bound on the score of outputs through a child of the path's last node.
  SLUICE_LAZY double bound_of_child(State const& s, double log_prob, bool ends) const {
    auto const size = s.size() + 1;
    if (ends || (s.vocabulary->eos.empty() && size == s.bounds.max)) return penalty.score(log_prob, size);
    return bound(s, log_prob, size);
  }
  SLUICE_LAZY bool ends(State const& s, Token token) const { return s.ends.contains(token); }

  /// Moves the path to the next token to feed; false: the search is complete.
  SLUICE_LAZY bool go_on(State& s) const {
    for (;;) {
      auto& node = s.path.back();
      if (node.next < node.end) {
        auto const child = s.children[node.next++];
        auto const log_prob = node.log_prob + static_cast<double>(child.log_prob);
        auto const last = ends(s, child.token);
        if (!promises(s, bound_of_child(s, log_prob, last))) continue;
        s.path.push_back({.token = child.token, .token_log_prob = child.log_prob, .log_prob = log_prob});
        if (!last && s.size() < s.bounds.max) return true;
        keep(s);
        s.path.pop_back();
      } else if (!node.complete && promises(s, unseen(s))) {
        return true;
      } else {
        s.path.pop_back();
        if (s.path.empty()) return false;
      }
    }
  }
  /// An upper bound on the score of outputs through unlisted children of the path's last node.
  SLUICE_LAZY double unseen(State const& s) const {
    auto const log_prob = s.path.back().log_prob + static_cast<double>(s.path.back().worst);
    return (std::max)(bound_of_child(s, log_prob, false), bound_of_child(s, log_prob, true));
  }

  /// Records the path as an output.
  SLUICE_LAZY void keep(State& s) const {
    auto const score = penalty.score(s.path.back().log_prob, s.size());
    auto const place = std::find_if(s.found.begin(), s.found.end(), [&](auto const& one) { return one.score < score; });
    auto const one = s.found.insert(place, {.score = score, .log_prob = s.path.back().log_prob});
    for (std::size_t i = 1; i < s.path.size(); ++i)
      one->tokens.push_back(s.path[i].token), one->log_probs.push_back(s.path[i].token_log_prob);
    if (static_cast<std::int32_t>(s.found.size()) > n_best) s.found.pop_back();
  }

  /// Ends the search when the steps are used up: computes the bound of everything not searched.
  SLUICE_LAZY bool stop(State& s) const {
    auto const open = [&](double bound) {
      if (promises(s, bound)) s.bound = (std::max)(s.bound, bound);
    };
    if (auto const& last = s.path.back(); last.end == 0) open(bound(s, last.log_prob, s.size()));  // not fed yet
    else if (!last.complete) open(unseen(s));
    typename State::Found begun{.finished = false};  // returned if nothing else was found
    for (std::size_t i = 1; i < s.path.size(); ++i)
      begun.tokens.push_back(s.path[i].token), begun.log_probs.push_back(s.path[i].token_log_prob);
    begun.log_prob = s.path.back().log_prob, begun.score = penalty.score(begun.log_prob, s.size());
    for (s.path.pop_back(); !s.path.empty(); s.path.pop_back()) {
      auto const& node = s.path.back();
      for (auto i = node.next; i < node.end; ++i)
        open(bound_of_child(s, node.log_prob + static_cast<double>(s.children[i].log_prob),
                            ends(s, s.children[i].token)));
      if (!node.complete) open(unseen(s));
    }
    if (s.found.empty()) s.found.push_back(std::move(begun));
    return true;
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(ExactSearch)
