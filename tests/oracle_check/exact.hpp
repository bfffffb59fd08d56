// SPDX-License-Identifier: Apache-2.0
/// \file
/// exact.json: the best of all sequences, found by enumeration. A beam as wide as there are sequences must find it.
#pragma once

#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/beam_search.hpp>

#include <cstdint>
#include <oracle_check/common.hpp>
#include <string>
#include <vector>

namespace oracle_check {

inline void exact(Json const& file, Report& report) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const longest = one.at("max_total_len").get<std::int32_t>();
    auto const ordinary = one.at("model").at("V").get<std::int32_t>() - 3;
    std::int32_t width = 1;  // the number of sequences: 1 + n + n^2 + ...
    for (std::int32_t i = 1, n = ordinary; i < longest; ++i, n *= ordinary) width += n;

    std::vector<std::string> problems;
    for (auto const* const kind : {"sum_free", "norm_free"}) {
      auto checked = model(one.at("model"));
      sluice::BeamSearch search{.width = width};
      search.length.min = 1;
      search.length.max = longest;
      using Kind = sluice::LengthPenalty::Kind;
      search.penalty.kind = kind == std::string("sum_free") ? Kind::none : Kind::average;
      std::vector<std::uint64_t> const sources{one.at("seed").get<std::uint64_t>()};
      auto const results = sluice::decode(checked, sources, search, sluice::Batched{});
      for (auto const& problem : compare(results.at(0), expected(Json::array({one.at("best").at(kind)}))))
        problems.push_back(std::string(kind) + ": " + problem);
      if (!checked.report().empty()) problems.push_back(checked.report());
    }
    report.sentence(index++, 0, problems);
  }
}

}  // namespace oracle_check
