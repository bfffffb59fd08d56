// SPDX-License-Identifier: Apache-2.0
/// \file
/// ShortlistProjection: an output layer for a request's vocabulary shortlist. LexicalShortlist: one of the tokens that a sentence's
/// translation may need. ProbeProjection: an output layer for searches that ask for the scores of given tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/clusters.hpp>
#include <sluice/output/detail/packed/packed_blocks.hpp>
#include <sluice/output/detail/projection/outer_layer.hpp>
#include <sluice/output/detail/projection/subset_projection.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line_lists.hpp>
#include <sluice/output/packed_matrix.hpp>

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

/// One line of a table of lexical translations, such as fast_align's or Marian's lex.s2t.
struct LexicalEntry {
  Token source = 0, target = 0;
  float probability = 0;  ///< of the target token, given the source token
};

/// Vocabulary shortlists from a lexical translation table (Jean et al. 2015; Marian's --shortlist FILE first best): the
/// `first` tokens of the vocabulary, which must be ordered by frequency, and the `best` translations of every source
/// token.
class LexicalShortlist {
 public:
  /// \param source_size, target_size  of the vocabularies
  /// \throws std::invalid_argument  for tokens outside the vocabularies, an invalid probability, or a negative number
  SLUICE_LAZY LexicalShortlist(std::span<LexicalEntry const> table, std::int32_t source_size, std::int32_t target_size,
                               std::int32_t first = 100, std::int32_t best = 100)
      : target_size_(target_size), always_((std::max)(target_size, 0)) {
    require(target_size >= 0, "LexicalShortlist: target_size", target_size, "must not be negative");
    require(source_size >= 0, "LexicalShortlist: source_size", source_size, "must not be negative");
    begin_.resize(static_cast<std::size_t>(source_size) + 1);
    require(first >= 0, "LexicalShortlist: first", first, "must not be negative");
    require(best >= 0, "LexicalShortlist: best", best, "must not be negative");
    for (Token token = 0; token < (std::min)(first, target_size); ++token) always_.insert(token);
    std::vector<LexicalEntry> entries(table.begin(), table.end());
    for (auto const& e : entries) {
      require(e.source >= 0 && e.source < source_size, "LexicalShortlist: source token", e.source,
              "is outside the vocabulary of " + std::to_string(source_size));
      require(e.target >= 0 && e.target < target_size, "LexicalShortlist: target token", e.target,
              "is outside the vocabulary of " + std::to_string(target_size));
      require(e.probability >= 0 && e.probability <= 1, "LexicalShortlist: probability", e.probability,
              "must be in [0, 1]");
    }
    std::sort(entries.begin(), entries.end(), [](LexicalEntry const& a, LexicalEntry const& b) {
      if (a.source != b.source) return a.source < b.source;
      return a.probability != b.probability ? a.probability > b.probability : a.target < b.target;
    });
    auto next = entries.begin();
    for (Token source = 0; source < source_size; ++source) {
      for (std::int32_t taken = 0; next != entries.end() && next->source == source; ++next)
        if (taken++ < best) targets_.push_back(next->target);
      begin_[static_cast<std::size_t>(source) + 1] = targets_.size();
    }
  }

  /// The tokens for one sentence. Source tokens outside the vocabulary have no translations.
  SLUICE_LAZY TokenSet operator()(std::span<Token const> source) const {
    auto tokens = always_;
    for (auto const token : source)
      if (token >= 0 && static_cast<std::size_t>(token) + 1 < begin_.size()) {
        auto const i = static_cast<std::size_t>(token);
        tokens.insert(std::span(targets_).subspan(begin_[i], begin_[i + 1] - begin_[i]));
      }
    return tokens;
  }
  std::int32_t vocabulary_size() const { return target_size_; }

 private:
  std::int32_t target_size_;
  TokenSet always_;
  std::vector<std::size_t> begin_;  // [source_size + 1], into targets_
  std::vector<Token> targets_;
};

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
  SLUICE_LAZY explicit ProbeProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                                       std::shared_ptr<PackedMatrix const> full = {})
      : OuterLayer(detail::SubsetProjection(weights, bias, std::move(full))) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  SLUICE_LAZY Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                               std::span<Group const> groups) {
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
  SLUICE_LAZY bool probes_alone(Query const& query) const {
    auto const inside = [size = vocabulary_size()](Token token) { return token >= 0 && token < size; };
    return std::all_of(query.probes.begin(), query.probes.end(), inside) && !query.normalise && query.best == 0 &&
           !query.selects() && query.edits.empty() && query.only == nullptr && query.shortlist == nullptr &&
           query.temperature == 1.0f && !query.entropy;
  }

  /// Consecutive lines share one product over the union of their probes as long as that is cheaper than separate
  /// products. If they ask for so much that computing all logits is cheaper, all logits are computed.
  SLUICE_LAZY void answer(MatrixView<float const> hidden, std::span<Query const> queries) {
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
  SLUICE_LAZY std::size_t cheapest(std::span<Query const> queries) {
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
  SLUICE_LAZY static std::size_t cost(std::size_t tokens, std::size_t lines) {
    constexpr std::size_t gathering = 20;  // to gather and pack a weight
    auto const padded = static_cast<std::size_t>(detail::packed::padded(static_cast<std::ptrdiff_t>(tokens)));
    return padded * (gathering + lines);
  }
  /// Gives a token a place in tokens_, unless it already has one.
  SLUICE_LAZY void insert(Token token) {
    if (place_of_.empty()) place_of_.resize(static_cast<std::size_t>(vocabulary_size()));
    auto& place = place_of_[static_cast<std::size_t>(token)];
    if (place < tokens_.size() && tokens_[place] == token) return;
    place = static_cast<std::uint32_t>(tokens_.size());
    tokens_.push_back(token);
  }

  SLUICE_LAZY void answer_together(MatrixView<float const> hidden, std::span<Query const> queries) {
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

/// DenseProjection for Request::shortlist (lexical shortlists as in Marian: tokens aligned with the source's words, and
/// the most frequent tokens; see LexicalShortlist). A line of a sentence with s allowed tokens costs s d products and
/// reads only their weights. Tokens are equal to DenseProjection's, and log-probabilities equal up to rounding (another
/// order of summation); without a shortlist they are the same.
class ShortlistProjection : public detail::OuterLayer<ClusteredProjection> {
 public:
  /// \param weights     [V, d]; referred to, must outlive this and its copies
  /// \param bias        [V] or empty; referred to
  /// \param full_above  a larger share of the vocabulary is projected in full
  /// \param full        the same weights, packed (DenseProjection::weights), if available
  /// \throws std::invalid_argument  if the arguments do not fit
  SLUICE_LAZY explicit ShortlistProjection(MatrixView<float const> weights, std::span<float const> bias = {},
                                           double full_above = 0.5, std::shared_ptr<PackedMatrix const> full = {})
      : OuterLayer(ClusteredProjection(weights, bias, std::vector<Clusters>{}, {.full_above = checked(full_above)},
                                       std::move(full))) {}

  /// \param hidden  one vector per query, [queries.size(), d]
  SLUICE_LAZY Expansion expand(Hidden<float> const& hidden, std::span<Query const> queries,
                               std::span<Group const> groups) {
    return projection_.expand(hidden, queries, groups);
  }
  /// A union is a sentence in a step; those with no shortlist, or with a large one, count as full.
  ClusteredStatistics const& statistics() const { return projection_.statistics(); }

 private:
  SLUICE_LAZY static double checked(double full_above) {
    require(full_above >= 0 && full_above <= 1, "ShortlistProjection: full_above", full_above, "must be in [0, 1]");
    return full_above;
  }
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
