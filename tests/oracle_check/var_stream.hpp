// SPDX-License-Identifier: Apache-2.0
/// \file
/// var_stream.json: n-best lists, expansions and steps of VAR-BATCH, by its authors' code.
#pragma once

#include <sluice/decode/decoder.hpp>
#include <sluice/schedule/batched.hpp>
#include <sluice/search/presets.hpp>

#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oracle_check {

/// Empty outputs are left out: the reference scores them -1e8 and does not list them.
inline void var_stream(Json const& file, Report& report) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto search = sluice::presets::varstream(one.at("beam").get<std::int32_t>(), one.at("delta").get<double>(),
                                             one.at("M").get<std::int32_t>());
    search.n_best = search.width;
    search.length.max = one.at("max_len").get<std::int32_t>();

    auto const seeds = one.at("seeds").get<std::vector<std::uint64_t>>();
    auto checked = model(one.at("model"));
    sluice::Decoder decoder(checked, search, sluice::Batched{.size = seeds.size()});
    for (auto const seed : seeds) decoder.submit({.source = seed});
    std::vector<sluice::Result> results(seeds.size());
    sluice::Result result;
    while (decoder.step()) {
    }
    while (decoder.poll(result)) results.at(result.id) = std::move(result);

    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::erase_if(results[i].hypotheses, [](auto const& h) { return h.tokens.size() == 1; });
      report.sentence(index, i, compare(results[i], expected(one.at("nbest").at(i))));
    }
    std::vector<std::string> problems;
    auto const same = [&](char const* what, std::uint64_t found) {
      auto const wanted = one.at(what).get<std::uint64_t>();
      if (found != wanted)
        problems.push_back(std::to_string(wanted) + " " + what + " expected, " + std::to_string(found) + " counted");
    };
    same("expansions", decoder.statistics().expansions);
    same("one_batch_steps", decoder.statistics().steps);
    if (!checked.report().empty()) problems.push_back(checked.report());
    report.whole(index++, problems);
  }
}

}  // namespace oracle_check
