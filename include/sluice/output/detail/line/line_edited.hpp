// SPDX-License-Identifier: Apache-2.0
/// \file
/// The best tokens after many edits, without copying the line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/best_scores.hpp>
#include <sluice/output/detail/line/line_norm.hpp>
#include <sluice/output/detail/line/line_scan.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Answers queries that ask only for the best tokens and probes, with many edits after the softmax of which most are
/// SortedEdits. The softmax pass finds somewhat more of the best than wanted. Where these fall so far that no other token
/// can be lifted among the best, no other edit is looked at; else the best of the edited ones join them. Nothing is found
/// if that is not known to be the list, bit for bit, that the edited line would have.
class LineEdited {
 public:
  static bool suffices(Query const& query) {
    auto const sorted = static_cast<std::size_t>(query.sorted.count) + static_cast<std::size_t>(query.sorted.second);
    return sorted > 0 && query.edits.size() - sorted <= few && query.only == nullptr &&
           query.stage == Stage::after_softmax && query.process == nullptr && query.noise == 0 && !query.selects();
  }
  static std::size_t wanted(Query const& query) {
    return query.best > 0 ? static_cast<std::size_t>(query.best) + spare : 0;
  }

  /// Whether the list could be found; then it is ranked(), with scores at their index in the line.
  /// \param found  the best wanted() scores, or all that are not -infinity
  SLUICE_LAZY bool choose(std::span<float const> line, std::span<Found const> found, LineNorm norm,
                          Query const& query) {
    line_ = line, norm_ = norm;
    auto const first = static_cast<std::size_t>(query.sorted.count);
    auto const second = static_cast<std::size_t>(query.sorted.second);
    first_ = query.edits.first(first), second_ = query.edits.subspan(first, second);
    late_ = query.edits.subspan(first + second);
    ranked_.clear();
    if (query.best <= 0) return true;
    auto const best = static_cast<std::size_t>(query.best);
    for (auto const& one : found) rank(one.place);
    for (auto const& edit : late_)
      if (static_cast<std::size_t>(edit.token) < line.size() && !ranked(edit.token)) rank(edit.token);
    gather(second_, best);
    // No other score exceeds the last one found, before its edit; it may equal it.
    auto const sure = [&](float rise) {
      return found.size() < wanted(query) ||
             (ranked_.size() >= best && ranked_[best - 1].value > found.back().score + rise);
    };
    if (!sure((std::max)(query.sorted.most, 0.0f))) gather(first_, best);
    if (!sure(0)) return false;
    auto const possible = [](Ranked const& one) { return one.value > LineScan::lowest; };
    ranked_.erase(std::find_if_not(ranked_.begin(), ranked_.end(), possible), ranked_.end());
    ranked_.resize((std::min)(ranked_.size(), best));
    return true;
  }
  std::span<Ranked const> ranked() const { return ranked_; }

  /// After choose(): a token's edited score.
  SLUICE_LAZY float score(Token token) const {
    if (token < 0) return LineScan::lowest;
    auto x = line_[static_cast<std::size_t>(token)];
    if (auto const* const edit = find(first_, token); edit != nullptr) x = changed(x, *edit, norm_);
    else if (auto const* const other = find(second_, token); other != nullptr) x = changed(x, *other, norm_);
    return changed(x, token, late_, norm_);
  }

 private:
  static constexpr std::size_t spare = 16, few = 64;

  /// Adds the best of sorted edits. Their order is that of tokens, so the scan ranks equal scores as they should be.
  SLUICE_LAZY void gather(std::span<Edit const> edits, std::size_t best) {
    auto const room = (edits.size() + LineScan::chunk - 1) / LineScan::chunk * LineScan::chunk;
    if (values_.size() < room) values_.resize(room);
    auto* const values = values_.data();
    auto const* const scores = line_.data();
    // As changed(): what is added is too small to leave the range of floats.
    for (std::size_t i = 0; i < edits.size(); ++i) values[i] = scores[edits[i].token] + edits[i].add;
    for (auto const& edit : late_)
      if (auto const* const same = find(edits, edit.token); same != nullptr)
        values[same - edits.data()] = score(edit.token);
    scan_.begin(best, false);
    scan_.run({values, edits.size()});
    for (auto const& one : scan_.best())
      if (auto const token = edits[static_cast<std::size_t>(one.place)].token; !ranked(token)) rank(token);
    std::sort(ranked_.begin(), ranked_.end());
  }
  /// The sorted edit of a token, or null.
  SLUICE_LAZY static Edit const* find(std::span<Edit const> edits, Token token) {
    auto const found = std::lower_bound(edits.begin(), edits.end(), token,
                                        [](Edit const& edit, Token wanted) { return edit.token < wanted; });
    return found == edits.end() || found->token != token ? nullptr : &*found;
  }
  SLUICE_LAZY bool ranked(Token token) const {
    return std::any_of(ranked_.begin(), ranked_.end(), [&](Ranked const& one) { return one.place == token; });
  }
  SLUICE_LAZY void rank(Token token) {
    auto const value = score(token);
    ranked_.push_back({token, value, static_cast<double>(value)});
  }

  std::span<float const> line_{};
  LineNorm norm_;
  std::span<Edit const> first_{}, second_{}, late_{};
  LineScan scan_;
  AlignedVector<float> values_;  // [sorted edit]
  Buffer<Ranked> ranked_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
