// SPDX-License-Identifier: Apache-2.0
/// \file
/// The candidates that an automaton wants, whether or not the model lists them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/detail/bank_choice.hpp>
#include <sluice/search/detail/beam_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::inline v0::detail {

/// Adds the wanted tokens of the hypothesis of rank `r` to its children, which start at `first`, and ensures that they
/// are candidates.
/// \param line    its answer: probes[i] is the log-probability of wanted[i]
SLUICE_LAZY void add_wanted(BeamSearch const& options, BeamState& s, std::size_t r, Line const& line,
                            std::span<Token const> wanted, std::size_t first, BankChoice& choice) {
  auto penalty = options.sibling_penalty * static_cast<double>(line.best.size());
  for (std::size_t i = 0; i < line.probes.size(); ++i) {
    auto const token = wanted[i];
    auto const listed = std::find_if(s.picks.begin() + static_cast<std::ptrdiff_t>(first), s.picks.end(),
                                     [&](auto const& pick) { return pick.token == token; });
    if (listed != s.picks.end()) {
      choice.ensure(*listed);
      continue;
    }
    auto const gain = static_cast<double>(line.probes[i]);
    if (!(gain > -std::numeric_limits<double>::infinity())) continue;
    s.picks.push_back({s.beam[r].value + gain - penalty, s.beam[r].log_prob + gain, static_cast<std::int32_t>(r),
                       static_cast<std::int32_t>(s.picks.size()), token, line.probes[i], s.is_eos(token), false});
    choice.grow(s.picks.size(), true);
    penalty += options.sibling_penalty;
  }
}

}  // namespace sluice::inline v0::detail
