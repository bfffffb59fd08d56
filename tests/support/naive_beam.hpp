// SPDX-License-Identifier: Apache-2.0
/// \file
/// Beam search over whole token lists, written from the documentation of its options.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/drawn_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace sluice::test {

struct NaiveBeam {
  struct One {
    std::vector<Token> tokens{};  // without the prefix
    std::vector<float> log_probs{};
    double log_prob = 0, value = 0;
    bool ended = false, finished = false;
  };
  DrawnSentence const& sentence;
  BeamSearch options;
  std::function<float(Token)> cost = {};  // the penalty of a token in this step; null: none
  std::vector<One> beam{One{}}, out{};    // best first; in the order in which they ended
  std::vector<One> went_on{};             // the beam of the last step, also if that was the last one
  double best_found = 0;                  // log-probability of that step's best candidate
  std::int32_t prefix = 0, generated = 0;
  bool top_ended = false, over = false;

  NaiveBeam(DrawnSentence const& drawn, BeamSearch const& search) : sentence(drawn), options(search) {
    prefix = generated = static_cast<std::int32_t>(drawn.prefix.size());
  }

  double score(One const& one) const {
    return options.penalty.score(one.log_prob, prefix + static_cast<std::int32_t>(one.tokens.size()));
  }
  bool last() const { return generated + 1 >= options.length.max; }
  bool only_eos() const {
    return last() && !sentence.vocabulary.eos.empty() &&
           (options.at_maximum == AtMaximum::force_eos || options.at_maximum == AtMaximum::force_eos_free);
  }
  std::size_t longest_list() const {
    auto const useful = options.width + static_cast<std::int32_t>(sentence.vocabulary.eos.size());
    return static_cast<std::size_t>(std::min(useful, options.pruning.max_per_parent));
  }
  std::size_t looked_at() const {
    auto const width = static_cast<std::size_t>(options.width);
    if (options.finished == FinishedHypotheses::shrink) return width - out.size();
    if (options.finished != FinishedHypotheses::set_aside) return width;
    return options.candidates > 0 ? static_cast<std::size_t>(options.candidates)
                                  : width * (1 + sentence.vocabulary.eos.size());
  }
  /// What is asked for: with one_end, all ends of a hypothesis but one are passed over.
  std::size_t asked() const {
    auto const ends = sentence.vocabulary.eos.size();
    return looked_at() + (options.one_end && ends > 1 ? static_cast<std::size_t>(options.width) * (ends - 1) : 0);
  }

  void step() {
    if (options.length.max == 0) {
      out.assign(1, {}), beam.clear(), over = true;
      return;
    }
    if (generated == prefix && options.prefix_scored) beam[0].log_prob = beam[0].value = sentence.before;
    auto found = candidates();
    std::ranges::stable_sort(found, [](One const& a, One const& b) { return a.value > b.value; });
    found.resize(std::min(found.size(), looked_at()));
    best_found = found.empty() ? -std::numeric_limits<double>::infinity() : found[0].log_prob;
    auto next = survivors(found);
    ++generated;
    prune(next);
    auto const full = generated >= options.length.max;
    beam = went_on = std::move(next);
    if (full || beam.empty() || stops()) close(full);
  }

  /// The hypotheses that finish() returns, best first.
  std::vector<One> told() const {
    auto const by_score = [&](One const& a, One const& b) { return score(a) > score(b); };
    auto all = out, alive = beam;
    std::ranges::stable_sort(all, by_score), std::ranges::stable_sort(alive, by_score);
    if (!over) all.insert(all.end(), alive.begin(), alive.end());
    all.resize(std::min(all.size(), static_cast<std::size_t>(options.n_best)));
    return all;
  }

  /// The common beginning of all hypotheses that may still be returned.
  std::vector<Token> settled() const {
    auto all = out;
    std::ranges::stable_sort(all, [&](One const& a, One const& b) { return score(a) > score(b); });
    all.resize(std::min(all.size(), static_cast<std::size_t>(options.n_best)));
    all.insert(all.end(), beam.begin(), beam.end());
    if (all.empty()) return {};
    auto shared = all[0].tokens;
    for (auto const& one : all) shared.erase(std::ranges::mismatch(shared, one.tokens).in1, shared.end());
    return shared;
  }

 private:
  std::vector<Edit> edits() const { return sentence.edits(!only_eos() && generated < options.length.min); }
  float log_prob(One const& one, Token token) const {
    return sentence.lines(sentence.context(one.tokens), edits())[static_cast<std::size_t>(token)];
  }
  /// All tokens that may be chosen, best first.
  std::vector<Candidate> list(One const& one) const {
    auto all = sentence.lines.list(sentence.context(one.tokens), edits());
    if (!cost) return all;
    for (auto& candidate : all) candidate.log_prob -= cost(candidate.token);
    std::ranges::stable_sort(all, [](Candidate a, Candidate b) {
      return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
    });
    return all;
  }
  std::vector<One> candidates() const {
    std::vector<std::vector<Candidate>> lists(beam.size());
    auto best = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < beam.size(); ++i) {
      if (beam[i].ended || only_eos()) continue;
      lists[i] = list(beam[i]);
      lists[i].resize(std::min(lists[i].size(), longest_list()));
      auto const ends = [&](Candidate const& c) { return sentence.vocabulary.ends(c.token); };
      if (auto const first = std::ranges::find_if(lists[i], ends); options.one_end && first != lists[i].end())
        lists[i].erase(std::remove_if(first + 1, lists[i].end(), ends), lists[i].end());
      if (!lists[i].empty()) best = std::max(best, static_cast<double>(lists[i][0].log_prob));
    }
    auto const local = options.pruning.relative_local_threshold;
    std::vector<One> all;
    for (std::size_t i = 0; i < beam.size(); ++i) {
      auto sibling = 0;
      auto const child = [&](Token token, float log_prob) {
        auto const behind = options.sibling_penalty * sibling++;
        if (std::isinf(log_prob)) return;
        auto& one = all.emplace_back(beam[i]);
        one.tokens.push_back(token), one.log_probs.push_back(log_prob);
        one.log_prob += static_cast<double>(log_prob), one.value += static_cast<double>(log_prob) - behind;
        one.ended = one.finished = sentence.vocabulary.ends(token);
      };
      if (beam[i].ended) all.push_back(beam[i]);
      else if (only_eos() && options.at_maximum == AtMaximum::force_eos_free) child(sentence.vocabulary.eos[0], 0);
      else if (only_eos()) {
        auto const& ends = sentence.vocabulary.eos;
        auto const kept = options.one_end
                              ? std::ranges::max_element(ends, {}, [&](Token t) { return log_prob(beam[i], t); })
                              : ends.end();
        for (auto it = ends.begin(); it != ends.end(); ++it)
          if (!options.one_end || it == kept) child(*it, log_prob(beam[i], *it));
      } else
        for (auto const [token, log_prob] : lists[i])
          if (local <= 0 || static_cast<double>(log_prob) > best + std::log(local)) child(token, log_prob);
    }
    return all;
  }

  std::vector<One> survivors(std::vector<One> const& found) {
    auto const width = static_cast<std::size_t>(options.width);
    std::vector<One> next;
    std::size_t first = 0;
    if (options.finished == FinishedHypotheses::leave_first)
      for (; first < found.size() && found[first].ended; ++first) out.push_back(found[first]);
    auto room = options.finished == FinishedHypotheses::leave_first ? width - std::min(out.size(), width) : width;
    auto const aside = options.finished == FinishedHypotheses::set_aside;
    top_ended = top_ended || (aside && !found.empty() && found[0].ended);
    auto const ends_wanted = options.surplus || options.early_stopping.rule != EarlyStopping::Rule::count
                                 ? found.size() + out.size()
                                 : static_cast<std::size_t>(options.early_stopping.needed(options.width));
    for (auto i = first; i < found.size(); ++i) {
      auto one = found[i];
      auto const fits = i < width;
      if (aside && last() && !fits && !options.early_stopping.ended_first) break;
      if (options.finished == FinishedHypotheses::shrink && one.ended) {
        out.push_back(one);
      } else if (aside && one.ended) {
        if (options.guard_prefix && prefix > 0 && generated == prefix && i > 0) room -= fits ? 1 : 0;
        else if (fits && out.size() < ends_wanted) out.push_back(one);
      } else if (next.size() < room) {
        auto const new_end = one.ended && one.tokens.size() + static_cast<std::size_t>(prefix) ==
                                              static_cast<std::size_t>(generated) + 1;
        if (options.finished == FinishedHypotheses::stay && new_end) one.value = score(one);
        next.push_back(one);
      }
    }
    return next;
  }

  void prune(std::vector<One>& next) const {
    auto const& pruning = options.pruning;
    if (pruning.by_total() && !next.empty()) {
      auto best = next[0].value;
      for (auto const& one : out)
        if (prefix + std::ssize(one.tokens) > 1) best = std::max(best, one.log_prob);
      auto const bar = best - pruning.margin();
      std::erase_if(next, [&](One const& one) { return one.value <= bar; });
    }
    auto best = -std::numeric_limits<double>::infinity();
    for (auto const& one : out) best = std::max(best, score(one));
    for (auto const& one : next) best = one.ended ? std::max(best, score(one)) : best;
    std::erase_if(
        next, [&](One const& one) { return (one.ended ? score(one) : one.log_prob) < best - pruning.below_finished; });
  }

  /// The score of the n-th best finished hypothesis.
  double nth(std::int32_t n) const {
    std::vector<double> scores;
    for (auto const& one : out) scores.push_back(score(one));
    std::ranges::sort(scores, std::greater());
    return scores[static_cast<std::size_t>(n - 1)];
  }
  bool stops() const {
    auto const ended = std::ssize(out), inside = std::ranges::count(beam, true, &One::ended);
    auto const& penalty = options.penalty;
    switch (options.early_stopping.rule) {
      case EarlyStopping::Rule::count:
        if (options.finished == FinishedHypotheses::stay)
          return inside == std::ssize(beam) || inside >= options.early_stopping.needed(options.width);
        return ended >= options.early_stopping.needed(options.width);
      case EarlyStopping::Rule::top_ended: return top_ended && ended >= options.n_best;
      case EarlyStopping::Rule::exact:
        return ended >= options.n_best && std::ranges::all_of(beam, [&](One const& one) {
                 auto const most =
                     one.ended ? score(one) : penalty.bound(one.log_prob, generated + 1, options.length.max);
                 return most <= nth(options.n_best);
               });
      default: break;
    }
    if (ended < options.width) return false;
    auto const at = options.early_stopping.rule == EarlyStopping::Rule::never_early && penalty.alpha > 0
                        ? options.length.max
                        : generated;
    return penalty.score(options.early_stopping.ended_first ? best_found : beam[0].log_prob, at) <= nth(options.width);
  }

  void close(bool full) {
    auto const endless = sentence.vocabulary.eos.empty();
    std::size_t cut = 0;
    auto const closed = options.early_stopping.ended_first && !beam.empty() && stops();
    for (auto one : beam) {
      auto const joins = one.ended ? full || options.finished == FinishedHypotheses::stay
                                   : full && !closed &&
                                         (endless || options.at_maximum == AtMaximum::truncate ||
                                          (options.at_maximum == AtMaximum::best_unfinished && cut == 0));
      if (!joins) continue;
      if (!one.ended) one.finished = endless, ++cut;
      out.push_back(one);
    }
    beam.clear(), over = true;
  }
};

}  // namespace sluice::test
