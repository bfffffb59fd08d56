// SPDX-License-Identifier: Apache-2.0
/// \file
/// Options and statistics of a ClusteredProjection; shared with its CUDA counterpart.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters/clusters.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Options of a ClusteredProjection.
struct ClusteredOptions {
  /// Which lines share a union of clusters.
  enum class Union : std::uint8_t {
    sentence,  ///< the lines of one sentence: results do not depend on the other sentences
    batch,     ///< all lines of a step (as in the paper, which gathers weights once per step): results depend on the
               ///< other sentences of the batch
  };

  std::vector<Token> always{};  ///< always active: at least the end of sentence
  Union unite = Union::sentence;
  std::int32_t nearest = 1;  ///< clusters per line; the paper uses one. More clusters make misses rarer, but add their
                             ///< tokens
  double full_above = 0.5;   ///< a larger active share of the vocabulary is projected in full
  std::int32_t audit = 0;    ///< > 0: every audit-th step is also projected in full, for the statistics only
};

namespace detail {

/// The mean active share of the vocabulary per union, if `full` of the unions hold the whole vocabulary and the others
/// hold `active` tokens together.
inline double active_share(std::uint64_t unions, std::uint64_t full, std::uint64_t active,
                           std::int32_t vocabulary_size) {
  auto const tokens = static_cast<double>(active) + static_cast<double>(full) * vocabulary_size;
  return unions == 0 ? 0 : tokens / static_cast<double>(unions) / vocabulary_size;
}

}  // namespace detail

/// Statistics of a ClusteredProjection.
struct ClusteredStatistics {
  std::uint64_t lines = 0;
  std::uint64_t unions = 0;               ///< sentences and steps (or steps, for Union::batch)
  std::uint64_t full = 0;                 ///< of these, the number projected in full
  std::uint64_t active = 0;               ///< active tokens, summed over the unions not projected in full
  std::uint64_t audited = 0, agreed = 0;  ///< lines audited; lines whose best token matches the full projection's
  double bias =
      0;  ///< log-probability of the best minus what the full projection gives the same token, summed over `agreed`

  /// The mean active share of the vocabulary per union.
  double active_share(std::int32_t vocabulary_size) const {
    return detail::active_share(unions, full, active, vocabulary_size);
  }
  ClusteredStatistics& operator+=(ClusteredStatistics const& other) {
    lines += other.lines, unions += other.unions, full += other.full, active += other.active;
    audited += other.audited, agreed += other.agreed, bias += other.bias;
    return *this;
  }
};

namespace detail {

/// Throws std::invalid_argument, with a message that begins with `who`, for clusters that do not fit weights
/// [vocabulary, hidden].
inline void check_fit(std::string const& who, Clusters const& clusters, std::ptrdiff_t vocabulary,
                      std::ptrdiff_t hidden) {
  check(clusters);
  require(clusters.vocabulary_size == vocabulary, who + "clusters.vocabulary_size", clusters.vocabulary_size,
          "must be that of the weights, " + std::to_string(vocabulary));
  require(clusters.hidden_size == hidden, who + "clusters.hidden_size", clusters.hidden_size,
          "must be that of the weights, " + std::to_string(hidden));
}

/// Throws std::invalid_argument, with a message that begins with `who`, for invalid options (host or device).
template <class Options>
void check_clustered(std::string const& who, Options const& options, std::ptrdiff_t vocabulary) {
  for (auto const token : options.always)
    require(token >= 0 && token < vocabulary, who + "always", token,
            "is outside the vocabulary of " + std::to_string(vocabulary));
  require(options.full_above >= 0 && options.full_above <= 1, who + "full_above", options.full_above,
          "must be in [0, 1]");
  require(options.nearest >= 1, who + "nearest", options.nearest, "must be at least 1");
}

/// Throws std::invalid_argument, with a message that begins with `who`, if a line wants more clusters than there are.
inline void check_nearest(std::string const& who, std::int32_t nearest, Clusters const& clusters) {
  require(nearest <= clusters.size(), who + "nearest", nearest,
          "must not exceed the number of clusters, " + std::to_string(clusters.size()));
}

}  // namespace detail
}  // namespace sluice::inline v0
