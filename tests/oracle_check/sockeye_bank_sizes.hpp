// SPDX-License-Identifier: Apache-2.0
/// \file
/// sockeye_bank_sizes.json: how Sockeye divides a beam among banks.
#pragma once

#include <sluice/search/detail/bank_sizes.hpp>

#include <cstddef>
#include <cstdint>
#include <oracle_check/common.hpp>
#include <string>
#include <vector>

namespace oracle_check {

inline void sockeye_bank_sizes(Json const& file, Report& report) {
  std::size_t index = 0;
  for (auto const& one : file.at("cases")) {
    auto const counts = one.at("counts").get<std::vector<std::int32_t>>();
    std::vector<std::int32_t> sizes(counts.size());
    sluice::detail::bank_sizes_sockeye(counts, one.at("k").get<std::int32_t>(), sizes);
    std::vector<std::string> problems;
    if (sizes != one.at("sizes").get<std::vector<std::int32_t>>())
      problems.push_back("expected " + one.at("sizes").dump() + ", found " + text(sizes));
    report.sentence(index++, 0, problems);
  }
}

}  // namespace oracle_check
