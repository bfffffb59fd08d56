// SPDX-License-Identifier: Apache-2.0
/// \file
/// The best tokens of a set, without reading all of a line's log-probabilities.
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
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Answers queries that ask only for the best tokens and probes, with an `only` that acts after the softmax, as
/// searches under a grammar do. The softmax pass over the line finds somewhat more of the best than wanted. If enough
/// of these are in the set, the other tokens need not be read; else only the set's tokens are read, if they are few.
/// The list is equal, bit for bit, to that of a line in which all other scores are -infinity.
class LineAllowed {
 public:
  SLUICE_LAZY static bool suffices(Query const& query) {
    constexpr std::size_t few = 64;
    return query.only != nullptr && query.stage == Stage::after_softmax && query.process == nullptr &&
           query.noise == 0 && !query.selects() && query.edits.size() <= few;
  }
  /// How many of the best scores the pass is to find.
  static std::size_t wanted(Query const& query) {
    return query.best > 0 ? static_cast<std::size_t>(query.best) + query.edits.size() + spare : 0;
  }

  /// Whether the list could be found; then it is ranked(), with scores at their index in the line.
  /// \param found  the best wanted() scores, or all that are not -infinity
  SLUICE_LAZY bool choose(std::span<float const> line, std::span<Found const> found, LineNorm norm,
                          Query const& query) {
    ranked_.clear();
    if (query.best <= 0) return true;
    auto const best = static_cast<std::size_t>(query.best);
    for (auto const& one : found)
      if (query.only->contains(one.place) && !names(query.edits, one.place)) rank(one.place, one.score);
    add_edited(line, norm, query);
    // No other score exceeds the last one found; it may equal it.
    auto const all = found.size() < wanted(query);
    auto const sure = [&] { return ranked_.size() >= best && ranked_[best - 1].value > found.back().score; };
    if (!all && !sure() && !look_alone(line, norm, query)) return false;
    ranked_.resize((std::min)(ranked_.size(), best));
    return true;
  }
  std::span<Ranked const> ranked() const { return ranked_; }

 private:
  static constexpr std::size_t spare = 16;

  SLUICE_LAZY static bool names(std::span<Edit const> edits, Token token) {
    for (auto const& edit : edits)
      if (edit.token == token) return true;
    return false;
  }

  SLUICE_LAZY void rank(Token place, float value) {
    if (value > LineScan::lowest) ranked_.push_back({place, value, static_cast<double>(value)});
  }
  /// Adds the edited tokens and sorts.
  SLUICE_LAZY void add_edited(std::span<float const> line, LineNorm norm, Query const& query) {
    for (std::size_t i = 0; i < query.edits.size(); ++i) {
      auto const token = query.edits[i].token;
      auto const place = static_cast<std::size_t>(token);
      if (place < line.size() && query.only->contains(token) && !names(query.edits.first(i), token))
        rank(token, changed(line[place], token, query.edits, norm));
    }
    std::sort(ranked_.begin(), ranked_.end());
  }

  /// Reads all tokens of the set, unless there are too many.
  SLUICE_LAZY bool look_alone(std::span<float const> line, LineNorm norm, Query const& query) {
    constexpr std::size_t bits = 64;
    auto const words =
        query.only->words().first((std::min)(query.only->words().size(), (line.size() + bits - 1) / bits));
    std::size_t count = 0;
    for (auto const word : words) count += static_cast<std::size_t>(std::popcount(word));
    if (count > line.size() / 8) return false;
    auto const padded = (count + LineScan::chunk - 1) / LineScan::chunk * LineScan::chunk;
    if (values_.size() < padded) values_.resize(padded), places_.resize(padded);
    std::size_t size = 0;
    for (std::size_t w = 0; w < words.size(); ++w)
      for (auto left = words[w]; left != 0; left &= left - 1) {
        auto const place = w * bits + static_cast<std::size_t>(std::countr_zero(left));
        if (place >= line.size()) break;
        places_[size] = static_cast<Token>(place), values_[size++] = line[place];
      }
    for (auto const& edit : query.edits) {  // added separately
      auto const at =
          std::lower_bound(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(size), edit.token);
      if (at != places_.begin() + static_cast<std::ptrdiff_t>(size) && *at == edit.token)
        values_[static_cast<std::size_t>(at - places_.begin())] = LineScan::lowest;
    }
    scan_.begin(static_cast<std::size_t>(query.best), false);
    scan_.run(std::span(values_).first(size));
    ranked_.clear();
    for (auto const& one : scan_.best()) rank(places_[static_cast<std::size_t>(one.place)], one.score);
    add_edited(line, norm, query);
    return true;
  }

  LineScan scan_;
  Buffer<Ranked> ranked_;
  AlignedVector<float> values_;
  std::vector<Token> places_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
