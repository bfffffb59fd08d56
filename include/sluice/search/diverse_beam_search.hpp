// SPDX-License-Identifier: Apache-2.0
/// \file
/// Diverse beam search: groups of beams that are penalised for repeating each other's tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Several beam searches of one sentence, one after the other at every step. A token costs each group `penalty` for
/// every live hypothesis of an earlier group that has just taken it, also in the step in which that group ends
/// (Vijayakumar et al. 2018, Hamming diversity; cumulative, as in fairseq and Hugging Face: log_prob and score of a
/// hypothesis include the penalties of its tokens).
/// The first group is the plain beam search of its width. Each group ends and keeps its finished hypotheses
/// independently.
///
/// Costs as much as one BeamSearch of the total width, with longer lists: group g asks for g * width more tokens.
struct DiverseBeamSearch {
  BeamSearch search{};      ///< for each group; without effect: stop_at_once
  std::int32_t groups = 2;  ///< >= 1
  double penalty = 0.5;     ///< >= 0; 0: every group finds the same hypotheses
  std::int32_t n_best = 1;  ///< across all groups; in [1, groups * width]
  Token padding = -1;  ///< what a group that is over takes at every further step, `width` times, as in Hugging Face,
                       ///< where its lines are padded; -1: nothing

  struct State {
    /// The search of one group.
    struct Beam {
      BeamSearch::State state;
      bool over = false, just_over = false;  // just: in this step
      std::size_t lines = 0;                 // in this step
    };
    detail::Buffer<Beam> beams;  // [group]
    StepPlan scratch;
    detail::Buffer<Expansion::Entry> entries;
    detail::Buffer<Candidate> candidates;
    std::vector<float> probes;
    std::vector<Token> own;            // of settled()
    bool first = true, forks = false;  // first: one line serves all groups; forks: the step after it, in which each
                                       // group gets its slots
    bool unused = false;               // the first group needs slot 0 no more, and another may
  };

  SLUICE_LAZY void check() const {
    search.check();
    detail::require_slots("groups", groups, search.width);
    require(penalty >= 0 && std::isfinite(penalty), "penalty", penalty, "must be a number >= 0");
    require(padding >= -1, "padding", padding, "must be a token, or -1");
    require(n_best >= 1 && n_best <= slot_count(), "n_best", n_best, "must be between 1 and groups * width");
    require(search.n_best == search.width, "search.n_best", search.n_best,
            "must be the width: n_best of all groups decides");
  }
  std::int32_t slot_count() const { return groups * search.width; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const {
    s.beams.resize(static_cast<std::size_t>(groups));
    for (auto& beam : s.beams) {
      search.begin(beam.state, sentence);
      beam.over = beam.just_over = false;
    }
    s.first = true, s.unused = false;
  }

  SLUICE_LAZY void plan(State& s, Plan& plan) const {
    if (s.first) {  // the first group's query serves all groups
      search.plan(s.beams[0].state, plan);
      if (auto const queries = plan.queries(); !queries.empty() && queries.back().best > 0)
        queries.back().best += slot_count() - search.width;
      return plan.keep(0);
    }
    auto shared = false;  // rows of other groups continue slot 0
    for (std::size_t g = 0; g < s.beams.size(); ++g) {
      auto& beam = s.beams[g];
      if (beam.over) continue;
      auto const base = static_cast<Slot>(g) * search.width;
      s.scratch.clear();
      Plan own(s.scratch, base);
      search.plan(beam.state, own);
      auto part = plan.part(0);
      if (!s.forks)
        for (auto const slot : s.scratch.released) part.release(slot);
      else if (g == 0) s.unused = !s.scratch.released.empty();  // of other groups no slot has been filled yet
      else shared = shared || !s.scratch.rows.empty();
      // Slot 0 holds what all groups share; rows of other groups that continue from it fork it.
      for (auto const& row : s.scratch.rows)
        part.row(s.forks ? 0 : row.from, row.to, row.length, row.tokens, row.lines);
      for (auto query : s.scratch.queries) {
        if (query.best > 0) query.best += base;
        part.ask(query);
      }
      if (g == 0) part.keep(s.scratch.groups.back().keep);
      beam.lines = s.scratch.queries.size();
    }
    if (s.unused && !shared) plan.part(0).release(0), s.unused = false;
  }

  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const {
    std::size_t at = 0;
    auto over = true;
    for (std::size_t g = 0; g < s.beams.size(); ++g) {
      auto& beam = s.beams[g];
      beam.just_over = false;
      if (beam.over) continue;
      auto const lines = s.first ? answer.size() : beam.lines;
      auto const own = penalised(s, g, answer.window(at, lines));
      if (!s.first) at += lines;
      beam.over = beam.just_over = search.advance(beam.state, own);
      over = over && beam.over;
    }
    s.forks = s.first, s.first = false;
    return over;
  }

  SLUICE_LAZY Progress progress(State const& s) const {
    Progress all{.length = 0, .width = 0};
    for (auto const& beam : s.beams)
      if (!beam.over) {
        auto const one = search.progress(beam.state);
        all.length = one.length, all.width = s.first ? 1 : all.width + one.width;
      }
    return all;
  }

  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const {
    tokens.clear();
    auto first = true;
    for (auto& beam : s.beams) {
      if (beam.over && beam.state.out.empty()) continue;  // found nothing
      search.settled(beam.state, s.own);
      if (first) tokens = s.own;
      else tokens.erase(std::mismatch(tokens.begin(), tokens.end(), s.own.begin(), s.own.end()).first, tokens.end());
      first = false;
    }
  }

  SLUICE_LAZY void finish(State const& s, Result& result) const {
    Result all{.id = result.id}, one;
    for (auto const& beam : s.beams) {
      detail::beam_loop::tell(search, beam.state, one);
      std::move(one.hypotheses.begin(), one.hypotheses.end(), std::back_inserter(all.hypotheses));
      if (!one.message.empty() && all.ok()) all.fail(one.failure, one.message, one.cause);
    }
    auto& h = all.hypotheses;
    std::vector<std::size_t> order(h.size());
    for (std::size_t i = 0; i < h.size(); ++i) order[i] = i;
    auto const over = std::all_of(s.beams.begin(), s.beams.end(), [](State::Beam const& beam) { return beam.over; });
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (!over && h[a].finished != h[b].finished) return h[a].finished;  // live hypotheses come after finished ones
      return h[a].score != h[b].score ? h[a].score > h[b].score : a < b;
    });
    result = {.id = result.id};
    if (h.empty()) return result.fail(all.failure, all.message, all.cause);
    for (std::size_t i = 0; i < (std::min)(order.size(), static_cast<std::size_t>(n_best)); ++i)
      result.hypotheses.push_back(std::move(h[order[i]]));
    s.beams[0].state.prefix.complete(result);
  }

 private:
  /// The answer with the penalties of group g. Each list is sorted again, and is no longer than the group alone would
  /// request.
  SLUICE_LAZY Expansion penalised(State& s, std::size_t g, Expansion const& answer) const {
    auto const ends = static_cast<std::int32_t>(s.beams[g].state.vocabulary->eos.size());
    auto const longest = static_cast<std::size_t>((std::min)(search.width + ends, search.pruning.max_per_parent));
    s.entries.clear(), s.candidates.clear(), s.probes.clear();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      auto const line = answer[i];
      auto& entry = s.entries.emplace_back();
      entry.best = s.candidates.size();
      entry.probes = s.probes.size(), entry.probe_count = line.probes.size();  // forced tokens cost no more
      s.probes.insert(s.probes.end(), line.probes.begin(), line.probes.end());
      for (auto const candidate : line.best)
        s.candidates.push_back({candidate.token, candidate.log_prob - cost(s, g, candidate.token)});
      if (g > 0 && penalty > 0)
        std::sort(s.candidates.begin() + static_cast<std::ptrdiff_t>(entry.best), s.candidates.end(),
                  [](Candidate a, Candidate b) {
                    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
                  });
      entry.best_count = (std::min)(line.best.size(), longest);
    }
    return {s.entries, s.candidates, s.probes};
  }

  SLUICE_LAZY float cost(State const& s, std::size_t g, Token token) const {
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < g; ++i) {
      auto const& beam = s.beams[i];
      if (beam.over && !beam.just_over) count += token == padding ? search.width : 0;
      else  // the beam of a group that has just ended is empty already
        for (auto const& entry : beam.over ? beam.state.next : beam.state.beam)
          count += !entry.ended && entry.token == token;
    }
    return static_cast<float>(penalty * static_cast<double>(count));
  }
};

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(DiverseBeamSearch)
