// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusterSamples and RecordHidden: what a model sees while it decodes, to train clusters on.
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

struct ClusterSamplesOptions {
  std::ptrdiff_t hidden_size = 0;                                      ///< d; >= 1
  std::int32_t vocabulary_size = 0;                                    ///< V; >= 1
  std::ptrdiff_t likely = 1;                                           ///< K: tokens kept of each vector; >= 1
  std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)();  ///< samples kept; >= 1
  std::uint64_t seed = 1;                                              ///< of which ones
};

/// Hidden vectors with their K most probable tokens: all that were added, or `most` of them, drawn evenly (reservoir
/// sampling, Vitter's algorithm R). The draw depends on the seed and on the order in which they are added. Memory:
/// 4 (d + K) bytes for each.
class ClusterSamples {
 public:
  /// \throws std::invalid_argument  for options that make no sense
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
  /// The tokens of sample i, most probable first. Where there were fewer than K, the last comes again.
  std::span<Token const> tokens(std::ptrdiff_t i) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(i * likely()), static_cast<std::size_t>(likely()));
  }

  /// Keeps a vector [d] with the first K of `tokens`, most probable first; or does not, where there are `most` samples.
  /// Without tokens the vector counts as seen, no more.
  /// \throws std::invalid_argument  if the shapes do not fit, for a token outside the vocabulary or a number that is not
  ///                                finite
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

  /// Whether a vector added after `ahead` others may be kept: false spares making its tokens.
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

  /// Whose place vector n takes, in [0, n].
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

/// An expander that answers as `E` does and records on the way: every line's hidden vector, and the K tokens that are most
/// probable after the query's edits, `only` and shortlist. It asks a second expander, a copy, for those lines whose queries want
/// less (a greedy search, where K > 1) or something else (noise). Requests that ask for Request::confidence have their lines
/// recorded twice.
///
/// \tparam E  an expander for Hidden<float>: DenseProjection
template <class E>
class RecordHidden {
 public:
  /// \param samples  what is recorded; must outlive this
  /// \throws std::invalid_argument  if `expander` is for a vocabulary or vectors of another size
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
  /// Whether the list begins with the K most probable tokens (a group that asks to keep may cut it).
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
