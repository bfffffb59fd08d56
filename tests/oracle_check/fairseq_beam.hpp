// SPDX-License-Identifier: Apache-2.0
/// \file
/// fairseq_beam.json: n-best lists of fairseq's beam search, with the number of decoder calls and of their rows.
#pragma once

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>

#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <string>
#include <vector>

namespace oracle_check {

/// Its max_len does not count eos, ours does. Calls are the same. Rows: fairseq's first step runs `beam` equal rows of
/// each sentence, ours one; fairseq goes on with `beam` rows where fewer are possible, ours runs those that are. So
/// rows are (beam - 1) * sentences fewer where one line can fill the beam, and at most that many elsewhere.
inline void fairseq_beam(Json const& file, Report& report) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const beam = one.at("beam").get<std::int32_t>();
    sluice::BeamSearch search{.width = beam, .n_best = beam};
    search.length.min = one.at("min_len").get<std::int32_t>();
    search.length.max = one.at("max_len").get<std::int32_t>() + 1;
    search.penalty.alpha = one.at("lenpen").get<double>();

    auto const seeds = one.at("seeds").get<std::vector<std::uint64_t>>();
    auto checked = model(one.at("model"));
    auto const results = sluice::decode(checked, seeds, search, sluice::Batched{.size = seeds.size()});
    for (std::size_t i = 0; i < seeds.size(); ++i)
      report.sentence(index, i, compare(results.at(i), expected(one.at("nbest").at(i))));

    std::vector<std::string> problems;
    auto const steps = one.at("steps").get<std::size_t>();
    auto const rows = one.at("rows").get<std::size_t>() - seeds.size() * static_cast<std::size_t>(beam - 1);
    auto const& counters = checked.counters();
    auto const fills = one.at("model").at("V").get<std::int32_t>() - 3 >= beam;
    if (counters.steps != steps)
      problems.push_back(std::to_string(steps) + " steps expected, " + std::to_string(counters.steps) + " made");
    if (fills ? counters.rows != rows : counters.rows > rows)
      problems.push_back(std::to_string(rows) + (fills ? " rows" : " rows at most") + " expected, " +
                         std::to_string(counters.rows) + " run");
    if (!checked.report().empty()) problems.push_back(checked.report());
    report.whole(index++, problems);
  }
}

}  // namespace oracle_check
