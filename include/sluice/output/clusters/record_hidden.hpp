// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusterSamples and RecordHidden: hidden vectors recorded while decoding, to train clusters on.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// What ClusterSamples keep.
struct ClusterSamplesOptions {
  std::ptrdiff_t hidden_size = 0;                                      ///< d; >= 1
  std::int32_t vocabulary_size = 0;                                    ///< V; >= 1
  std::ptrdiff_t likely = 1;                                           ///< K: tokens kept for each vector; >= 1
  std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)();  ///< the most samples kept; >= 1
  std::uint64_t seed = 1;                                              ///< decides which are kept
};

/// Hidden vectors with their K most probable tokens: all that were added, or a uniform sample of `most` of them
/// (reservoir sampling, Vitter's algorithm R). The sample depends on the seed and on the order of additions. Memory: 4
/// (d + K) bytes per vector.
class ClusterSamples {
 public:
  /// \throws std::invalid_argument  for invalid options
  explicit ClusterSamples(ClusterSamplesOptions const& options) : options_(options) {
    require(options.hidden_size >= 1, "ClusterSamples: hidden_size", options.hidden_size, "must be at least 1");
    require(options.vocabulary_size >= 1, "ClusterSamples: vocabulary_size", options.vocabulary_size,
            "must be at least 1");
    require(options.likely >= 1, "ClusterSamples: likely", options.likely, "must be at least 1");
    require(options.most >= 1, "ClusterSamples: most", options.most, "must be at least 1");
  }

  std::ptrdiff_t size() const { return size_; }  ///< n: samples kept
  std::int64_t seen() const { return seen_; }    ///< calls of add()
  std::ptrdiff_t hidden_size() const { return options_.hidden_size; }
  std::int32_t vocabulary_size() const { return options_.vocabulary_size; }
  std::ptrdiff_t likely() const { return options_.likely; }

  /// The vectors, [n, d].
  MatrixView<float const> hidden() const { return {hidden_.data(), size_, hidden_size(), hidden_size()}; }
  /// The tokens of sample i, most probable first. If there were fewer than K, the last one repeats.
  std::span<Token const> tokens(std::ptrdiff_t i) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(i * likely()), static_cast<std::size_t>(likely()));
  }

  /// Offers a vector [d] with the first K of `tokens`, most probable first; the reservoir keeps or drops it. Without
  /// tokens, the vector only counts as seen.
  /// \throws std::invalid_argument  if the shapes do not fit, for a token outside the vocabulary or a number that is
  ///                                not finite
  void add(std::span<float const> hidden, std::span<Token const> tokens) {
    if (!tokens.empty()) check(hidden, tokens);
    auto const n = seen_++;
    if (tokens.empty()) return;
    auto place = size_;
    if (size_ < options_.most) {
      hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
      tokens_.resize(tokens_.size() + static_cast<std::size_t>(likely()));
      ++size_;
    } else {
      place = draw(n);
      if (place >= options_.most) return;
      std::ranges::copy(hidden, hidden_.begin() + place * hidden_size());
    }
    auto const count = (std::min)(std::ssize(tokens), likely());
    auto const to = tokens_.begin() + place * likely();
    std::copy_n(tokens.begin(), count, to);
    std::fill(to + count, to + likely(), tokens[static_cast<std::size_t>(count - 1)]);
  }

  /// Whether a vector added after `ahead` others may be kept; if not, its tokens need not be computed.
  bool may_keep(std::int64_t ahead = 0) const { return size_ < options_.most || draw(seen_ + ahead) < options_.most; }

 private:
  void check(std::span<float const> hidden, std::span<Token const> tokens) const {
    require(std::ssize(hidden) == hidden_size(), "ClusterSamples: hidden.size()", hidden.size(),
            "must be hidden_size, " + std::to_string(hidden_size()));
    require(!tokens.empty(), "ClusterSamples: tokens.size()", tokens.size(), "must be at least 1");
    for (auto const token : tokens)
      require(token >= 0 && token < vocabulary_size(), "ClusterSamples: token", token, "is outside the vocabulary");
    for (auto const x : hidden) require(std::isfinite(x), "ClusterSamples: hidden", x, "must be finite");
  }

  /// The place that vector n takes, in [0, n].
  std::ptrdiff_t draw(std::int64_t n) const {
    auto const chance = uniform(derive(options_.seed, static_cast<std::uint64_t>(n)), 0);
    return static_cast<std::ptrdiff_t>(chance * static_cast<double>(n + 1));
  }

  ClusterSamplesOptions options_;
  std::ptrdiff_t size_ = 0;
  std::int64_t seen_ = 0;
  std::vector<float> hidden_;
  std::vector<Token> tokens_;
};

/// An expander that answers as `E` does and records, for every line, the hidden vector and the K tokens that are most
/// probable after the query's edits, `only` and shortlist. If a query wants less (greedy search, with K > 1) or
/// something else (noise), it asks a second expander, a copy. Lines of requests with Request::confidence are recorded
/// twice.
///
/// \tparam E  an expander for Hidden<float>, such as DenseProjection
template <class E>
class RecordHidden {
 public:
  /// \param samples  receives the recorded vectors; must outlive this
  /// \throws std::invalid_argument  if `expander` has another vocabulary or vector size
  RecordHidden(E expander, ClusterSamples& samples)
      : expander_(std::move(expander)), again_(expander_), samples_(&samples) {
    if constexpr (requires { expander_.vocabulary_size(); })
      require(expander_.vocabulary_size() == samples.vocabulary_size(), "RecordHidden: expander.vocabulary_size()",
              expander_.vocabulary_size(), "must be that of the samples");
    if constexpr (requires { expander_.hidden_size(); })
      require(expander_.hidden_size() == samples.hidden_size(), "RecordHidden: expander.hidden_size()",
              expander_.hidden_size(), "must be that of the samples");
  }

  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    auto const answer = expander_.expand(hidden, queries, groups);
    auto const more = ask_again(hidden, queries, answer);
    std::size_t next = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      tokens_.clear();
      if (next < asked_.size() && asked_[next] == i) take(more[next++]);
      else if (complete(queries[i], answer[i])) take(answer[i]);
      samples_->add(hidden[static_cast<std::ptrdiff_t>(i)], tokens_);
    }
    return answer;
  }

  std::ptrdiff_t vocabulary_size() const requires requires(E const& e) { e.vocabulary_size(); }
  { return expander_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const requires requires(E const& e) { e.hidden_size(); }
  { return expander_.hidden_size(); }

 private:
  /// Whether the list begins with the K most probable tokens (Group::keep may have cut it).
  bool complete(Query const& query, Line const& line) const {
    return query.noise == 0 && query.best >= samples_->likely() && std::ssize(line.best) >= samples_->likely();
  }

  void take(Line const& line) {
    for (auto const& candidate : line.best) {
      if (std::ssize(tokens_) == samples_->likely()) break;
      tokens_.push_back(candidate.token);
    }
  }

  Expansion ask_again(Hidden<float> const& hidden, std::span<Query const> queries, Expansion const& answer) {
    asked_.clear(), queries_.clear(), rows_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& query = queries[i];
      if (!answer[i].valid || complete(query, answer[i]) || !samples_->may_keep(static_cast<std::int64_t>(i))) continue;
      asked_.push_back(i);
      queries_.push_back({.best = static_cast<std::int32_t>(samples_->likely()),
                          .edits = query.edits,
                          .stage = query.stage,
                          .only = query.only,
                          .shortlist = query.shortlist});
      auto const row = hidden[static_cast<std::ptrdiff_t>(i)];
      rows_.insert(rows_.end(), row.begin(), row.end());
    }
    if (asked_.empty()) return {};
    Group const group{.lines = static_cast<std::int32_t>(asked_.size())};
    return again_.expand(sluice::hidden(rows_.data(), std::ssize(asked_), hidden.columns), queries_, {&group, 1});
  }

  E expander_, again_;
  ClusterSamples* samples_;
  std::vector<std::size_t> asked_;
  std::vector<Query> queries_;
  std::vector<float> rows_;
  std::vector<Token> tokens_;
};

}  // namespace sluice::inline v0
