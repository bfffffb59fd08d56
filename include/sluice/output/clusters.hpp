// SPDX-License-Identifier: Apache-2.0
/// \file
/// Clusters of hidden vectors, with the tokens that are likely in each: the input of a clustered projection. Its options and
/// statistics, shared with its CUDA counterpart.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Clusters of hidden vectors, with the tokens that are likely in each (for one direction of one model). A vector
/// belongs to the cluster c with the nearest centroid, the lowest c on ties; clusters may share tokens. See
/// train_clusters().
struct Clusters {
  std::ptrdiff_t hidden_size = 0;      ///< d; >= 1
  std::int32_t vocabulary_size = 0;    ///< V; >= 1
  std::vector<float> centroids{};      ///< [size(), d], finite
  std::vector<std::int64_t> begin{0};  ///< [size() + 1]: cluster c has tokens[begin[c] .. begin[c + 1])
  std::vector<Token> tokens{};         ///< in [0, V), ascending within a cluster, none twice

  /// The number of clusters.
  std::ptrdiff_t size() const { return std::ssize(begin) - 1; }
  /// The tokens of cluster c, ascending.
  std::span<Token const> operator[](std::ptrdiff_t c) const {
    auto const i = static_cast<std::size_t>(c);
    return std::span(tokens).subspan(static_cast<std::size_t>(begin[i]),
                                     static_cast<std::size_t>(begin[i + 1] - begin[i]));
  }
  /// The centroid of cluster c, [d].
  std::span<float const> centroid(std::ptrdiff_t c) const {
    return std::span(centroids).subspan(static_cast<std::size_t>(c * hidden_size),
                                        static_cast<std::size_t>(hidden_size));
  }
  friend bool operator==(Clusters const&, Clusters const&) = default;
};

/// The clusters of a multilingual model, by direction ("de-en").
using ClustersByDirection = std::map<std::string, Clusters, std::less<>>;

/// Throws std::invalid_argument, naming the member and its value, for clusters that break what the members' comments
/// say.
inline void check(Clusters const& clusters) {
  require(clusters.hidden_size >= 1, "clusters.hidden_size", clusters.hidden_size, "must be at least 1");
  require(clusters.vocabulary_size >= 1, "clusters.vocabulary_size", clusters.vocabulary_size, "must be at least 1");
  auto const& begin = clusters.begin;
  require(begin.size() >= 2, "clusters.size()", clusters.size(), "must be at least 1");
  // A division, since the product may overflow.
  auto const d = static_cast<std::size_t>(clusters.hidden_size);
  auto const all = clusters.centroids.size();
  require(all % d == 0 && all / d == begin.size() - 1, "clusters.centroids.size()", all,
          "must be size() * hidden_size");

  auto const name = [](char const* member, std::size_t i) {
    return std::string("clusters.") + member + '[' + std::to_string(i) + ']';
  };
  for (std::size_t i = 0; i < all; ++i)
    if (!std::isfinite(clusters.centroids[i]))
      require(false, name("centroids", i), clusters.centroids[i], "must be finite");

  require(begin.front() == 0, "clusters.begin[0]", begin.front(), "must be 0");
  for (std::size_t c = 1; c < begin.size(); ++c)
    if (begin[c] < begin[c - 1]) require(false, name("begin", c), begin[c], "is less than the one before");
  require(begin.back() == std::ssize(clusters.tokens), "clusters.begin.back()", begin.back(), "must be tokens.size()");

  for (std::size_t c = 0; c + 1 < begin.size(); ++c)
    for (auto i = static_cast<std::size_t>(begin[c]); i < static_cast<std::size_t>(begin[c + 1]); ++i) {
      auto const token = clusters.tokens[i];
      if (token < 0 || token >= clusters.vocabulary_size)
        require(false, name("tokens", i), token, "is outside the vocabulary");
      if (i > static_cast<std::size_t>(begin[c]) && token <= clusters.tokens[i - 1])
        require(false, name("tokens", i), token, "must be more than the one before it in its cluster");
    }
}

namespace detail {

/// Rounds to the nearest number with 8 significant bits, ties to even: a float whose lower half is 0. Overflow becomes
/// infinity; not for NaN.
inline float round_to_bfloat16(float x) {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

}  // namespace detail

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
