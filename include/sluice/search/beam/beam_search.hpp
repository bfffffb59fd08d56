// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search, of fixed and variable width.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/search/beam/beam_options.hpp>
#include <sluice/search/beam/beam_state.hpp>
#include <sluice/search/common/length.hpp>
#include <sluice/search/common/placement.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

namespace sluice::inline v0 {

template <class A>
struct ConstrainedBeamSearch;

/// Keeps the `width` best hypotheses of every length. One algorithm; engines differ in its options (presets.hpp). The
/// default is fairseq's beam search: fixed width, finished hypotheses set aside, ended when `width` have finished.
///
/// Every step, the candidates are the best tokens of every live hypothesis and the ended hypotheses that the beam still
/// carries; the best of them by log-probability, at most `candidates`, are looked at in order. Ties: the better-ranked
/// parent, then the parent's own order (higher score, then lower token). Every decision is made for one sentence alone.
///
/// A step costs O(width^2 log width) beside the model; a fork costs one node. Nothing is allocated once warm.
struct BeamSearch {
  std::int32_t width = 5;   ///< hypotheses alive at most; >= 1
  std::int32_t n_best = 1;  ///< hypotheses returned at most; in [1, width], or as many as stop.patience lets finish
  LengthLimits length{};
  LengthPenalty penalty{};
  Pruning pruning{};
  Finished finished = Finished::set_aside;
  Stop stop{};
  AtMaximum at_maximum = AtMaximum::force_eos;
  bool surplus = false;       ///< set_aside, Rule::count: whether all that end in the last step count, or only as many
                              ///< as the rule still needs, best first
  bool prefix_scored = true;  ///< whether the log-probabilities of a forced prefix count
  bool guard_prefix =
      false;  ///< set_aside: right after a forced prefix only the best candidate may end; another end is
              ///< dropped, and its place stays empty for that step (CTranslate2)
  std::int32_t candidates = 0;  ///< looked at in a step; 0 = as many as `finished` needs to keep the beam full
  double sibling_penalty = 0;  ///< the i-th best child of a parent (from 0) ranks this times i lower, and so do its own
                               ///< children (Li and Jurafsky 2016: diverse beams); >= 0. Scores do not show it
  Stage stage = Stage::after_softmax;  ///< when eos (too short an output) and tokens never generated are forbidden

  using State = detail::BeamState;

  void check() const {
    require(width >= 1, "width", width, "must be at least 1");
    stop.check();
    require(n_best >= 1 && n_best <= std::max(width, needed()), "n_best", n_best, "must be between 1 and the width");
    require(candidates == 0 || candidates >= width, "candidates", candidates, "must be 0 or at least the width");
    require(candidates == 0 || finished == Finished::set_aside, "candidates", candidates,
            "only Finished::set_aside refills the beam from further candidates");
    require(stop.rule != Stop::Rule::top_ended || finished == Finished::set_aside, "stop.rule", "top_ended",
            "needs Finished::set_aside");
    require(finished == Finished::set_aside || stop.rule == Stop::Rule::count || stop.rule == Stop::Rule::exact,
            "stop.rule", "heuristic", "compares with the set-aside hypotheses: needs Finished::set_aside");
    require(finished != Finished::stay || stop.rule == Stop::Rule::count, "stop.rule", "exact",
            "with Finished::stay the beam itself ranks finished against live hypotheses: use Rule::count");
    require(sibling_penalty >= 0 && std::isfinite(sibling_penalty), "sibling_penalty", sibling_penalty,
            "must be a number >= 0");
    require(!pruning.by_total() || (finished != Finished::stay && sibling_penalty <= 0), "pruning", "a threshold",
            "compares log-probabilities, but Finished::stay and sibling_penalty rank by something else");
    length.check(), penalty.check(), pruning.check();
  }

  std::int32_t slots() const { return width; }

  void start(State& s, Sentence const& sentence) const;
  void plan(State& s, Plan& plan) const;
  bool advance(State& s, Expansion const& answer) const;
  Progress progress(State const& s) const;
  void settled(State& s, std::vector<Token>& tokens) const;
  void finish(State const& s, Result& result) const;

 private:
  template <class A>
  friend struct ConstrainedBeamSearch;  // the same loop; it chooses otherwise among the candidates

  using Entry = State::Entry;
  using Pick = State::Pick;
  using Ended = State::Ended;

  std::int32_t looked_at(State const& s) const;
  std::int32_t needed() const;
  Query query(State const& s, double base, std::int32_t rank = 0) const;
  bool forced(State const& s) const;
  void receive(State& s) const;
  void collect(State& s, Expansion const& answer) const;
  void collect_from(State& s, std::size_t rank, Expansion const& answer, double local_bar) const;
  void collect_list(State& s, std::int32_t rank, Line const& line, double local_bar) const;
  void choose(State& s) const;
  void extend(State& s, Pick const& pick) const;
  void end(State& s, Pick const& pick) const;
  void prune(State& s) const;
  void drop_below_finished(State& s, double threshold) const;
  bool stops(State& s) const;
  void close(State& s) const;
  double score(State const& s, Entry const& entry) const {
    return penalty.score(entry.log_prob, s.history.length(entry.node));
  }
  void place(State& s) const;
};

inline void BeamSearch::start(State& s, Sentence const& sentence) const {
  s.bounds = length.of(sentence);
  s.bans.start(*sentence.vocabulary);
  s.prefix = Prefix(sentence);
  s.vocabulary = sentence.vocabulary;
  s.history.clear(s.prefix.size());
  s.beam.assign(1, Entry{.token = sentence.last, .slot = 0});
  s.next.clear(), s.picks.clear(), s.out.clear(), s.unused.clear();
  s.line.assign(1, 0);
  s.holder.assign(static_cast<std::size_t>(width), -1), s.holder[0] = 0;
  s.best_finished = -std::numeric_limits<double>::infinity();
  s.held = sentence.held, s.generated = s.prefix.size(), s.room = width;
  s.first = true, s.top_ended = s.over = false;
}

inline std::int32_t BeamSearch::looked_at(State const& s) const {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  if (finished == Finished::shrink) return s.room;
  if (finished != Finished::set_aside) return width;
  return candidates != 0 ? candidates : width * (1 + ends);  // every live one may end in every eos
}

/// How many must end, by Stop::Rule::count.
inline std::int32_t BeamSearch::needed() const {
  return stop.finished != 0 ? stop.finished
                            : std::max(1, static_cast<std::int32_t>(std::lround(stop.patience * width)));
}

/// Whether the next token can only be eos.
inline bool BeamSearch::forced(State const& s) const {
  return s.last() && !s.vocabulary->eos.empty() &&
         (at_maximum == AtMaximum::force_eos || at_maximum == AtMaximum::force_eos_free);
}

inline Query BeamSearch::query(State const& s, double base, std::int32_t rank) const {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  Query q{.base = base, .rank = rank, .edits = s.bans.edits(!forced(s) && s.generated < s.bounds.min), .stage = stage};
  if (forced(s)) q.best = 0, q.probes = s.vocabulary->eos;
  else
    q.best = std::min(width + ends, pruning.max_per_parent);  // what is worse than these can neither end nor continue
  return q;
}

inline void BeamSearch::plan(State& s, Plan& plan) const {
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  if (s.first && !prefix_scored) plan.ignore_prefix_scores();
  if (!s.first && forced(s) && at_maximum == AtMaximum::force_eos_free) return;  // nothing to learn but the prefix
  std::int32_t lines = 0;
  for (auto const rank : s.holder) {
    if (rank < 0) continue;
    auto const& entry = s.beam[static_cast<std::size_t>(rank)];
    s.line[static_cast<std::size_t>(rank)] = lines++;
    plan.row(entry.from, entry.slot, s.held, {&entry.token, 1});
    plan.ask(query(s, entry.log_prob, rank));
  }
  // Where candidates are not ranked by log_prob alone, all of them must be seen.
  if (pruning.relative_local_threshold <= 0 && sibling_penalty <= 0) plan.keep(looked_at(s));
}

inline bool BeamSearch::advance(State& s, Expansion const& answer) const {
  if (s.bounds.max == 0) return s.over = true;
  receive(s);
  collect(s, answer);
  choose(s);
  ++s.generated;
  prune(s);
  if (s.generated >= s.bounds.max || s.next.empty() || stops(s)) {
    close(s);
    return s.over = true;
  }
  place(s);
  return false;
}

/// Notes what has been fed.
inline void BeamSearch::receive(State& s) const {
  ++s.held;
  if (s.first && prefix_scored) s.beam[0].log_prob = s.beam[0].value = s.prefix.log_prob();
  s.first = false;
}

/// All candidates of the step, the best of them sorted to the front.
inline void BeamSearch::collect(State& s, Expansion const& answer) const {
  s.picks.clear();
  auto local_bar = -std::numeric_limits<double>::infinity();
  if (pruning.relative_local_threshold > 0)
    for (std::size_t r = 0; r < s.beam.size(); ++r)
      if (!s.beam[r].ended && answer.size() > 0)
        if (auto const best = answer[static_cast<std::size_t>(s.line[r])].best; !best.empty())
          local_bar =
              std::max(local_bar, static_cast<double>(best[0].log_prob) + std::log(pruning.relative_local_threshold));

  for (std::size_t r = 0; r < s.beam.size(); ++r) collect_from(s, r, answer, local_bar);
  auto const count = std::min(s.picks.size(), static_cast<std::size_t>(looked_at(s)));
  auto const end = s.picks.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(s.picks.begin(), end, s.picks.end(), [](Pick const& a, Pick const& b) {
    return a.value != b.value ? a.value > b.value : a.order < b.order;
  });
  s.picks.erase(end, s.picks.end());
}

inline void BeamSearch::collect_from(State& s, std::size_t r, Expansion const& answer, double local_bar) const {
  auto const& entry = s.beam[r];
  auto const rank = static_cast<std::int32_t>(r);
  auto const order = static_cast<std::int32_t>(s.picks.size());
  if (entry.ended) s.picks.push_back({entry.value, entry.log_prob, rank, order, entry.token, 0, true, true});
  else if (forced(s) && at_maximum == AtMaximum::force_eos_free)
    s.picks.push_back({entry.value, entry.log_prob, rank, order, s.vocabulary->eos.front(), 0, true, false});
  else collect_list(s, rank, answer[static_cast<std::size_t>(s.line[r])], local_bar);
}

inline void BeamSearch::collect_list(State& s, std::int32_t rank, Line const& line, double local_bar) const {
  auto const& parent = s.beam[static_cast<std::size_t>(rank)];
  auto malus = 0.0;
  auto const add = [&](Token token, float log_prob, bool eos) {
    auto const gain = static_cast<double>(log_prob);
    auto const order = static_cast<std::int32_t>(s.picks.size());
    if (gain > -std::numeric_limits<double>::infinity())
      s.picks.push_back(
          {parent.value + gain - malus, parent.log_prob + gain, rank, order, token, log_prob, eos, false});
    malus += sibling_penalty;
  };
  if (forced(s)) {
    for (std::size_t i = 0; i < line.probes.size(); ++i) add(s.vocabulary->eos[i], line.probes[i], true);
    return;
  }
  for (auto const candidate : line.best)
    if (static_cast<double>(candidate.log_prob) > local_bar)
      add(candidate.token, candidate.log_prob, s.is_eos(candidate.token));
}

/// From the candidates, best first, to the next beam and the finished hypotheses.
inline void BeamSearch::choose(State& s) const {
  s.next.clear();
  auto const ended_before = s.out.size();
  std::size_t first = 0;
  if (finished == Finished::leave_first)
    while (first < s.picks.size() && s.picks[first].ended) end(s, s.picks[first++]);
  if (finished == Finished::leave_first) s.room = width - static_cast<std::int32_t>(s.out.size());
  if (finished == Finished::set_aside) s.top_ended |= !s.picks.empty() && s.picks[0].ended;

  auto room = s.room;
  // At the last token, only candidates that fit the beam may join the finished ones.
  auto const limit = s.last() && finished == Finished::set_aside ? static_cast<std::size_t>(width) : s.picks.size();
  auto const places = surplus || stop.rule != Stop::Rule::count ? std::numeric_limits<std::int32_t>::max() : needed();
  auto const guarded = guard_prefix && s.prefix.size() > 0 && s.generated == s.prefix.size();
  for (auto i = first; i < std::min(limit, s.picks.size()); ++i) {
    auto const& pick = s.picks[i];
    if (guarded && pick.ended && i > 0) {
      if (static_cast<std::int32_t>(i) < width) --room;
      continue;
    }
    auto const leaves = pick.ended && (finished == Finished::set_aside || finished == Finished::shrink);
    if (!leaves) {
      if (static_cast<std::int32_t>(s.next.size()) < room) extend(s, pick);
    } else if (finished == Finished::shrink || static_cast<std::int32_t>(i) < width) {
      if (finished == Finished::shrink || static_cast<std::int32_t>(s.out.size()) < places) end(s, pick);
    }
  }
  if (finished == Finished::shrink) s.room -= static_cast<std::int32_t>(s.out.size() - ended_before);
}

inline void BeamSearch::extend(State& s, Pick const& pick) const {
  auto const& parent = s.beam[static_cast<std::size_t>(pick.parent)];
  auto const node = pick.carried ? parent.node : s.history.add(parent.node, pick.token, pick.token_log_prob);
  auto value = pick.value;
  if (pick.ended && !pick.carried && finished == Finished::stay)
    value = penalty.score(pick.log_prob, s.history.length(node));
  s.next.push_back({pick.log_prob, value, node, pick.token, parent.slot, -1, pick.ended});
}

inline void BeamSearch::end(State& s, Pick const& pick) const {
  auto const& parent = s.beam[static_cast<std::size_t>(pick.parent)];
  auto const node = pick.carried ? parent.node : s.history.add(parent.node, pick.token, pick.token_log_prob);
  auto const tokens = s.history.length(node);
  s.out.push_back({node, pick.log_prob, penalty.score(pick.log_prob, tokens), true});
  if (tokens > 1) s.best_finished = std::max(s.best_finished, pick.log_prob);
}

inline void BeamSearch::prune(State& s) const {
  if (pruning.by_total() && !s.next.empty()) {
    auto const bar = std::max(s.next[0].value, s.best_finished) - pruning.margin();
    std::erase_if(s.next, [&](Entry const& entry) { return !(entry.value > bar); });
  }
  drop_below_finished(s, pruning.below_finished);
}

inline void BeamSearch::drop_below_finished(State& s, double threshold) const {
  if (!(threshold < Pruning::off)) return;
  auto best = -std::numeric_limits<double>::infinity();
  for (auto const& ended : s.out) best = std::max(best, ended.score);
  for (auto const& entry : s.next)
    if (entry.ended) best = std::max(best, score(s, entry));
  std::erase_if(
      s.next, [&](Entry const& entry) { return (entry.ended ? score(s, entry) : entry.log_prob) < best - threshold; });
}

inline bool BeamSearch::stops(State& s) const {
  auto const stayed = std::ranges::count_if(s.next, &Entry::ended);
  auto count = static_cast<std::int32_t>(s.out.size());
  switch (stop.rule) {
    case Stop::Rule::count:
      if (finished == Finished::stay) {
        if (stayed == std::ssize(s.next)) return true;
        count = static_cast<std::int32_t>(stayed);
      }
      return count >= needed();
    case Stop::Rule::top_ended: return s.top_ended && count >= n_best;
    case Stop::Rule::exact:
    case Stop::Rule::heuristic:
    case Stop::Rule::never_early: break;
  }
  auto const rival = stop.rule == Stop::Rule::exact ? n_best : width;  // whose place a live one would have to take
  if (count < rival) return false;
  s.scores.clear();
  for (auto const& ended : s.out) s.scores.push_back(ended.score);
  std::ranges::nth_element(s.scores, s.scores.begin() + rival - 1, std::greater{});
  auto const bar = s.scores[static_cast<std::size_t>(rival) - 1];
  if (stop.rule == Stop::Rule::exact)
    return std::ranges::all_of(s.next, [&](Entry const& entry) {
      auto const top = entry.ended ? score(s, entry) : penalty.bound(entry.log_prob, s.generated + 1, s.bounds.max);
      return top <= bar;
    });
  auto const at = stop.rule == Stop::Rule::never_early && penalty.alpha > 0 ? s.bounds.max : s.generated;
  return penalty.score(s.next[0].log_prob, at) <= bar;
}

/// The sentence is over: what becomes of the hypotheses that are still in the beam.
inline void BeamSearch::close(State& s) const {
  auto const fixed_length = s.vocabulary->eos.empty();
  auto const full = s.generated >= s.bounds.max;
  auto joined = false;
  for (auto const& entry : s.next) {
    if (entry.ended) {
      if (finished == Finished::stay || full) s.out.push_back({entry.node, entry.log_prob, score(s, entry), true});
    } else if (full && (fixed_length || at_maximum == AtMaximum::truncate ||
                        (at_maximum == AtMaximum::best_unfinished && !joined))) {
      s.out.push_back({entry.node, entry.log_prob, score(s, entry), fixed_length});
      joined = true;
    }
  }
  s.next.clear(), s.beam.clear();
}

/// `next` becomes the beam.
inline void BeamSearch::place(State& s) const {
  detail::place(std::span(s.next), s.holder, s.unused);
  s.beam.swap(s.next);
  s.line.assign(s.beam.size(), 0);
}

inline Progress BeamSearch::progress(State const& s) const {
  return {s.held, static_cast<std::int32_t>(s.beam.size())};
}

/// What the hypotheses alive and those ended that may yet be returned begin with.
inline void BeamSearch::settled(State& s, std::vector<Token>& tokens) const {
  s.nodes.clear();
  for (auto const& entry : s.beam) s.nodes.push_back(entry.node);
  for (std::size_t i = 0; i < s.out.size(); ++i) {
    auto const before = [&, i, order = std::size_t{0}](Ended const& e) mutable {
      auto const earlier = order++ < i;
      return e.score > s.out[i].score || (earlier && !(e.score < s.out[i].score));
    };
    if (std::ranges::count_if(s.out, before) < n_best) s.nodes.push_back(s.out[i].node);
  }
  s.history.write(s.history.common(s.nodes), tokens);
}

inline void BeamSearch::finish(State const& s, Result& result) const {
  result.hypotheses.clear();
  auto ended = s.out;
  if (s.bounds.max == 0) ended.push_back({.node = History::root});
  if (!s.over)  // called early: behind the finished ones, what there is
    for (auto const& entry : s.beam) ended.push_back({entry.node, entry.log_prob, score(s, entry), entry.ended, true});
  for (std::size_t i = 0; i < ended.size(); ++i) ended[i].order = i;
  std::ranges::sort(ended, [](Ended const& a, Ended const& b) {
    return std::tuple(a.alive, b.score, a.order) < std::tuple(b.alive, a.score, b.order);
  });
  if (ended.size() > static_cast<std::size_t>(n_best)) ended.erase(ended.begin() + n_best, ended.end());
  for (auto const& e : ended) {
    auto& h = result.hypotheses.emplace_back();
    s.history.write(e.node, h);
    h.log_prob = e.log_prob, h.score = e.score, h.finished = e.finished;
  }
  if (s.over && ended.empty() && at_maximum != AtMaximum::drop)
    result.fail(Failure::no_token_left, "every token was impossible before any hypothesis had finished");
}

}  // namespace sluice::inline v0
