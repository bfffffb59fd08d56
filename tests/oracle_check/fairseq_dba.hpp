// SPDX-License-Identifier: Apache-2.0
/// \file
/// fairseq_dba_unordered.json, fairseq_dba_ordered.json: n-best lists of fairseq's LexicallyConstrainedBeamSearch.
#pragma once

#include <sluice/search/constraint/constrained_presets.hpp>
#include <sluice/search/constraint/ordered_phrases.hpp>
#include <sluice/search/constraint/phrases.hpp>

#include <support/reference_trackers.hpp>

#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <oracle_check/constrained.hpp>
#include <string>
#include <vector>

namespace oracle_check {

/// The searches of a file under automaton `A`.
/// \param holds  whether tokens hold phrases as A should say
/// \param calls  whether decoder calls and rows are compared; of rows ours are fewer, see fairseq_beam.hpp
template <class A, class Holds>
void fairseq_dba(Json const& file, Report& report, Holds const& holds, bool calls) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const beam = one.at("beam").get<std::int32_t>();
    auto checked = model(one.at("model"));
    auto const results = decode_constrained(one, checked, [&](std::vector<Phrase> const& phrases) {
      auto search = sluice::presets::fairseq_constrained(beam, A(phrases));
      search.beam.n_best = beam;
      search.beam.length.max = one.at("max_len").get<std::int32_t>() + 1;
      return search;
    });
    for (std::size_t i = 0; i < results.size(); ++i)
      report.sentence(index, i, compare(results[i], expected(one.at("nbest").at(i))));

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
  fairseq_dba<sluice::test::FairseqUnordered>(file, report, has_all, true);
}
inline void fairseq_dba_unordered_own(Json const& file, Report& report) {
  fairseq_dba<sluice::Phrases>(file, report, has_all, false);
}
inline void fairseq_dba_ordered(Json const& file, Report& report) {
  fairseq_dba<sluice::test::FairseqOrdered>(file, report, has_in_order, true);
}
inline void fairseq_dba_ordered_own(Json const& file, Report& report) {
  fairseq_dba<sluice::OrderedPhrases>(file, report, has_in_order, false);
}

}  // namespace oracle_check
