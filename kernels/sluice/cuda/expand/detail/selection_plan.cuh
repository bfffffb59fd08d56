// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which of a step's queries need further passes over their lines, and the memory for lists of unknown length.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_select.cuh>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// A list by probability may have any length up to V, unknown in advance. Each gets memory for the longest list of the
/// previous step (from `least` to `most`). If a list does not fit, the step is answered again with the memory that each
/// line then needs. Needs no device. Allocates nothing once it has seen its largest step.
class SelectionPlan {
 public:
  static constexpr std::int32_t least = 64, most = 4096;

  /// \param size  V
  void build(std::span<Query const> queries, std::ptrdiff_t size) {
    lines_.clear();
    draws_ = cuts_ = several_ = false, room_ = 0;
    any_ = std::ranges::any_of(queries, [](Query const& query) { return query.entropy || has_to(query); });
    for (auto const& query : queries) {
      auto& line = lines_.emplace_back();
      line.entropy = query.entropy ? 1 : 0;
      if (!lists(query)) continue;
      line.noise = query.noise;
      line.mass = query.mass, line.within = query.within, line.typical = query.typical;
      line.deviations = query.deviations, line.at_least = query.at_least;
      line.best = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(query.best, size));
      line.rounded = query.stage == Stage::after_softmax && (!query.edits.empty() || query.only != nullptr) ? 1 : 0;
      draws_ = draws_ || line.draws(), cuts_ = cuts_ || line.cuts(), several_ = several_ || line.best > 1;
      auto const guess = line.selects() ? (std::max)(line.best, guess_) : line.best;
      line.room = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(guess, size));
    }
    place();
  }

  bool any() const { return any_; }
  /// Whether a query's list needs a further pass over the line. Where others of the step do, long ones take theirs.
  bool lists(Query const& query) const { return has_to(query) || (any_ && query.best > most_listed); }
  /// Whether any line has noise, and whether any has a list by scores.
  bool draws() const { return draws_; }
  bool cuts() const { return cuts_; }
  /// Whether every list is one drawn token.
  bool single() const { return draws_ && !cuts_ && !several_; }
  std::span<LineSelect const> lines() const { return lines_; }
  /// For all lists together.
  std::size_t room() const { return room_; }

  /// Whether all lists fitted. If not, they now have enough memory.
  bool fits(SelectResult const* results) {
    auto fit = true;
    std::int32_t longest = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      fit = fit && results[i].count <= lines_[i].room;
      if (lines_[i].selects()) longest = (std::max)(longest, results[i].count);
    }
    if (longest > 0)
      guess_ = std::clamp(static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(longest))), least, most);
    if (fit) return true;
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].room = results[i].count;
    place();
    return false;
  }
  /// A line's list.
  std::span<Candidate const> list(std::size_t line, Candidate const* best, SelectResult const* results) const {
    return {best + lines_[line].first, static_cast<std::size_t>(results[line].count)};
  }

 private:
  static bool has_to(Query const& query) {
    return query.selects() || (query.noise != 0 && query.best > 0) || penalised(query);
  }
  /// Whether penalties apply to log-probabilities.
  static bool penalised(Query const& query) {
    return query.stage == Stage::after_softmax &&
           std::ranges::any_of(query.edits, [](Edit const& edit) { return edit.penalty != 1; });
  }
  void place() {
    room_ = 0;
    for (auto& line : lines_) {
      line.first = static_cast<std::int64_t>(room_);
      room_ += static_cast<std::size_t>(line.room);
    }
  }

  std::vector<LineSelect> lines_;
  std::int32_t guess_ = 256;
  std::size_t room_ = 0;
  bool draws_ = false, cuts_ = false, any_ = false, several_ = false;
};

}  // namespace sluice::inline v0::cuda::detail
