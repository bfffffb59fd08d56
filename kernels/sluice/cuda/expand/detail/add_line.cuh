// SPDX-License-Identifier: Apache-2.0
/// \file
/// Converts the device's answer for a line to the search's form.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/output/line_lists.hpp>

#include <cstddef>
#include <span>

namespace sluice::inline v0::cuda::detail {

/// Adds a line to the lists. Advances `probes` to the next line's.
inline void add_line(LineLists& lists, Query const& query, LineResult const& result, std::span<Candidate const> best,
                     float const*& probes, float entropy = 0) {
  auto& entry = lists.open();
  entry.valid = result.valid != 0;
  entry.log_sum_exp = result.log_sum_exp, entry.entropy = entropy;
  for (auto const candidate : best) lists.list(candidate.token, candidate.log_prob);
  for (std::size_t i = 0; entry.valid && i < query.probes.size(); ++i) lists.probe(probes[i]);
  probes += query.probes.size();
}

}  // namespace sluice::inline v0::cuda::detail
