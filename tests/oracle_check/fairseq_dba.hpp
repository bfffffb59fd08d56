// SPDX-License-Identifier: Apache-2.0
/// \file
/// fairseq_dba_unordered.json, fairseq_dba_ordered.json: n-best lists of fairseq's LexicallyConstrainedBeamSearch.
#pragma once

#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <support/reference_trackers.hpp>

#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <oracle_check/constrained.hpp>
#include <oracle_check/following.hpp>
#include <oracle_check/last_step.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oracle_check {

/// The searches of a file under automaton `A`: the original's, or the library's in its place. Calls are compared under
/// the original's; of rows ours are fewer, see fairseq_beam.hpp.
/// \param holds  whether tokens hold phrases as A should say
/// \param truth  how far an output is
template <class A, class Original, class Holds>
void fairseq_dba(Json const& file, Report& report, Holds const& holds, Truth truth) {
  constexpr auto calls = std::is_same_v<A, Original>;
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const beam = one.at("beam").get<std::int32_t>();
    auto const longest = one.at("max_len").get<std::int32_t>() + 1;
    auto const searching = [&](auto automaton) {
      auto search = sluice::presets::fairseq_constrained(beam, std::move(automaton));
      search.beam.n_best = beam;
      search.beam.length.max = longest;
      return search;
    };
    auto checked = model(one.at("model"));
    auto const results = decode_constrained<A>(one, checked, searching);
    for (std::size_t i = 0; i < results.size(); ++i) {
      auto const wanted = expected(one.at("nbest").at(i));
      auto const lost = [&](sluice::Result const& result) {
        return lost_at_last_step(result, wanted, static_cast<std::size_t>(beam), static_cast<std::size_t>(longest),
                                 [&](auto const& tokens) { return holds(tokens, phrases(one, i)); });
      };
      report.sentence(index, i, compare(results[i], wanted), [&] {
        auto why = lost(results[i]);
        if constexpr (!calls)
          if (why.empty())
            why = automata_part<A, Original>(one, i, truth, searching, [&](sluice::Result const& result) {
              return compare(result, wanted).empty() || !lost(result).empty();
            });
        return why;
      });
    }

    auto problems = incomplete(one, results, holds);
    auto const steps = one.at("steps").get<std::size_t>();
    auto const rows = one.at("rows").get<std::size_t>() - results.size() * static_cast<std::size_t>(beam - 1);
    auto const& counters = checked.counters();
    if (calls && counters.steps != steps)
      problems.push_back(std::to_string(steps) + " steps expected, " + std::to_string(counters.steps) + " made");
    if (calls && counters.rows > rows)
      problems.push_back(std::to_string(rows) + " rows at most expected, " + std::to_string(counters.rows) + " run");
    if (!checked.report().empty()) problems.push_back(checked.report());
    report.whole(index++, problems);
  }
}

inline void fairseq_dba_unordered(Json const& file, Report& report) {
  fairseq_dba<sluice::test::FairseqUnordered, sluice::test::FairseqUnordered>(file, report, has_all, in_any_order);
}
inline void fairseq_dba_unordered_own(Json const& file, Report& report) {
  fairseq_dba<sluice::Phrases, sluice::test::FairseqUnordered>(file, report, has_all, in_any_order);
}
inline void fairseq_dba_ordered(Json const& file, Report& report) {
  fairseq_dba<sluice::test::FairseqOrdered, sluice::test::FairseqOrdered>(file, report, has_in_order, in_order);
}
inline void fairseq_dba_ordered_own(Json const& file, Report& report) {
  fairseq_dba<sluice::OrderedPhrases, sluice::test::FairseqOrdered>(file, report, has_in_order, in_order);
}

}  // namespace oracle_check
