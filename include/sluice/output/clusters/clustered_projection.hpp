// SPDX-License-Identifier: Apache-2.0
/// \file
/// ClusteredProjection: an output layer for the tokens that are likely where the hidden vector is; ShortlistProjection: for
/// those that a request allows.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters/clusters.hpp>
#include <sluice/output/clusters/nearest_centroid.hpp>
#include <sluice/output/line/line_lists.hpp>
#include <sluice/output/packed/packed_matrix.hpp>
#include <sluice/output/projection/active_tokens.hpp>
#include <sluice/output/projection/projection_pass.hpp>
#include <sluice/output/projection/subset_projection.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// What a ClusteredProjection may be told.
struct ClusteredOptions {
  /// Whose clusters are united.
  enum class Union : std::uint8_t {
    sentence,  ///< those of a sentence's own lines: results do not depend on the other sentences
    batch,     ///< those of all lines of a step (the paper's way, which gathers weights once a step): results depend on
               ///< what is decoded beside
  };

  std::vector<Token> always{};  ///< active whatever the clusters say: the end of a sentence, at least
  Union unite = Union::sentence;
  std::int32_t nearest = 1;  ///< clusters of each line: the paper's one; more make misses rarer, and cost their tokens
  double full_above = 0.5;   ///< more active tokens than this share of the vocabulary: all of them are
  std::int32_t audit = 0;    ///< > 0: every so many-th step is projected in full as well, for the statistics alone
};

/// What a ClusteredProjection has seen.
struct ClusteredStatistics {
  std::uint64_t lines = 0;
  std::uint64_t unions = 0;               ///< sentences and steps (or steps, for Union::batch)
  std::uint64_t full = 0;                 ///< of these, projected in full
  std::uint64_t active = 0;               ///< tokens, summed over the unions that were not
  std::uint64_t audited = 0, agreed = 0;  ///< lines; those whose best token is that of the full projection
  double bias =
      0;  ///< log-probability of the best minus what the full projection gives the same token, summed over `agreed`

  /// Mean share of the vocabulary that is active in a union.
  double active_share(std::int32_t vocabulary_size) const {
    auto const reduced = static_cast<double>(active) + static_cast<double>(full) * vocabulary_size;
    return unions == 0 ? 0 : reduced / static_cast<double>(unions) / vocabulary_size;
  }
  ClusteredStatistics& operator+=(ClusteredStatistics const& other) {
    lines += other.lines, unions += other.unions, full += other.full, active += other.active;
    audited += other.audited, agreed += other.agreed, bias += other.bias;
    return *this;
  }
};

/// The output layer over clusters of hidden vectors (Amer et al. 2022, "Fast Vocabulary Projection Method via Clustering
/// for Multilingual Machine Translation on GPU"): every line's nearest centroid names the tokens that were likely for
/// such vectors in training; a sentence's lines share the union of theirs, and only these are projected.
///
/// Active beside them: `always`, probes (forced prefixes, tokens whose score is asked for) and tokens whose score the
/// search raises. All tokens are projected where the union is too large, or has fewer tokens than the search asks for, or
/// where the query masks tokens (`only`) after the softmax or leaves more of them than `full_above`; a smaller mask before
/// the softmax, or a shortlist, is what is active then. The softmax is over the active tokens, so log-probabilities are a little too high.
///
/// Weights are gathered once a step for the tokens of all sentences, where that is cheaper than for each sentence; a line
/// gets those of its own sentence all the same. Logits of active tokens are DenseProjection's, bit for bit. Costs (clusters + active) d products a line. Copies share
/// weights and clusters; each has statistics of its own.
class ClusteredProjection {
 public:
  /// One direction, and sentences of no other (Request::direction 0).
  /// \param weights  [V, d]; referred to, must outlive this and its copies: gathering needs rows
  /// \param bias     [V] or empty; referred to
  /// \param full     the same, packed (DenseProjection::weights), where somebody has it already
  /// \throws std::invalid_argument  if clusters, options or packed weights do not fit the weights
  ClusteredProjection(MatrixView<float const> weights, std::span<float const> bias, Clusters clusters,
                      ClusteredOptions options = {}, std::shared_ptr<PackedMatrix const> full = {})
      : ClusteredProjection(weights, bias, one(std::move(clusters)), std::move(options), std::move(full)) {}
  /// One set of clusters per direction, in the order of Request::direction. Sentences of another direction are projected
  /// in full.
  ClusteredProjection(MatrixView<float const> weights, std::span<float const> bias, std::vector<Clusters> directions,
                      ClusteredOptions options = {}, std::shared_ptr<PackedMatrix const> full = {})
      : options_(std::move(options)),
        projection_(weights, bias, std::move(full)),
        clusters_(std::make_shared<std::vector<Clusters> const>(std::move(directions))) {
    auto const size = vocabulary_size();
    for (auto const& clusters : *clusters_) {
      check(clusters);
      require(clusters.vocabulary_size == size, "ClusteredProjection: clusters.vocabulary_size",
              clusters.vocabulary_size, "must be that of the weights, " + std::to_string(size));
      require(clusters.hidden_size == projection_.hidden_size(), "ClusteredProjection: clusters.hidden_size",
              clusters.hidden_size, "must be that of the weights, " + std::to_string(projection_.hidden_size()));
      nearest_.emplace_back(MatrixView<float const>{clusters.centroids.data(), clusters.size(), clusters.hidden_size,
                                                    clusters.hidden_size});
    }
    for (auto const token : options_.always)
      require(token >= 0 && token < size, "ClusteredProjection: always", token,
              "is outside the vocabulary of " + std::to_string(size));
    require(options_.full_above >= 0 && options_.full_above <= 1, "ClusteredProjection: full_above",
            options_.full_above, "must be in [0, 1]");
    require(options_.nearest >= 1, "ClusteredProjection: nearest", options_.nearest, "must be at least 1");
    for (auto const& clusters : *clusters_)
      require(options_.nearest <= clusters.size(), "ClusteredProjection: nearest", options_.nearest,
              "must not exceed the number of clusters, " + std::to_string(clusters.size()));
    require(options_.audit >= 0, "ClusteredProjection: audit", options_.audit, "must not be negative");
  }

  /// \param hidden  one vector per query, [queries.size(), d]
  /// \param groups  the sentences; empty: every line is one
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    require(hidden.columns == projection_.hidden_size(), "ClusteredProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    lists_.clear();
    statistics_.lines += queries.size();
    find_clusters(hidden, queries.size(), groups);
    auto const audited = options_.audit > 0 && step_++ % static_cast<std::uint64_t>(options_.audit) == 0;
    parts_.clear(), tokens_.clear();
    if (options_.unite == ClusteredOptions::Union::batch) {
      unite(queries, 0, queries.size());
    } else {
      std::size_t first = 0;
      for_each_group(queries.size(), groups, [&](std::size_t count, std::int32_t) {
        unite(queries, first, count);
        first += count;
      });
    }
    answer(hidden, queries);
    if (audited) audit(hidden, queries);
    return lists_.answer(queries, groups);
  }

  ClusteredStatistics const& statistics() const { return statistics_; }
  std::int32_t vocabulary_size() const { return projection_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_.hidden_size(); }
  /// Memory held beyond the weights that were given: packed weights (shared by copies), clusters.
  std::size_t bytes() const {
    auto sum = projection_.bytes();
    for (auto const& clusters : *clusters_)
      sum += 2 * clusters.centroids.size() * sizeof(float) + clusters.tokens.size() * sizeof(Token) +
             clusters.begin.size() * sizeof(std::int64_t);
    return sum;
  }

 private:
  /// Lines that share a union.
  struct Part {
    std::size_t first = 0, lines = 0;
    std::size_t begin = 0, size = 0;  // of its tokens, in tokens_
    bool full = false;                // all tokens instead
  };

  static std::vector<Clusters> one(Clusters clusters) {
    std::vector<Clusters> all;
    all.push_back(std::move(clusters));
    return all;
  }
  static MatrixView<float const> rows(Hidden<float> const& hidden, std::size_t first, std::size_t count) {
    return {hidden.data + static_cast<std::ptrdiff_t>(first) * hidden.stride, static_cast<std::ptrdiff_t>(count),
            hidden.columns, hidden.stride};
  }
  std::span<Token const> tokens_of(Part const& part) const { return std::span(tokens_).subspan(part.begin, part.size); }
  template <class Body>
  static void for_each_group(std::size_t lines, std::span<Group const> groups, Body&& body) {
    if (groups.empty())
      for (std::size_t i = 0; i < lines; ++i) body(std::size_t{1}, 0);
    for (auto const& group : groups) body(static_cast<std::size_t>(group.lines), group.direction);
  }

  /// The tokens of each line's cluster, to line_clusters_; nothing where its direction has no clusters.
  void find_clusters(Hidden<float> const& hidden, std::size_t lines, std::span<Group const> groups) {
    line_clusters_.assign(lines, nullptr);
    auto const each = static_cast<std::size_t>(options_.nearest);
    found_.resize(lines * each);
    for (std::size_t direction = 0; direction < nearest_.size(); ++direction) {
      auto const& clusters = (*clusters_)[direction];
      std::size_t first = 0, begin = 0, end = 0;  // lines begin .. end - 1 wait for one product
      auto const flush = [&] {
        nearest_[direction].find(rows(hidden, begin, end - begin),
                                 std::span(found_).subspan(begin * each, (end - begin) * each));
        for (; begin < end; ++begin) line_clusters_[begin] = &clusters;
      };
      for_each_group(lines, groups, [&](std::size_t count, std::int32_t of) {
        if (static_cast<std::size_t>(of) == direction) {
          if (end != first) {
            flush();
            begin = first;
          }
          end = first + count;
        }
        first += count;
      });
      flush();
    }
  }

  /// The union for some lines: another part.
  void unite(std::span<Query const> queries, std::size_t first, std::size_t count) {
    if (count == 0) return;
    auto& part = parts_.emplace_back();
    part.first = first, part.lines = count, part.begin = tokens_.size();
    part.full = !make_union(queries.subspan(first, count), first);
    if (!part.full) active_.append_to(tokens_);
    part.size = tokens_.size() - part.begin;
    ++statistics_.unions, statistics_.full += part.full, statistics_.active += part.size;
  }

  /// What a query allows before the softmax.
  static TokenSet const* mask_of(Query const& query) {
    return query.shortlist != nullptr ? query.shortlist : query.stage == Stage::before_softmax ? query.only : nullptr;
  }

  /// To active_; false where all tokens are to be projected.
  bool make_union(std::span<Query const> queries, std::size_t first) {
    active_.begin(vocabulary_size());
    auto const* const mask = mask_of(queries.front());
    auto const each = static_cast<std::size_t>(options_.nearest);
    std::int32_t wanted = 1;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& query = queries[i];
      // One mask for all lines, before the softmax, or none.
      if (mask_of(query) != mask || (query.only != nullptr && query.only != mask)) return false;
      if (mask != nullptr) continue;
      if (line_clusters_[first + i] == nullptr) return false;
      for (std::size_t n = 0; n < each; ++n)
        active_.insert((*line_clusters_[first + i])[found_[(first + i) * each + n]]);
      active_.insert(query.probes);
      for (auto const& edit : query.edits)
        if (edit.add > 0 || edit.penalty < 1) active_.insert(edit.token);
    }
    if (mask != nullptr) active_.insert(*mask);
    else active_.insert(options_.always);
    if (mask == nullptr)
      for (auto const& query : queries) {
        std::int32_t forbidden = 0;
        for (auto const& edit : query.edits)
          forbidden += edit.add == -std::numeric_limits<float>::infinity() && active_.contains(edit.token);
        wanted = std::max(wanted, query.best + forbidden);
      }
    auto const count = active_.count();
    // A mask leaves what it leaves; a union must not take from what the search asks for.
    return count > 0 && count <= options_.full_above * vocabulary_size() && (mask != nullptr || count >= wanted);
  }

  void answer(Hidden<float> const& hidden, std::span<Query const> queries) {
    auto const joint = together();
    if (joint) multiply(hidden);
    auto* logits = logits_.data();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      auto const& part = parts_[p];
      if (part.full) {
        // Neighbours read the weights once.
        auto lines = part.lines;
        for (; p + 1 < parts_.size() && parts_[p + 1].full; ++p) lines += parts_[p + 1].lines;
        projection_.answer_full(rows(hidden, part.first, lines), queries.subspan(part.first, lines), lists_);
        continue;
      }
      auto const own = queries.subspan(part.first, part.lines);
      auto const tokens = tokens_of(part);
      auto const translated = translated_.translate(own, tokens);
      if (!joint) {
        projection_.answer_some(rows(hidden, part.first, part.lines), translated, tokens, lists_);
        continue;
      }
      for (auto const& query : translated) {
        projection_.answer_line({logits, part.size}, query, tokens, lists_);
        logits += part.size;
      }
    }
  }

  /// Whether it is cheaper to gather the weights of all parts' tokens once, multiply all lines with them and give every
  /// line its own, than to gather for each part. Then makes joint_, all those tokens. It changes no result.
  bool together() {
    // In products of one row: what it takes to pick and pack a weight; a block has some rows at least.
    constexpr std::size_t gathering = 20, few = 4;
    std::size_t lines = 0, apart = 0, count = 0, written = 0;
    active_.begin(vocabulary_size());
    for (auto const& part : parts_) {
      if (part.full) continue;
      active_.insert(tokens_of(part));
      lines += part.lines, written += part.lines * part.size, ++count;
      apart += part.size * (gathering + std::max(part.lines, few));
    }
    // What every line gets of its own is written down.
    constexpr std::size_t most = std::size_t{1} << 24;
    if (count < 2 || written > most) return false;
    if (static_cast<std::size_t>(active_.count()) * (gathering + lines) >= apart) return false;
    joint_.clear();
    active_.append_to(joint_);
    return true;
  }

  /// The logits of each line's own tokens, line after line, to logits_.
  void multiply(Hidden<float> const& hidden) {
    auto const d = static_cast<std::size_t>(hidden.columns);
    vectors_.clear(), places_.resize(tokens_.size()), cursors_.clear();
    if (place_of_.empty()) place_of_.resize(static_cast<std::size_t>(vocabulary_size()));
    for (std::size_t i = 0; i < joint_.size(); ++i)
      place_of_[static_cast<std::size_t>(joint_[i])] = static_cast<std::int32_t>(i);
    for (std::size_t i = 0; i < tokens_.size(); ++i) places_[i] = place_of_[static_cast<std::size_t>(tokens_[i])];
    std::size_t size = 0;
    for (auto const& part : parts_) {
      cursors_.push_back(part.begin);
      if (part.full) continue;
      for (std::size_t i = 0; i < part.lines; ++i) {
        auto const vector = hidden[static_cast<std::ptrdiff_t>(part.first + i)];
        vectors_.insert(vectors_.end(), vector.begin(), vector.end());
      }
      size += part.lines * part.size;
    }
    if (logits_.size() < size) logits_.resize(size);

    auto const lines = static_cast<std::ptrdiff_t>(vectors_.size() / d);
    auto const width = std::min(ProjectionPass::tile_width(lines), std::ssize(joint_));
    if (std::ssize(tile_) < lines * width) tile_.resize(static_cast<std::size_t>(lines * width));
    for (std::ptrdiff_t first = 0; first < std::ssize(joint_); first += width) {
      auto const count = std::min(width, std::ssize(joint_) - first);
      projection_.multiply({vectors_.data(), lines, hidden.columns, hidden.columns},
                           std::span(joint_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                           {tile_.data(), lines, count, width});
      deal_out(first, first + count, width);
    }
  }

  /// Copies what lines want of the tile of joint_'s tokens first .. last - 1.
  void deal_out(std::ptrdiff_t first, std::ptrdiff_t last, std::ptrdiff_t width) {
    auto const* row = tile_.data();
    auto* to = logits_.data();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      auto const& part = parts_[p];
      if (part.full) continue;
      auto const begin = cursors_[p];
      auto end = begin;
      while (end < part.begin + part.size && places_[end] < last) ++end;
      cursors_[p] = end;
      for (std::size_t line = 0; line < part.lines; ++line, row += width, to += part.size)
        for (auto i = begin; i < end; ++i) to[i - part.begin] = row[places_[i] - first];
    }
  }

  /// Compares the best of every line with the full projection's.
  void audit(Hidden<float> const& hidden, std::span<Query const> queries) {
    audit_lists_.clear();
    projection_.answer_full(rows(hidden, 0, queries.size()), queries, audit_lists_);
    auto const full = audit_lists_.answer(queries, {});
    auto const here = lists_.answer(queries, {});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (full[i].best.empty() || here[i].best.empty()) continue;
      auto const expected = full[i].best.front(), got = here[i].best.front();
      ++statistics_.audited;
      if (expected.token != got.token) continue;
      ++statistics_.agreed;
      statistics_.bias += static_cast<double>(got.log_prob) - static_cast<double>(expected.log_prob);
    }
  }

  ClusteredOptions options_;
  SubsetProjection projection_;
  std::shared_ptr<std::vector<Clusters> const> clusters_;
  std::vector<NearestCentroid> nearest_;  // by direction
  std::vector<Clusters const*> line_clusters_;
  std::vector<std::int32_t> found_;  // [lines, nearest]
  ActiveTokens active_;
  ActiveQueries translated_;
  std::vector<Part> parts_;
  std::vector<Token> tokens_, joint_;
  std::vector<std::int32_t> places_, place_of_;  // of tokens_ in joint_; by token
  std::vector<std::size_t> cursors_;             // by part
  AlignedVector<float> vectors_, tile_, logits_;
  LineLists lists_, audit_lists_;
  ClusteredStatistics statistics_;
  std::uint64_t step_ = 0;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
