// SPDX-License-Identifier: Apache-2.0
/// \file
/// The best tokens after many edits, without copying the line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/best_scores.hpp>
#include <sluice/output/detail/line/line_norm.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/simd_count.hpp>
#include <sluice/output/simd/aligned_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Answers queries that ask only for the best tokens and probes, with many edits after the softmax that are sorted by
/// token but for a few at the end, as a ContextGraph makes them. The softmax pass finds somewhat more of the best than
/// wanted. The best of those that are not edited and the best of the edited ones are merged; if that is not known to be
/// the list, bit for bit, that the edited line would have, nothing is found.
class LineEdited {
 public:
  template <class = void>
  static bool suffices(Query const& query) {
    if (query.only != nullptr || query.stage == Stage::before_softmax || query.noise != 0 || query.selects() ||
        query.edits.empty())
      return false;
    return query.edits.size() - sorted(query.edits) <= few;
  }
  static std::size_t wanted(Query const& query) {
    return query.best > 0 ? static_cast<std::size_t>(query.best) + spare : 0;
  }

  /// Whether the list could be found; then it is ranked(), with scores at their index in the line.
  /// \param found  the best wanted() scores, or all that are not -infinity
  template <class = void>
  bool choose(std::span<float const> line, std::span<Found const> found, LineNorm norm, Query const& query) {
    apply(line, norm, query.edits);
    ranked_.clear();
    if (query.best <= 0) return true;
    auto const best = static_cast<std::size_t>(query.best);
    for (auto const& one : found)
      if (place(one.place) == none) rank(one.place, one.score);
    scan_.begin(best, false);
    scan_.run(std::span(values_).first(tokens_.size()));
    auto const edited = scan_.best();
    // The scan ranks equal values by their place among the edits, which is not that of their tokens.
    if (edited.size() == best && tokens_.size() > best && ties(edited.back().score, best)) return false;
    for (auto const& one : edited) rank(tokens_[static_cast<std::size_t>(one.place)], one.score);
    std::sort(ranked_.begin(), ranked_.end());
    // No other score exceeds the last one found; it may equal it.
    auto const all = found.size() < wanted(query);
    if (!all && !(ranked_.size() >= best && ranked_[best - 1].value > found.back().score)) return false;
    ranked_.resize((std::min)(ranked_.size(), best));
    return true;
  }
  std::span<Ranked const> ranked() const { return ranked_; }
  /// After choose(): a token's edited score.
  template <class = void>
  float score(std::span<float const> line, Token token) const {
    if (token < 0) return LineScan::lowest;
    auto const at = place(token);
    return at == none ? line[static_cast<std::size_t>(token)] : values_[at];
  }

 private:
  static constexpr std::size_t spare = 16, few = 64, none = static_cast<std::size_t>(-1);

  template <class = void>
  static std::size_t sorted(std::span<Edit const> edits) {
    std::size_t n = 1;
    while (n < edits.size() && edits[n - 1].token < edits[n].token) ++n;
    return n;
  }
  /// The edited scores, each token once: those of the sorted edits first.
  template <class = void>
  void apply(std::span<float const> line, LineNorm norm, std::span<Edit const> edits) {
    sorted_ = sorted(edits);
    tokens_.clear();
    auto const room = (edits.size() + LineScan::chunk - 1) / LineScan::chunk * LineScan::chunk;
    if (values_.size() < room) values_.resize(room);
    for (std::size_t i = 0; i < edits.size(); ++i) {
      auto const token = edits[i].token;
      auto const inside = static_cast<std::size_t>(token) < line.size();  // a negative token wraps
      if (i < sorted_) {
        values_[i] = inside ? changed(line[static_cast<std::size_t>(token)], edits[i], norm) : LineScan::lowest;
        tokens_.push_back(token);
      } else if (auto const known = place(token); known != none) {
        values_[known] = changed(values_[known], edits[i], norm);
      } else if (inside) {
        values_[tokens_.size()] = changed(line[static_cast<std::size_t>(token)], edits[i], norm);
        tokens_.push_back(token);
      }
    }
  }
  /// Where an edited token is; none: it is not edited.
  template <class = void>
  std::size_t place(Token token) const {
    auto const end = tokens_.begin() + static_cast<std::ptrdiff_t>((std::min)(sorted_, tokens_.size()));
    auto const found = std::lower_bound(tokens_.begin(), end, token);
    if (found != end && *found == token) return static_cast<std::size_t>(found - tokens_.begin());
    auto const late = std::find(end, tokens_.end(), token);
    return late == tokens_.end() ? none : static_cast<std::size_t>(late - tokens_.begin());
  }
  template <class = void>
  void rank(Token place, float value) {
    if (value > LineScan::lowest) ranked_.push_back({place, value, static_cast<double>(value)});
  }
  template <class = void>
  bool ties(float least, std::size_t best) {
    auto const size = (tokens_.size() + simd::lanes - 1) / simd::lanes * simd::lanes;
    std::fill(values_.data() + tokens_.size(), values_.data() + size, LineScan::lowest);
    return simd::count_at_least(values_.data(), size, least) > best;
  }

  LineScan scan_;
  std::size_t sorted_ = 0;
  std::vector<Token> tokens_;  // [edit]
  AlignedVector<float> values_;
  std::vector<Ranked> ranked_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
