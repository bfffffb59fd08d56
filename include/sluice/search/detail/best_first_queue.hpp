// SPDX-License-Identifier: Apache-2.0
/// \file
/// The queue over all lengths: which hypothesis is next, and which ones enter the beam of their length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/detail/best_first_state.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::inline v0::detail {

/// A BestFirstBeam's options, applied to a state.
///
/// A hypothesis that cannot be returned is not run, but it counts in the beam of its length. Its children are then
/// missing, so others may continue that a beam would drop; but these are less probable and no shorter, and cannot be
/// returned either.
struct BestFirstQueue {
  using State = BestFirstState;

  std::int32_t width, n_best, candidates;
  LengthPenalty const& penalty;
  Pruning const& pruning;
  AtMaximum at_maximum;
  bool guard_prefix;
  Stage stage;

  /// The query for one hypothesis.
  SLUICE_LAZY Query query(State const& s, State::Expanded const& one) const {
    auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
    Query q{.base = one.log_prob, .edits = s.bans.edits(!forced(s, one) && one.length < s.bounds.min), .stage = stage};
    if (forced(s, one)) q.best = 0, q.probes = s.vocabulary->eos;
    else q.best = (std::min)(width + ends, pruning.max_per_parent);  // worse candidates can neither end nor continue
    return q;
  }

  /// Adds the children of the hypothesis expanded last to the queue.
  SLUICE_LAZY void add_children(State& s, Line const& line) const {
    auto const parent = static_cast<std::int32_t>(s.expanded.size()) - 1;
    auto const& one = s.expanded.back();
    if (!forced(s, one)) {
      for (auto const [token, log_prob] : line.best) add(s, parent, token, log_prob, s.is_eos(token));
    } else if (at_maximum == AtMaximum::force_eos_free) {
      add(s, parent, s.vocabulary->eos.front(), 0, true);
    } else {
      for (std::size_t i = 0; i < line.probes.size(); ++i) add(s, parent, s.vocabulary->eos[i], line.probes[i], true);
    }
  }

  /// Takes candidates, best first, until one is to be run; false: none is left.
  SLUICE_LAZY bool go_on(State& s) const {
    while (!s.queue.empty()) {
      auto next = s.pop();
      if (!next.ended) --(next.taken ? s.at(next.parent).taken : s.at(next.parent).waiting);
      if (!next.taken && !take(s, next)) continue;
      if (hopeless(s, next.log_prob, next.length + 1)) continue;
      if (!next.taken) {  // it has not ended, so others may rank before it
        next.taken = true, next.value = bound(s, next.log_prob, next.length + 1);
        ++s.at(next.parent).taken;
        s.push(next);
        continue;
      }
      if (expand(s, next)) return true;
    }
    return false;
  }

  /// The common beginning of all hypotheses that may still be returned.
  SLUICE_LAZY void settle(State& s, std::vector<Token>& tokens) const {
    s.nodes.clear();
    for (auto const& one : s.out) s.nodes.push_back(one.node);
    if (!s.over) {
      s.nodes.push_back(s.expanded.back().node);  // its children are still to come
      for (auto const& one : s.queue)
        if ((one.taken || !full(s.level(one.length))) && !hopeless(s, one.log_prob, one.length))
          s.nodes.push_back(s.at(one.parent).node);
    }
    s.history.write(s.history.common(s.nodes), tokens);
  }

  /// The hypotheses found; before the search is over, also the best that wait.
  SLUICE_LAZY void tell(State const& s, Result& result) const {
    result.hypotheses.clear();
    auto const add = [&](History::Node node, double log_prob, double score, bool finished) -> Hypothesis& {
      auto& h = result.hypotheses.emplace_back();
      s.history.write(node, h);
      h.log_prob = log_prob, h.score = score, h.finished = finished;
      return h;
    };
    for (auto const& one : s.out) add(one.node, one.log_prob, one.score, one.finished);
    if (s.bounds.max == 0) add(History::root, 0, 0, false);
    if (!s.over) tell_waiting(s, add);
    else if (result.hypotheses.empty()) beam_loop::say_why_empty(at_maximum, result);
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  /// Plans its row; false: it needs none.
  SLUICE_LAZY bool expand(State& s, State::Waiting const& next) const {
    auto const node = s.history.add(s.at(next.parent).node, next.token, next.token_log_prob);
    s.expanded.push_back({.node = node, .log_prob = next.log_prob, .length = next.length, .rank = next.rank});
    if (forced(s, s.expanded.back()) && at_maximum == AtMaximum::force_eos_free) {  // no choice left
      s.kept.skip(next.parent, next.token);
      add_children(s, {});
      return false;
    }
    s.kept.add(next.parent, next.token, [&](std::int32_t i) { return s.useful(s.at(i)); });
    return true;
  }

  bool forced(State const& s, State::Expanded const& one) const {
    return one.length + 1 >= s.bounds.max && !s.vocabulary->eos.empty() &&
           (at_maximum == AtMaximum::force_eos || at_maximum == AtMaximum::force_eos_free);
  }
  bool full(State::Level const& level) const { return level.alive >= level.room && level.seen >= width; }

  /// The minimum length of an output that has at least `from` tokens.
  std::int32_t fewest(State const& s, std::int32_t from) const {
    return s.vocabulary->eos.empty() ? s.bounds.max : (std::min)(from, s.bounds.max);
  }
  /// An upper bound on the score of an output with at most this log_prob and at least `from` tokens.
  SLUICE_LAZY double bound(State const& s, double log_prob, std::int32_t from) const {
    return penalty.bound(log_prob, fewest(s, from), s.bounds.max);
  }
  /// Whether no such output can be returned.
  SLUICE_LAZY bool hopeless(State const& s, double log_prob, std::int32_t from) const {
    if (static_cast<std::int32_t>(s.out.size()) < n_best) return false;
    auto const most = bound(s, log_prob, from);
    auto const& worst = s.out.back();
    return most < worst.score || (most <= worst.score && fewest(s, from) > worst.length);
  }

  SLUICE_LAZY void add(State& s, std::int32_t parent, Token token, float gain, bool ended) const {
    auto& one = s.at(parent);
    auto const log_prob = one.log_prob + static_cast<double>(gain);
    State::Waiting const child{.value = bound(s, log_prob, one.length + 1),
                               .log_prob = log_prob,
                               .length = one.length + 1,
                               .parent = parent,
                               .order = one.children++,
                               .token = token,
                               .token_log_prob = gain,
                               .ended = ended};
    if (!(static_cast<double>(gain) > -infinite) || hopeless(s, child.log_prob, child.length) ||
        full(s.level(child.length)))
      return;
    if (!ended) ++one.waiting;
    s.push(child);
  }

  /// Puts the best candidate into the beam of its length if there is room. Returns whether it continues.
  SLUICE_LAZY bool take(State& s, State::Waiting& next) const {
    auto& level = s.level(next.length);
    if (full(level)) return false;
    auto const rank = next.rank = level.seen++;
    if (next.ended && guard_prefix && rank > 0 && s.prefix.size() > 0 && next.length == s.prefix.size() + 1) {
      if (rank < width) --level.room;
      return false;
    }
    if (next.ended) {
      if (rank >= width) return false;
      if (next.length > 1) level.best_finished = (std::max)(level.best_finished, next.log_prob);
      end(s, next, rank, false, true);
      return false;
    }
    auto const last = next.length >= s.bounds.max;
    if (level.alive >= level.room || rank >= (last ? width : candidates)) return false;
    if (level.alive++ == 0) level.best_alive = next.log_prob;
    if (pruned(s, next)) return false;
    if (last) join(s, next, rank);
    return !last;
  }

  SLUICE_LAZY bool pruned(State const& s, State::Waiting const& next) const {
    if (!pruning.by_total()) return false;
    auto best = s.level(next.length).best_alive;
    for (auto length = s.prefix.size(); length <= next.length; ++length)
      best = (std::max)(best, s.level(length).best_finished);
    return !(next.log_prob > best - pruning.margin());
  }

  /// Finishes a hypothesis that is alive at the maximum length.
  SLUICE_LAZY void join(State& s, State::Waiting const& next, std::int32_t rank) const {
    auto& level = s.level(next.length);
    auto const fixed_length = s.vocabulary->eos.empty();
    if (!fixed_length && at_maximum != AtMaximum::truncate &&
        (at_maximum != AtMaximum::best_unfinished || level.joined))
      return;
    level.joined = true;
    end(s, next, rank, true, fixed_length);
  }

  /// Among equal scores the shorter comes first, since a beam finds it first.
  SLUICE_LAZY void end(State& s, State::Waiting const& next, std::int32_t rank, bool cut, bool finished) const {
    State::Ended const one{.log_prob = next.log_prob,
                           .score = penalty.score(next.log_prob, next.length),
                           .length = next.length,
                           .rank = rank,
                           .cut = cut,
                           .finished = finished};
    auto const place = std::find_if(s.out.begin(), s.out.end(), [&](State::Ended const& other) {
      if (other.score != one.score) return other.score < one.score;
      if (other.length != one.length) return other.length > one.length;
      return other.cut != one.cut ? other.cut : other.rank > one.rank;
    });
    if (place == s.out.end() && static_cast<std::int32_t>(s.out.size()) >= n_best) return;
    auto const it = s.out.insert(place, one);
    it->node = s.history.add(s.at(next.parent).node, next.token, next.token_log_prob);
    if (static_cast<std::int32_t>(s.out.size()) > n_best) s.out.pop_back();
  }

  /// Fills the list with the best waiting candidates.
  template <class Add>
  void tell_waiting(State const& s, Add const& add_hypothesis) const {
    auto const score = [&](State::Waiting const& one) { return penalty.score(one.log_prob, one.length); };
    Buffer<State::Waiting> waiting;
    for (auto const& one : s.queue)
      if (one.taken || !full(s.level(one.length))) waiting.push_back(one);
    auto const missing = (std::min)(waiting.size(), static_cast<std::size_t>(n_best) - s.out.size());
    std::partial_sort(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(missing), waiting.end(),
                      [&](auto const& a, auto const& b) {
                        return score(a) != score(b) ? score(a) > score(b) : State::Later{&s}(b, a);
                      });
    waiting.resize(missing);
    for (auto const& one : waiting) {
      auto& h = add_hypothesis(s.at(one.parent).node, one.log_prob, score(one), one.ended);
      h.tokens.push_back(one.token), h.log_probs.push_back(one.token_log_prob);
    }
  }
};

}  // namespace sluice::inline v0::detail
