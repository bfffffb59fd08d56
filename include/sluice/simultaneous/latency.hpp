// SPDX-License-Identifier: Apache-2.0
/// \file
/// How far a simultaneous translation lags behind its source.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>

namespace sluice::inline v0 {

// All measures take `delays` (for each output unit, in order: how many source units had been read when it was written)
// and `source` (the number of source units). Units are usually words. They throw std::invalid_argument for an empty
// output or source (the lag is undefined), and for delays that descend or exceed the source.

namespace detail {

inline void check_delays(std::span<std::size_t const> delays, std::size_t source) {
  require(source >= 1, "source", source, "must be at least 1");
  require(!delays.empty(), "delays", delays.size(), "numbers: no unit was written");
  for (std::size_t i = 0; i < delays.size(); ++i)
    require(delays[i] <= source && (i == 0 || delays[i - 1] <= delays[i]), "delays", delays[i],
            "must not descend, nor exceed the source");
}

}  // namespace detail

/// Average lagging, AL: the average number of source units by which the output lags behind an ideal writer that writes
/// evenly and without delay, over the units written until the whole source had been read. Ma et al. (2019, "STACL",
/// section 4). Wait-k lags by k if output and source are equally long. Negative for an output written ahead of the
/// ideal.
/// \param target  units that the ideal writes by the end; 0: as many as were written (Ma et al.). SimulEval takes the
///                reference's length (Ma et al. 2020)
inline double average_lagging(std::span<std::size_t const> delays, std::size_t source, std::size_t target = 0) {
  detail::check_delays(delays, source);
  auto const pace = static_cast<double>(source) / static_cast<double>(target == 0 ? delays.size() : target);
  double sum = 0;
  std::size_t counted = 0;
  while (counted < delays.size()) {
    sum += static_cast<double>(delays[counted]) - pace * static_cast<double>(counted);
    if (delays[counted++] == source) break;  // the whole source has been read
  }
  return sum / static_cast<double>(counted);
}

/// Length-adaptive average lagging, LAAL: average lagging behind an ideal that writes as much as the output or the
/// reference, whichever is longer, so that writing too much is not rewarded. Papi et al. (2022, "Over-generation cannot
/// be rewarded").
/// \param reference  units of the reference
inline double length_adaptive_average_lagging(std::span<std::size_t const> delays, std::size_t source,
                                              std::size_t reference) {
  return average_lagging(delays, source, (std::max)(delays.size(), reference));
}

/// Average proportion, AP: the average share of the source that had been read when a unit was written; in [0, 1], and 1
/// if everything is written at the end. Cho and Esipova (2016, "Can neural machine translation do simultaneous
/// translation?").
inline double average_proportion(std::span<std::size_t const> delays, std::size_t source) {
  detail::check_delays(delays, source);
  auto const sum = std::accumulate(delays.begin(), delays.end(), 0.0);
  return sum / (static_cast<double>(source) * static_cast<double>(delays.size()));
}

/// Differentiable average lagging, DAL: average lagging over the whole output, in which each unit takes at least the
/// time of an even pace, so that a tail written all at once counts as late. Cherry and Foster (2019, "Thinking slow
/// about latency evaluation for simultaneous machine translation").
inline double differentiable_average_lagging(std::span<std::size_t const> delays, std::size_t source) {
  detail::check_delays(delays, source);
  auto const pace = static_cast<double>(source) / static_cast<double>(delays.size());
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < delays.size(); ++i) {
    auto const delay = static_cast<double>(delays[i]);
    before = i == 0 ? delay : (std::max)(delay, before + pace);
    sum += before - pace * static_cast<double>(i);
  }
  return sum / static_cast<double>(delays.size());
}

}  // namespace sluice::inline v0
