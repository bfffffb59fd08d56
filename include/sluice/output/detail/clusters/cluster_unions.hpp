// SPDX-License-Identifier: Apache-2.0
/// \file
/// The active tokens of each line of a step.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clusters.hpp>
#include <sluice/output/detail/projection/active_tokens.hpp>
#include <sluice/output/k_means.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Some lines of hidden vectors.
inline MatrixView<float const> lines_of(Hidden<float> const& hidden, std::size_t first, std::size_t count) {
  return {hidden.data + static_cast<std::ptrdiff_t>(first) * hidden.stride, static_cast<std::ptrdiff_t>(count),
          hidden.columns, hidden.stride};
}

/// Lines that share a union.
struct UnionPart {
  std::size_t first = 0, lines = 0;
  std::size_t begin = 0, size = 0;  ///< of its tokens, in ClusterUnions::tokens()
  bool full = false;                ///< all tokens instead
};

/// Forms unions of the lines' clusters (see ClusteredProjection), one part of the lines per union. Allocates nothing
/// once warm.
class ClusterUnions {
 public:
  /// \param directions  clusters that fit the weights, by Request::direction
  SLUICE_LAZY ClusterUnions(ClusteredOptions options, std::shared_ptr<std::vector<Clusters> const> directions,
                            std::int32_t vocabulary_size)
      : options_(std::move(options)), directions_(std::move(directions)), vocabulary_size_(vocabulary_size) {
    for (auto const& clusters : *directions_)
      nearest_.emplace_back(MatrixView<float const>{clusters.centroids.data(), clusters.size(), clusters.hidden_size,
                                                    clusters.hidden_size});
  }

  /// Forms the unions of a step.
  SLUICE_LAZY void form(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups,
                        ClusteredStatistics& statistics) {
    statistics.lines += queries.size();
    find_clusters(hidden, queries.size(), groups);
    parts_.clear(), tokens_.clear();
    if (options_.unite == ClusteredOptions::Union::batch) {
      unite(queries, 0, queries.size(), statistics);
      return;
    }
    std::size_t first = 0;
    for_each_group(queries.size(), groups, [&](std::size_t count, std::int32_t) {
      unite(queries, first, count, statistics);
      first += count;
    });
  }

  /// The parts of the last step; together they hold all lines, in order.
  std::span<UnionPart const> parts() const { return parts_; }
  /// The tokens of all parts, ascending in each.
  std::span<Token const> tokens() const { return tokens_; }
  std::span<Token const> tokens_of(UnionPart const& part) const { return tokens().subspan(part.begin, part.size); }

 private:
  template <class Body>
  static void for_each_group(std::size_t lines, std::span<Group const> groups, Body&& body) {
    if (groups.empty())
      for (std::size_t i = 0; i < lines; ++i) body(std::size_t{1}, 0);
    for (auto const& group : groups) body(static_cast<std::size_t>(group.lines), group.direction);
  }

  /// Puts the tokens of each line's cluster into line_clusters_; nothing if its direction has no clusters.
  SLUICE_LAZY void find_clusters(Hidden<float> const& hidden, std::size_t lines, std::span<Group const> groups) {
    line_clusters_.assign(lines, nullptr);
    auto const each = static_cast<std::size_t>(options_.nearest);
    found_.resize(lines * each);
    for (std::size_t direction = 0; direction < nearest_.size(); ++direction) {
      auto const& clusters = (*directions_)[direction];
      std::size_t first = 0, begin = 0, end = 0;  // lines begin .. end - 1 wait for one product
      auto const flush = [&] {
        nearest_[direction].find(lines_of(hidden, begin, end - begin),
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

  /// Forms the union for some lines, as another part.
  void unite(std::span<Query const> queries, std::size_t first, std::size_t count, ClusteredStatistics& statistics) {
    if (count == 0) return;
    auto& part = parts_.emplace_back();
    part.first = first, part.lines = count, part.begin = tokens_.size();
    part.full = !collect_union(queries.subspan(first, count), first);
    if (!part.full) active_.append_to(tokens_);
    part.size = tokens_.size() - part.begin;
    ++statistics.unions, statistics.full += part.full, statistics.active += part.size;
  }

  /// The tokens that a query allows before the softmax.
  static TokenSet const* mask_of(Query const& query) {
    return query.shortlist != nullptr ? query.shortlist : query.stage == Stage::before_softmax ? query.only : nullptr;
  }

  /// Collects the union in active_; false if all tokens are to be projected.
  bool collect_union(std::span<Query const> queries, std::size_t first) {
    active_.begin(vocabulary_size_);
    auto const* const mask = mask_of(queries.front());
    auto const each = static_cast<std::size_t>(options_.nearest);
    std::int32_t wanted = 1;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& query = queries[i];
      // All lines must have the same mask, applied before the softmax, or none.
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
        wanted = (std::max)(wanted, query.best + forbidden);
      }
    auto const count = active_.count();
    // A mask may leave few tokens; a union must hold at least as many as the search asks for.
    return count > 0 && count <= options_.full_above * vocabulary_size_ && (mask != nullptr || count >= wanted);
  }

  ClusteredOptions options_;
  std::shared_ptr<std::vector<Clusters> const> directions_;
  std::int32_t vocabulary_size_;
  std::vector<NearestCentroid> nearest_;  // by direction
  std::vector<Clusters const*> line_clusters_;
  std::vector<std::int32_t> found_;  // [lines, nearest]
  ActiveTokens active_;
  std::vector<UnionPart> parts_;
  std::vector<Token> tokens_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
