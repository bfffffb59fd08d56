// SPDX-License-Identifier: Apache-2.0
/// \file
/// ctranslate2_beam.json: n-best lists of CTranslate2's search (greedy where the beam is 1), with its penalties and bans.
#pragma once

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/presets.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <string>
#include <utility>
#include <vector>

namespace oracle_check {

/// Its steps and rows are those of whole batches, fed prefixes token by token: not compared.
inline void ctranslate2_beam(Json const& file, Report& report) {
  using Masks = sluice::LogitsProcessorList;
  using Search = sluice::Processed<sluice::BeamSearch>;
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const& options = one.at("options");
    auto const beam = options.at("beam_size").get<std::int32_t>();
    auto search = sluice::presets::ctranslate2(beam, options.at("length_penalty").get<double>());
    search.n_best = options.at("num_hypotheses").get<std::int32_t>();
    search.early_stopping.patience =
        beam == 1 ? 1 : options.at("patience").get<double>();  // its greedy search has none
    search.length.min = options.at("min_length").get<std::int32_t>();
    auto const most = options.at("max_length").get<std::int32_t>();
    search.length.max = most;
    Masks const masks(sluice::ForbidTokens{options.at("disable_ids").get<std::vector<Token>>()},
                      sluice::ForbidFirst{options.at("disable_ids_begin").get<std::vector<Token>>()},
                      sluice::NoRepeatNgram{options.at("no_repeat_ngram_size").get<std::int32_t>()},
                      sluice::RepetitionPenalty{options.at("repetition_penalty").get<float>()});

    auto const seeds = one.at("seeds").get<std::vector<std::uint64_t>>();
    std::vector<sluice::Request<std::uint64_t, Search>> requests;
    for (std::size_t i = 0; i < seeds.size(); ++i)
      requests.push_back({.source = seeds[i], .prefix = one.at("prefix").at(i).get<std::vector<Token>>()});
    auto checked = model(one.at("model"));
    auto const results =
        sluice::decode(checked, requests, Search{search, masks}, sluice::Batched{.size = seeds.size()});
    for (std::size_t i = 0; i < seeds.size(); ++i)
      report.sentence(index, i, compare(results.at(i), expected(one.at("nbest").at(i))));
    if (!checked.report().empty()) report.whole(index, {checked.report()});
    ++index;
  }
}

}  // namespace oracle_check
