// SPDX-License-Identifier: Apache-2.0
/// \file
/// sockeye_dba.json, sockeye_edge.json, sockeye_gbs_sim.json: the final beams of Sockeye's constrained decoding.
#pragma once

#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <support/reference_trackers.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <oracle_check/constrained.hpp>
#include <oracle_check/following.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oracle_check {

/// A row of Sockeye's last beam. What has not finished is scored by its log-probability.
struct SockeyeRow {
  double score;
  std::vector<Token> tokens;
  bool finished, complete;
};

inline std::string text(SockeyeRow const& row) {
  return text(row.tokens) + " " + text(row.score) + (row.finished ? " finished" : "") +
         (row.complete ? " complete" : "");
}

/// Best first.
inline std::vector<SockeyeRow> sockeye_rows(sluice::Result const& result) {
  std::vector<SockeyeRow> rows;
  for (auto const& h : result.hypotheses)
    rows.push_back({h.finished ? h.score : h.log_prob, h.tokens, h.finished, h.constraints_met == h.constraints_total});
  std::ranges::stable_sort(rows, [](SockeyeRow const& a, SockeyeRow const& b) { return a.score > b.score; });
  return rows;
}
inline std::vector<SockeyeRow> sockeye_rows(Json const& beam) {
  std::vector<SockeyeRow> rows;
  for (auto const& row : beam)
    if (!row.at("score").is_null())  // pruned
      rows.push_back({row.at("score").get<double>(), row.at("tokens").get<std::vector<Token>>(),
                      row.at("finished").get<bool>(), row.at("unmet").get<int>() == 0});
  return rows;
}

/// What Sockeye returns: the best of those that lack nothing; if there is none, the best.
inline std::vector<Token> sockeye_choice(std::vector<SockeyeRow> const& rows) {
  if (rows.empty()) return {};
  auto const best = std::ranges::find(rows, true, &SockeyeRow::complete);
  return best != rows.end() ? best->tokens : rows.front().tokens;
}

inline std::vector<std::string> compare_beams(sluice::Result const& result, Json const& expected) {
  std::vector<std::string> problems;
  if (!result.ok()) problems.push_back(std::string("failure ") + name(result.failure) + ": " + result.message);
  auto const found = sockeye_rows(result);
  auto const wanted = sockeye_rows(expected.at("beam"));
  auto const same = [](SockeyeRow const& a, SockeyeRow const& b) {
    return a.tokens == b.tokens && a.finished == b.finished && a.complete == b.complete &&
           std::abs(a.score - b.score) <= tolerance;
  };
  for (std::size_t i = 0; i < std::max(found.size(), wanted.size()); ++i)
    if (i >= found.size() || i >= wanted.size() || !same(found[i], wanted[i]))
      problems.push_back("row " + std::to_string(i) + ": expected " + (i < wanted.size() ? text(wanted[i]) : "none") +
                         ", found " + (i < found.size() ? text(found[i]) : "none"));
  if (auto const best = expected.at("best").get<std::vector<Token>>(); sockeye_choice(found) != best)
    problems.push_back("best: expected " + text(best) + ", found " + text(sockeye_choice(found)));
  return problems;
}

/// Why the library refuses a sentence that Sockeye decodes: even the shortest text with all phrases, none inside
/// another, is longer than the output may be. Sockeye then returns something that lacks some. "" if that is not so.
inline std::string refused(sluice::Result const& result, Json const& one, std::size_t i) {
  auto const missing = in_any_order(phrases(one, i), {}).remaining;
  if (result.failure != sluice::Failure::bad_request || missing <= one.at("max_len").get<std::int32_t>()) return {};
  auto const rows = sockeye_rows(one.at("results").at(i).at("beam"));
  if (std::ranges::any_of(rows, &SockeyeRow::complete)) return {};
  return "refused: phrases of " + std::to_string(missing) + " tokens, and no more than " + one.at("max_len").dump() +
         " may come";
}

/// The searches of a file under automaton `A`: the original's, or the library's in its place. Calls are compared under
/// the original's; Sockeye also runs the rows of finished hypotheses.
template <class A>
void sockeye_searches(Json const& file, Report& report, sluice::Banks banks) {
  constexpr auto calls = std::is_same_v<A, sluice::test::SockeyeTracker>;
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const beam = one.at("beam").get<std::int32_t>();
    auto const prune = one.at("prune").get<double>();
    auto const searching = [&](auto automaton) {
      auto search = sluice::presets::sockeye_constrained(beam, std::move(automaton));
      search.beam.n_best = beam;
      search.beam.length.max = one.at("max_len").get<std::int32_t>();
      search.banks = banks;
      search.prune_finished = prune > 0 ? prune : sluice::Pruning::off;
      search.list_incomplete = true;
      return search;
    };
    auto checked = model(one.at("model"));
    auto const results = decode_constrained<A>(one, checked, searching);
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto const& wanted = one.at("results").at(i);
      report.sentence(index, i, compare_beams(results[i], wanted), [&]() -> std::string {
        if constexpr (calls) return {};
        else if (!results[i].ok()) return refused(results[i], one, i);
        else
          return automata_part<A, sluice::test::SockeyeTracker>(
              one, i, in_any_order, searching,
              [&](sluice::Result const& result) { return compare_beams(result, wanted).empty(); });
      });
    }

    auto problems = incomplete(one, results, has_all);
    auto const steps = one.at("steps").get<std::size_t>();
    auto const& counters = checked.counters();
    auto const rows = one.value("rows", counters.rows);
    auto const ran = calls && std::ranges::all_of(results, &sluice::Result::ok);
    if (ran && counters.steps != steps)
      problems.push_back(std::to_string(steps) + " steps expected, " + std::to_string(counters.steps) + " made");
    if (ran && counters.rows > rows)
      problems.push_back(std::to_string(rows) + " rows at most expected, " + std::to_string(counters.rows) + " run");
    if (!checked.report().empty()) problems.push_back(checked.report());
    report.whole(index++, problems);
  }
}

inline void sockeye_dba(Json const& file, Report& report) {
  sockeye_searches<sluice::test::SockeyeTracker>(file, report, sluice::Banks::sockeye);
}
inline void sockeye_dba_own(Json const& file, Report& report) {
  sockeye_searches<sluice::Phrases>(file, report, sluice::Banks::sockeye);
}
/// Grid beam search: the beam has `base_beam` places for each bank.
inline void sockeye_gbs_sim(Json const& file, Report& report) {
  sockeye_searches<sluice::test::SockeyeTracker>(file, report, sluice::Banks::equal);
}
inline void sockeye_gbs_sim_own(Json const& file, Report& report) {
  sockeye_searches<sluice::Phrases>(file, report, sluice::Banks::equal);
}

}  // namespace oracle_check
