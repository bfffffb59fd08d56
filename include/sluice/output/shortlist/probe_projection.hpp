// SPDX-License-Identifier: Apache-2.0
/// \file
/// ProbeProjection: an output layer for searches that ask for the scores of given tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/projection/outer_layer.hpp>
#include <sluice/output/detail/projection/subset_projection.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line/line_lists.hpp>
#include <sluice/output/packed/packed_matrix.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// DenseProjection for CatalogueBeam. For a line that asks only for probes, without a softmax (Query::normalise off,
/// nothing to list, no edits or masks), only the probes' logits are computed, unless a sentence asks for so many that
/// computing all is cheaper. They are equal to DenseProjection's, bit for bit. For any other line, all logits are
/// computed. Allocates nothing once warm.
class ProbeProjection : public detail::OuterLayer<detail::SubsetProjection> {
 public:
  /// \param weights  [V, d]; referred to, must outlive this and its copies
  /// \param bias     [V] or empty; referred to
  /// \param full     the same weights, packed (DenseProjection::weights), if available
  /// \throws std::invalid_argument  if the bias or packed weights do not fit
  template <class = void>
  explicit ProbeProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                           std::shared_ptr<PackedMatrix const> full = {})
      : OuterLayer(detail::SubsetProjection(weights, bias, std::move(full))) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  template <class = void>
  Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries, std::span<Group const> groups) {
    require(hidden.columns == hidden_size(), "ProbeProjection: hidden.columns", hidden.columns,
            "must be that of the weights");
    lists_.clear();
    for_each_group(queries.size(), groups, [&](std::size_t first, std::size_t count) {
      while (count > 0) {
        auto const few = probes_alone(queries[first]);
        std::size_t n = 1;
        while (n < count && probes_alone(queries[first + n]) == few) ++n;
        MatrixView<float const> const rows{hidden.data + static_cast<std::ptrdiff_t>(first) * hidden.stride,
                                           static_cast<std::ptrdiff_t>(n), hidden.columns, hidden.stride};
        if (few) answer(rows, queries.subspan(first, n));
        else projection_.answer_full(rows, queries.subspan(first, n), lists_);
        first += n, count -= n;
      }
    });
    return lists_.answer(queries, groups);
  }

  /// The number of logits computed for lines that asked only for probes.
  std::uint64_t logits() const { return made_; }

 private:
  template <class Body>
  static void for_each_group(std::size_t lines, std::span<Group const> groups, Body&& body) {
    if (groups.empty()) body(std::size_t{0}, lines);
    std::size_t first = 0;
    for (auto const& group : groups) {
      body(first, static_cast<std::size_t>(group.lines));
      first += static_cast<std::size_t>(group.lines);
    }
  }
  template <class = void>
  bool probes_alone(Query const& query) const {
    auto const inside = [size = vocabulary_size()](Token token) { return token >= 0 && token < size; };
    return std::all_of(query.probes.begin(), query.probes.end(), inside) && !query.normalise && query.best == 0 &&
           !query.selects() && query.edits.empty() && query.only == nullptr && query.shortlist == nullptr &&
           query.temperature == 1.0f && !query.entropy;
  }

  /// Consecutive lines share one product over the union of their probes as long as that is cheaper than separate
  /// products. If they ask for so much that computing all logits is cheaper, all logits are computed.
  template <class = void>
  void answer(MatrixView<float const> hidden, std::span<Query const> queries) {
    constexpr std::size_t as_fast = 3;  // logits that a full product computes in the time of one gathered logit
    counts_.clear();
    std::size_t whole = 0;
    for (std::size_t first = 0; first < queries.size(); first += counts_.back()) {
      counts_.push_back(cheapest(queries.subspan(first)));
      whole += cost(tokens_.size(), counts_.back());
    }
    if (as_fast * whole > queries.size() * static_cast<std::size_t>(vocabulary_size()))
      return projection_.answer_full(hidden, queries, lists_);
    std::size_t first = 0;
    for (auto const count : counts_) {
      auto const together = queries.subspan(first, count);
      tokens_.clear();
      for (auto const& query : together)
        for (auto const token : query.probes) insert(token);
      answer_together({hidden.data + static_cast<std::ptrdiff_t>(first) * hidden.stride,
                       static_cast<std::ptrdiff_t>(count), hidden.columns, hidden.stride},
                      together);
      first += count;
    }
  }
  /// The number of lines, from the first on, that are cheapest together; puts their probes into tokens_.
  template <class = void>
  std::size_t cheapest(std::span<Query const> queries) {
    tokens_.clear();
    for (std::size_t count = 0; count < queries.size(); ++count) {
      auto const& probes = queries[count].probes;
      auto const before = tokens_.size();
      for (auto const token : probes) insert(token);
      if (count == 0 || cost(tokens_.size(), count + 1) <= cost(before, count) + cost(probes.size(), 1)) continue;
      tokens_.resize(before);  // the dropped tokens have no place any more
      return count;
    }
    return queries.size();
  }
  /// The cost of a product, in weights multiplied with one vector.
  template <class = void>
  static std::size_t cost(std::size_t tokens, std::size_t lines) {
    constexpr std::size_t gathering = 20;  // to gather and pack a weight
    auto const padded = static_cast<std::size_t>(detail::packed::padded(static_cast<std::ptrdiff_t>(tokens)));
    return padded * (gathering + lines);
  }
  /// Gives a token a place in tokens_, unless it already has one.
  template <class = void>
  void insert(Token token) {
    if (place_of_.empty()) place_of_.resize(static_cast<std::size_t>(vocabulary_size()));
    auto& place = place_of_[static_cast<std::size_t>(token)];
    if (place < tokens_.size() && tokens_[place] == token) return;
    place = static_cast<std::uint32_t>(tokens_.size());
    tokens_.push_back(token);
  }

  template <class = void>
  void answer_together(MatrixView<float const> hidden, std::span<Query const> queries) {
    auto const width = std::ssize(tokens_);
    auto const size = queries.size() * tokens_.size();
    if (logits_.size() < size) logits_.resize(size);
    projection_.begin(hidden);
    projection_.multiply(tokens_, {logits_.data(), hidden.rows, width, width});
    made_ += size;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const* const line = logits_.data() + i * tokens_.size();
      auto const probes = queries[i].probes;
      tell(probes.size(), [&](std::size_t probe) { return line[place_of_[static_cast<std::size_t>(probes[probe])]]; });
    }
  }
  /// Answers for a line, if all of its numbers are valid.
  template <class Logit>
  void tell(std::size_t count, Logit&& logit) {
    auto& entry = lists_.open();
    for (std::size_t i = 0; i < count; ++i)  // NaN fails every comparison
      if (!(logit(i) < std::numeric_limits<float>::infinity())) return static_cast<void>(entry.valid = false);
    for (std::size_t i = 0; i < count; ++i) lists_.probe(logit(i));
  }

  LineLists lists_;
  std::vector<std::size_t> counts_;
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> place_of_;  // by token, for those in tokens_; undefined for others
  AlignedVector<float> logits_;
  std::uint64_t made_ = 0;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
