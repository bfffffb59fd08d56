// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps of a beam search: the lines of a step become candidates, these the next beam and finished hypotheses; when it ends,
/// and what it returns. Searches that select candidates differently use those that they share. `Beam` is BeamSearch here and in
/// the headers that this one includes, since its definition includes them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_options.hpp>
#include <sluice/search/detail/beam_state.hpp>
#include <sluice/search/detail/placement.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail::beam_loop {

/// The maximum number of candidates considered per step.
template <class Beam>
std::int32_t looked_at(Beam const& options, BeamState const& s) {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  if (options.finished == FinishedHypotheses::shrink) return s.room;
  if (options.finished != FinishedHypotheses::set_aside) return options.width;
  // Every live hypothesis may end in any eos token.
  return options.candidates != 0 ? options.candidates : options.width * (1 + ends);
}

/// Whether the next token can only be eos.
template <class Beam>
bool forced(Beam const& options, BeamState const& s) {
  return s.last() && !s.vocabulary->eos.empty() &&
         (options.at_maximum == AtMaximum::force_eos || options.at_maximum == AtMaximum::force_eos_free);
}

/// The order of candidates: ties go to the one found first.
inline bool better(BeamState::Pick const& a, BeamState::Pick const& b) {
  return a.value != b.value ? a.value > b.value : a.order < b.order;
}

/// Adds the children that one line lists, or the ends that were requested as probes.
/// \param bar  for the last token's log-probability
template <class Beam>
void add_children(Beam const& options, BeamState& s, std::int32_t rank, Line const& line, double bar) {
  auto const& parent = s.beam[static_cast<std::size_t>(rank)];
  auto penalty = 0.0;
  auto const add = [&](Token token, float log_prob, bool eos) {
    auto const gain = static_cast<double>(log_prob);
    auto const order = static_cast<std::int32_t>(s.picks.size());
    if (gain > -std::numeric_limits<double>::infinity())
      s.picks.push_back(
          {parent.value + gain - penalty, parent.log_prob + gain, rank, order, token, log_prob, eos, false});
    penalty += options.sibling_penalty;
  };
  if (forced(options, s)) {
    auto const best = std::max_element(line.probes.begin(), line.probes.end()) - line.probes.begin();
    for (std::size_t i = 0; i < line.probes.size(); ++i)
      if (!options.one_end || i == static_cast<std::size_t>(best)) add(s.vocabulary->eos[i], line.probes[i], true);
    return;
  }
  auto ended = false;
  for (auto const candidate : line.best) {
    if (!(static_cast<double>(candidate.log_prob) > bar)) continue;
    auto const eos = s.is_eos(candidate.token);
    if (eos && ended && options.one_end) continue;
    add(candidate.token, candidate.log_prob, eos);
    ended = ended || eos;
  }
}

/// Adds the candidates of the hypothesis of rank `r`: itself if it has ended, else its children.
template <class Beam>
void add_candidates(Beam const& options, BeamState& s, std::size_t r, Expansion const& answer,
                    double bar = -std::numeric_limits<double>::infinity()) {
  auto const& entry = s.beam[r];
  auto const rank = static_cast<std::int32_t>(r);
  auto const order = static_cast<std::int32_t>(s.picks.size());
  if (entry.ended) s.picks.push_back({entry.value, entry.log_prob, rank, order, entry.token, 0, true, true});
  else if (forced(options, s) && options.at_maximum == AtMaximum::force_eos_free)
    s.picks.push_back({entry.value, entry.log_prob, rank, order, s.vocabulary->eos.front(), 0, true, false});
  else add_children(options, s, rank, answer[static_cast<std::size_t>(s.line[r])], bar);
}

/// The threshold of Pruning::relative_local_threshold on a token's log-probability.
template <class Beam>
double local_bar(Beam const& options, BeamState const& s, Expansion const& answer) {
  auto bar = -std::numeric_limits<double>::infinity();
  auto const threshold = options.pruning.relative_local_threshold;
  if (threshold <= 0 || answer.size() == 0) return bar;
  for (std::size_t r = 0; r < s.beam.size(); ++r) {
    if (s.beam[r].ended) continue;
    auto const best = answer[static_cast<std::size_t>(s.line[r])].best;
    if (!best.empty()) bar = (std::max)(bar, static_cast<double>(best[0].log_prob) + std::log(threshold));
  }
  return bar;
}

/// Candidates that complete a stop end.
SLUICE_LAZY void find_stops(BeamState& s, Expansion const& answer) {
  if (s.generated + 1 < s.bounds.min) return;
  for (auto& pick : s.picks) {
    if (pick.ended) continue;
    pick.stop = answer.stop(static_cast<std::size_t>(s.line[static_cast<std::size_t>(pick.parent)]), pick.token);
    pick.ended = pick.stop >= 0;
  }
}

/// The best candidates of the step, in order.
template <class Beam>
void collect(Beam const& options, BeamState& s, Expansion const& answer) {
  s.picks.clear();
  auto const bar = local_bar(options, s, answer);
  for (std::size_t r = 0; r < s.beam.size(); ++r) add_candidates(options, s, r, answer, bar);
  auto const count = (std::min)(s.picks.size(), static_cast<std::size_t>(looked_at(options, s)));
  auto* const end = s.picks.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(s.picks.begin(), end, s.picks.end(), better);
  s.picks.erase(end, s.picks.end());
  if (options.stop_at_once) find_stops(s, answer);
}

}  // namespace sluice::inline v0::detail::beam_loop

namespace sluice::inline v0::detail::beam_loop {

/// The inputs of the rules after a step.
struct Standing {
  std::span<BeamState::Entry const> beam;   // best first; includes finished hypotheses that stay; not empty
  std::span<BeamState::Ended const> ended;  // finished hypotheses that have left it
  History const& history;
  std::int32_t generated, max;  // tokens
  bool top_ended;
  double best;  // log-probability of the step's best candidate, live or ended
};

/// Rule::count. With FinishedHypotheses::stay, the finished hypotheses are in the beam itself.
template <class Beam>
bool enough_ended(Beam const& options, Standing const& now) {
  auto count = now.ended.size();
  if (options.finished == FinishedHypotheses::stay) {
    count = static_cast<std::size_t>(
        std::count_if(now.beam.begin(), now.beam.end(), [](auto const& entry) { return entry.ended; }));
    if (count == now.beam.size()) return true;
  }
  return static_cast<std::int32_t>(count) >= options.early_stopping.needed(options.width);
}

/// The worst score among the `rank` best finished ones, which a live hypothesis would have to beat.
SLUICE_LAZY double worst_of_best(Standing const& now, std::int32_t rank, Buffer<double>& scores) {
  scores.clear();
  for (auto const& ended : now.ended) scores.push_back(ended.score);
  auto* const worst = scores.begin() + (rank - 1);
  std::nth_element(scores.begin(), worst, scores.end(), [](double a, double b) { return a > b; });
  return *worst;
}

/// Rule::exact.
template <class Beam>
bool none_can_pass(Beam const& options, Standing const& now, double bar) {
  auto const& penalty = options.penalty;
  return std::all_of(now.beam.begin(), now.beam.end(), [&](auto const& entry) {
    auto const top = entry.ended ? penalty.score(entry.log_prob, now.history.length(entry.node))
                                 : penalty.bound(entry.log_prob, now.generated + 1, now.max);
    return top <= bar;
  });
}

/// Rule::heuristic and Rule::never_early.
template <class Beam>
bool best_falls_short(Beam const& options, Standing const& now, double bar) {
  auto const hopeful = options.early_stopping.rule == EarlyStopping::Rule::never_early && options.penalty.alpha > 0;
  auto const best = options.early_stopping.ended_first ? now.best : now.beam[0].log_prob;
  return options.penalty.score(best, hopeful ? now.max : now.generated) <= bar;
}

/// \param scores  scratch
template <class Beam>
bool rule_holds(Beam const& options, Standing const& now, Buffer<double>& scores) {
  auto const count = static_cast<std::int32_t>(now.ended.size());
  auto const full = [&](std::int32_t rank) { return count >= rank; };
  switch (options.early_stopping.rule) {
    case EarlyStopping::Rule::count: return enough_ended(options, now);
    case EarlyStopping::Rule::top_ended: return now.top_ended && full(options.n_best);
    case EarlyStopping::Rule::exact:
      return full(options.n_best) && none_can_pass(options, now, worst_of_best(now, options.n_best, scores));
    case EarlyStopping::Rule::heuristic:
    case EarlyStopping::Rule::never_early:
      return full(options.width) && best_falls_short(options, now, worst_of_best(now, options.width, scores));
  }
  return false;
}

/// Whether the rule stops the search after the step that led to `next`, which is not empty.
template <class Beam>
bool stops(Beam const& options, BeamState& s) {
  auto const best = s.picks.empty() ? -std::numeric_limits<double>::infinity() : s.picks[0].log_prob;
  return rule_holds(options, {s.next, s.out, s.history, s.generated, s.bounds.max, s.top_ended, best}, s.scores);
}

}  // namespace sluice::inline v0::detail::beam_loop

namespace sluice::inline v0::detail::beam_loop {

template <class Beam>
double score(Beam const& options, BeamState const& s, BeamState::Entry const& entry) {
  return options.penalty.score(entry.log_prob, s.history.length(entry.node));
}

/// The candidate's node in the history: a new one, or the existing one if it had ended before.
SLUICE_LAZY History::Node node_of(BeamState& s, BeamState::Pick const& pick) {
  auto const parent = s.beam[static_cast<std::size_t>(pick.parent)].node;
  return pick.carried ? parent : s.history.add(parent, pick.token, pick.token_log_prob);
}

/// Moves the candidate to the next beam.
template <class Beam>
void extend(Beam const& options, BeamState& s, BeamState::Pick const& pick) {
  auto const node = node_of(s, pick);
  auto value = pick.value;
  if (pick.ended && !pick.carried && options.finished == FinishedHypotheses::stay)
    value = options.penalty.score(pick.log_prob, s.history.length(node));
  auto const from = s.beam[static_cast<std::size_t>(pick.parent)].slot;
  auto const stop = pick.carried ? s.beam[static_cast<std::size_t>(pick.parent)].stop : pick.stop;
  s.next.push_back({pick.log_prob, value, node, pick.token, from, -1, pick.ended, stop});
}

/// Moves the candidate to the finished hypotheses.
template <class Beam>
void end(Beam const& options, BeamState& s, BeamState::Pick const& pick) {
  auto const node = node_of(s, pick);
  auto const tokens = s.history.length(node);
  s.out.push_back({.node = node,
                   .log_prob = pick.log_prob,
                   .score = options.penalty.score(pick.log_prob, tokens),
                   .finished = true,
                   .stop = pick.carried ? s.beam[static_cast<std::size_t>(pick.parent)].stop : pick.stop});
  if (tokens > 1) s.best_finished = (std::max)(s.best_finished, pick.log_prob);
}

/// Takes the candidates, best first, while there is room.
template <class Beam>
void choose(Beam const& options, BeamState& s) {
  auto const finished = options.finished;
  auto const& picks = s.picks;
  s.next.clear();
  auto const ended_before = s.out.size();
  std::size_t first = 0;
  if (finished == FinishedHypotheses::leave_first) {
    while (first < picks.size() && picks[first].ended) end(options, s, picks[first++]);
    s.room = options.width - static_cast<std::int32_t>(s.out.size());
  }
  if (finished == FinishedHypotheses::set_aside) s.top_ended |= !picks.empty() && picks[0].ended;

  auto room = s.room;
  // At the maximum length, only candidates that fit into the beam may join the finished ones.
  auto const width = static_cast<std::size_t>(options.width);
  auto const limit = s.last() && finished == FinishedHypotheses::set_aside && !options.early_stopping.ended_first
                         ? width
                         : picks.size();
  auto const places = options.surplus || options.early_stopping.rule != EarlyStopping::Rule::count
                          ? (std::numeric_limits<std::size_t>::max)()
                          : static_cast<std::size_t>(options.early_stopping.needed(options.width));
  auto const guarded = options.guard_prefix && s.prefix.size() > 0 && s.generated == s.prefix.size();
  for (auto i = first; i < (std::min)(limit, picks.size()); ++i) {
    auto const& pick = picks[i];
    if (guarded && pick.ended && i > 0) {
      if (i < width) --room;
      continue;
    }
    if (pick.ended && finished == FinishedHypotheses::shrink) end(options, s, pick);
    else if (pick.ended && finished == FinishedHypotheses::set_aside) {
      if (i < width && s.out.size() < places) end(options, s, pick);
    } else if (static_cast<std::int32_t>(s.next.size()) < room) {
      extend(options, s, pick);
    }
  }
  if (finished == FinishedHypotheses::shrink) s.room -= static_cast<std::int32_t>(s.out.size() - ended_before);
}

/// Pruning::below_finished, applied to the next beam.
template <class Beam>
void drop_below_finished(Beam const& options, BeamState& s, double threshold) {
  if (!(threshold < Pruning::off)) return;
  auto best = -std::numeric_limits<double>::infinity();
  for (auto const& ended : s.out) best = (std::max)(best, ended.score);
  for (auto const& entry : s.next)
    if (entry.ended) best = (std::max)(best, score(options, s, entry));
  erase_if(s.next, [&](BeamState::Entry const& entry) {
    return (entry.ended ? score(options, s, entry) : entry.log_prob) < best - threshold;
  });
}

/// Prunes the next beam by the thresholds.
template <class Beam>
void prune(Beam const& options, BeamState& s) {
  if (options.pruning.by_total() && !s.next.empty()) {
    auto const bar = (std::max)(s.next[0].value, s.best_finished) - options.pruning.margin();
    erase_if(s.next, [&](BeamState::Entry const& entry) { return !(entry.value > bar); });
  }
  drop_below_finished(options, s, options.pruning.below_finished);
}

}  // namespace sluice::inline v0::detail::beam_loop

namespace sluice::inline v0::detail::beam_loop {

/// Ends the sentence: moves hypotheses of the last beam to the finished ones, as the options say.
template <class Beam>
void close(Beam const& options, BeamState& s) {
  auto const fixed_length = s.vocabulary->eos.empty();
  auto const full = s.generated >= s.bounds.max;
  auto const cut = full && !(options.early_stopping.ended_first && !s.next.empty() && stops(options, s));
  auto joined = false;
  auto const join = [&](BeamState::Entry const& entry, bool finished) {
    s.out.push_back({.node = entry.node,
                     .log_prob = entry.log_prob,
                     .score = score(options, s, entry),
                     .finished = finished,
                     .stop = entry.stop});
  };
  for (auto const& entry : s.next) {
    if (entry.ended) {
      if (options.finished == FinishedHypotheses::stay || full) join(entry, true);
    } else if (cut && (fixed_length || options.at_maximum == AtMaximum::truncate ||
                       (options.at_maximum == AtMaximum::best_unfinished && !joined))) {
      join(entry, fixed_length);
      joined = true;
    }
  }
  s.beam.clear();
}

/// Calls f(ended) for every hypothesis to report: the finished ones and, before the sentence is over, the live ones.
template <class Beam, class F>
void for_each_told(Beam const& options, BeamState const& s, F&& f) {
  for (auto const& ended : s.out) f(ended);
  if (s.bounds.max == 0) f(BeamState::Ended{.node = History::root});
  if (!s.over)
    for (auto const& entry : s.beam)
      f(BeamState::Ended{.node = entry.node,
                         .log_prob = entry.log_prob,
                         .score = score(options, s, entry),
                         .finished = entry.ended,
                         .alive = true,
                         .stop = entry.stop});
}

/// The n best of them, in order; live ones come last.
template <class Beam>
Buffer<BeamState::Ended> told(Beam const& options, BeamState const& s) {
  Buffer<BeamState::Ended> all;
  for_each_told(options, s, [&](BeamState::Ended ended) {
    ended.order = all.size();
    all.push_back(ended);
  });
  std::sort(all.begin(), all.end(), [](BeamState::Ended const& a, BeamState::Ended const& b) {
    if (a.alive != b.alive) return b.alive;
    return a.score != b.score ? a.score > b.score : a.order < b.order;
  });
  if (all.size() > static_cast<std::size_t>(options.n_best)) all.erase(all.begin() + options.n_best, all.end());
  return all;
}

SLUICE_LAZY Hypothesis& add_hypothesis(BeamState const& s, BeamState::Ended const& ended, Result& result) {
  auto& h = result.hypotheses.emplace_back();
  s.history.write(ended.node, h);
  h.log_prob = ended.log_prob, h.score = ended.score, h.finished = ended.finished;
  if (ended.stop >= 0) h.stop = ended.stop;
  return h;
}

template <class Beam>
void fail_if_empty(Beam const& options, BeamState const& s, Result& result) {
  if (s.over && result.hypotheses.empty()) say_why_empty(options.at_maximum, result);
}

/// Lists all of them, as the beam ranks them. The caller applies Prefix::complete().
template <class Beam>
void tell(Beam const& options, BeamState const& s, Result& result) {
  result.hypotheses.clear();
  for (auto const& ended : told(options, s)) add_hypothesis(s, ended, result);
  fail_if_empty(options, s, result);
}

/// The common beginning of the live hypotheses and of the finished ones that may still be returned.
template <class Beam>
void settle(Beam const& options, BeamState& s, std::vector<Token>& tokens) {
  s.nodes.clear();
  for (auto const& entry : s.beam) s.nodes.push_back(entry.node);
  for (std::size_t i = 0; i < s.out.size(); ++i) {
    auto const mine = s.out[i].score;
    std::ptrdiff_t before = 0;  // finished hypotheses listed before it
    for (std::size_t j = 0; j < s.out.size(); ++j)
      before += s.out[j].score > mine || (j < i && !(s.out[j].score < mine)) ? 1 : 0;
    if (before < options.n_best) s.nodes.push_back(s.out[i].node);
  }
  s.history.write(s.history.common(s.nodes), tokens);
}

}  // namespace sluice::inline v0::detail::beam_loop

namespace sluice::inline v0::detail::beam_loop {

/// The query for one hypothesis.
template <class Beam>
Query query(Beam const& options, BeamState const& s, BeamState::Entry const& entry, std::int32_t rank) {
  auto const ends = static_cast<std::int32_t>(s.vocabulary->eos.size());
  auto const only_eos = forced(options, s);
  Query q{.base = entry.log_prob,
          .rank = rank,
          .edits = s.bans.edits(!only_eos && s.generated < s.bounds.min),
          .stage = options.stage};
  if (only_eos) q.best = 0, q.probes = s.vocabulary->eos;
  else  // worse candidates can neither end nor continue
    q.best = (std::min)(options.width + ends, options.pruning.max_per_parent);
  return q;
}

/// Counts the tokens that have been fed.
template <class Beam>
void receive(Beam const& options, BeamState& s) {
  ++s.held;
  if (s.first && options.prefix_scored) s.beam[0].log_prob = s.beam[0].value = s.prefix.ranked();
  s.first = false;
}

/// Whether the step that led to `next` is the last.
template <class Beam>
bool over(Beam const& options, BeamState& s) {
  return s.generated >= s.bounds.max || s.next.empty() || stops(options, s);
}

/// Makes `next` the beam.
SLUICE_LAZY void go_on(BeamState& s) {
  detail::place(std::span(s.next), s.holder, s.unused);
  s.beam.swap(s.next);
  s.line.assign(s.beam.size(), 0);
}

template <class Beam>
void begin(Beam const& options, BeamState& s, Sentence const& sentence) {
  s.begin(sentence, options.length);
  s.history.clear(s.prefix.size());
  s.beam.assign(1, BeamState::Entry{.token = sentence.last, .slot = 0});
  s.next.clear(), s.out.clear(), s.unused.clear();
  s.line.assign(1, 0);
  s.holder.assign(static_cast<std::size_t>(options.width), -1), s.holder[0] = 0;
  s.best_finished = -std::numeric_limits<double>::infinity();
  s.held = sentence.held, s.generated = s.prefix.size(), s.room = options.width;
  s.first = true, s.top_ended = s.over = false;
}

template <class Beam>
void plan(Beam const& options, BeamState& s, Plan& plan) {
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  if (s.first && !options.prefix_scored) plan.ignore_prefix_scores();
  if (!s.first && options.at_maximum == AtMaximum::force_eos_free && forced(options, s)) return;  // no choice left
  std::int32_t lines = 0;
  for (auto const rank : s.holder) {
    if (rank < 0) continue;
    auto const& entry = s.beam[static_cast<std::size_t>(rank)];
    s.line[static_cast<std::size_t>(rank)] = lines++;
    plan.row(entry.from, entry.slot, s.held, {&entry.token, 1});
    plan.ask(query(options, s, entry, rank));
  }
  // Where candidates are ranked by more than log_prob, the search needs all of them.
  if (options.pruning.relative_local_threshold > 0 || options.sibling_penalty > 0) return;
  auto const more_ends = static_cast<std::int32_t>(s.vocabulary->eos.size()) - 1;  // of a hypothesis: not looked at
  plan.keep(looked_at(options, s) + (options.one_end && more_ends > 0 ? options.width * more_ends : 0));
}

template <class Beam>
bool advance(Beam const& options, BeamState& s, Expansion const& answer) {
  if (s.bounds.max == 0) return s.over = true;
  receive(options, s);
  collect(options, s, answer);
  choose(options, s);
  ++s.generated;
  prune(options, s);
  if (over(options, s)) close(options, s), s.over = true;
  else go_on(s);
  return s.over;
}

}  // namespace sluice::inline v0::detail::beam_loop
