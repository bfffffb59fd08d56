// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tells a search that an output is over, without calling the model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// The lines of one plan at which a rule ends the output. The search is told that the end is certain: the line lists
/// only eos, at log-probability 0. Rows without other lines are not run, unless other rows fork them.
class KnownEnds {
 public:
  SLUICE_LAZY void reset(Vocabulary const& vocabulary) {
    auto const& never = vocabulary.never;
    auto const end = std::find_if(vocabulary.eos.begin(), vocabulary.eos.end(), [&](Token token) {
      return std::find(never.begin(), never.end(), token) == never.end();
    });
    forbidden_ = end == vocabulary.eos.end();
    end_ = !forbidden_ ? *end : vocabulary.eos.empty() ? -1 : vocabulary.eos.front();
    clear();
  }
  SLUICE_LAZY void clear() { lines_.clear(), probes_.clear(), count_ = 0, any_ = false; }

  /// Whether the search that makes this query allows no end here, since its output is too short.
  SLUICE_LAZY bool forbidden(Query const& query) const {
    return !forbidden_ && std::any_of(query.edits.begin(), query.edits.end(), [&](Edit const& e) {
      return e.token == end_ && e.add == -std::numeric_limits<float>::infinity();
    });
  }

  /// Adds the plan's next line.
  SLUICE_LAZY void add(Query const& query, bool over) {
    ++count_;
    if (!over && !any_) return;  // the usual case
    any_ = true;
    lines_.resize(count_);
    if (!over) return;
    auto& line = lines_.back();
    line.over = true;
    line.best = lists(query) ? 1 : 0, line.probes = query.probes.size();
    for (auto const token : query.probes)
      probes_.push_back(token == end_ ? 0 : -std::numeric_limits<float>::infinity());
  }

  /// Empties the query of a line that is over when its row is run anyway: its candidates would take the places of
  /// others in Group::keep. The search's bans stay, for a rule around this one (forbidden()), and so does its noise,
  /// for the group.
  SLUICE_LAZY static void ask_nothing(Query& query) {
    query = {.base = query.base,
             .rank = query.rank,
             .best = 0,
             .edits = query.edits,
             .stage = query.stage,
             .normalise = false,
             .label = query.label,
             .shift = query.shift,
             .noise = query.noise};
  }

  /// Call once all lines have been added: removes the rows that need not be run.
  SLUICE_LAZY void take_back(Plan& plan) {
    if (!any_ || lines_.size() != plan.queries().size()) return;  // this plan will be refused
    auto const rows = plan.rows();
    out_.assign(rows.size(), 0);
    auto const lines_from = [&](std::size_t first, Row const& row) {
      return std::span(lines_).subspan(first, static_cast<std::size_t>(row.lines));
    };
    std::size_t first = 0;
    for (std::size_t i = 0; i < rows.size(); first += static_cast<std::size_t>(rows[i++].lines))
      out_[i] = std::ranges::all_of(lines_from(first, rows[i]), &Line::over) ? 1 : 0;
    first = 0;
    for (std::size_t i = 0; i < rows.size(); first += static_cast<std::size_t>(rows[i++].lines)) {
      if (out_[i] != 0 && rows[i].from == rows[i].to)  // a forked slot must also be continued in place: models may rely
                                                       // on it
        for (std::size_t j = 0; j < rows.size(); ++j)
          if (out_[j] == 0 && rows[j].from == rows[i].from) out_[i] = 0;
      if (out_[i] != 0)
        for (auto& line : lines_from(first, rows[i])) line.run = false;
    }
    plan.take_back(out_);
  }

  /// The model's answer with these lines inserted. Valid until the next call, and as long as `answer`.
  SLUICE_LAZY Expansion complete(Expansion const& answer) {
    if (!any_) return answer;
    entries_.clear(), best_.clear(), all_probes_.clear();
    std::size_t asked = 0, probe = 0;
    for (auto const& line : lines_) {
      auto const told = line.run ? asked++ : 0;
      auto& entry = entries_.emplace_back();
      entry.best = best_.size(), entry.probes = all_probes_.size();
      if (line.over) {
        if (line.best > 0) best_.push_back({end_, 0});
        auto const known = std::span(probes_).subspan(probe, line.probes);
        all_probes_.insert(all_probes_.end(), known.begin(), known.end());
        probe += line.probes;
      } else {
        auto const own = answer[told];
        best_.append(own.best);
        all_probes_.insert(all_probes_.end(), own.probes.begin(), own.probes.end());
        entry.log_sum_exp = own.log_sum_exp, entry.entropy = own.entropy, entry.valid = own.valid;
        entry.impossible = own.impossible;
      }
      entry.best_count = best_.size() - entry.best, entry.probe_count = all_probes_.size() - entry.probes;
    }
    return {entries_, best_, all_probes_};
  }

  /// Whether a query requests a list.
  SLUICE_LAZY static bool lists(Query const& query) { return query.lists(); }

 private:
  struct Line {
    bool over = false, run = true;  // run: the model computes it, whether or not the answer is used
    std::size_t best = 0, probes = 0;
  };
  Buffer<Line> lines_;             // of the search's plan
  std::vector<float> probes_;      // of the lines that are over
  std::vector<std::uint8_t> out_;  // [row]
  Buffer<Expansion::Entry> entries_;
  Buffer<Candidate> best_;
  std::vector<float> all_probes_;
  Token end_ = -1;
  std::size_t count_ = 0;                 // number of lines; lines_ is empty unless one of them is over
  bool any_ = false, forbidden_ = false;  // forbidden_: at any length
};

}  // namespace sluice::inline v0::detail
