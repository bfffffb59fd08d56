// SPDX-License-Identifier: Apache-2.0
/// \file
/// ProbeProjection: an output layer for searches that ask for a few tokens by name.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/line/line_lists.hpp>
#include <sluice/output/packed/packed_matrix.hpp>
#include <sluice/output/projection/active_tokens.hpp>
#include <sluice/output/projection/subset_projection.hpp>
#include <sluice/output/simd/aligned_vector.hpp>
#include <sluice/output/simd/simd.hpp>

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

/// DenseProjection with CatalogueBeam in mind: of a line that asks for probes alone, without a softmax (Query::normalise off,
/// nothing to list, no edits or masks), the logits of those are made and no others. They are DenseProjection's, bit for bit.
/// Of what else is asked for, all logits are made. Nothing is allocated once warm.
template <class = void>
class LazyProbeProjection {
 public:
  /// \param weights  [V, d]; referred to, must outlive this and its copies
  /// \param bias     [V] or empty; referred to
  /// \param full     the same weights, packed (DenseProjection::weights), where somebody has them already
  /// \throws std::invalid_argument  if these do not fit
  explicit LazyProbeProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                               std::shared_ptr<PackedMatrix const> full = {})
      : projection_(weights, bias, std::move(full)) {}

  /// \param hidden  one vector per query, [queries.size(), d]
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

  /// Logits that have been made for lines that asked for few.
  std::uint64_t logits() const { return made_; }
  std::int32_t vocabulary_size() const { return projection_.vocabulary_size(); }
  std::ptrdiff_t hidden_size() const { return projection_.hidden_size(); }
  /// Memory held beyond the weights that were given; copies share it.
  std::size_t bytes() const { return projection_.bytes(); }

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
  bool probes_alone(Query const& query) const {
    auto const inside = [size = vocabulary_size()](Token token) { return token >= 0 && token < size; };
    return std::all_of(query.probes.begin(), query.probes.end(), inside) && !query.normalise && query.best == 0 &&
           query.mass <= 0 && query.within <= 0 && query.typical <= 0 && query.edits.empty() && query.only == nullptr &&
           query.shortlist == nullptr && query.temperature == 1.0f && !query.entropy;
  }

  /// Logits of what any line of the sentence asks for, of each line or of all together: where the lines ask for much the same,
  /// a product is faster than to gather the weights for each.
  void answer(MatrixView<float const> hidden, std::span<Query const> queries) {
    constexpr std::size_t gathering = 20;  // in products of one row: what it takes to pick and pack a weight
    std::size_t asked = 0;
    active_.begin(vocabulary_size());
    for (auto const& query : queries) asked += query.probes.size(), active_.insert(query.probes);
    auto const united = static_cast<std::size_t>(active_.count());
    if (united * (gathering + queries.size()) <= asked * (gathering + 1)) answer_united(hidden, queries, united);
    else
      for (std::size_t i = 0; i < queries.size(); ++i) answer_line(hidden, queries[i], static_cast<std::ptrdiff_t>(i));
  }

  void answer_united(MatrixView<float const> hidden, std::span<Query const> queries, std::size_t united) {
    tokens_.clear();
    active_.append_to(tokens_);
    if (place_of_.empty()) place_of_.resize(static_cast<std::size_t>(vocabulary_size()));
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      place_of_[static_cast<std::size_t>(tokens_[i])] = static_cast<std::int32_t>(i);
    grow(queries.size() * united);
    projection_.begin(hidden);
    auto const width = static_cast<std::ptrdiff_t>(united);
    projection_.multiply(tokens_, {logits_.data(), hidden.rows, width, width});
    made_ += queries.size() * united;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const* const line = logits_.data() + i * united;
      tell(queries[i].probes.size(),
           [&](std::size_t probe) { return line[place_of_[static_cast<std::size_t>(queries[i].probes[probe])]]; });
    }
  }
  void answer_line(MatrixView<float const> hidden, Query const& query, std::ptrdiff_t line) {
    auto const count = query.probes.size();
    grow(count);
    projection_.begin({hidden.data + line * hidden.stride, 1, hidden.columns, hidden.stride});
    auto const width = static_cast<std::ptrdiff_t>(count);
    projection_.multiply(query.probes, {logits_.data(), 1, width, width});
    made_ += count;
    tell(count, [&](std::size_t probe) { return logits_[probe]; });
  }
  /// The answer about a line, if all of its numbers are.
  template <class Logit>
  void tell(std::size_t count, Logit&& logit) {
    auto& entry = lists_.open();
    for (std::size_t i = 0; i < count; ++i)  // a NaN is less than nothing
      if (!(logit(i) < std::numeric_limits<float>::infinity())) return static_cast<void>(entry.valid = false);
    for (std::size_t i = 0; i < count; ++i) lists_.probe(logit(i));
  }
  void grow(std::size_t size) {
    if (logits_.size() < size) logits_.resize(size);
  }

  SubsetProjection projection_;
  ActiveTokens active_;
  LineLists lists_;
  std::vector<Token> tokens_;
  std::vector<std::int32_t> place_of_;  // by token, of those in tokens_
  AlignedVector<float> logits_;
  std::uint64_t made_ = 0;
};
using ProbeProjection = LazyProbeProjection<>;

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
