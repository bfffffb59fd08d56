// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which groups of a step the device may merge, and how to read the result.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/cuda/expand/detail/add_line.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/output/line_lists.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace sluice::inline v0::cuda::detail {

/// Converts the groups of a step for the merge of beams, and its result to lists for the search. Needs no device.
/// Allocates nothing once it has seen its largest step.
class MergePlan {
 public:
  /// \param k  the longest list, in [1, most_listed]
  /// \param most_lines, most_kept  limits of the merge; larger groups are not merged
  /// \throws std::invalid_argument  for groups with more lines than there are
  void build(std::span<Query const> queries, std::span<Group const> groups, std::int32_t k, std::int32_t most_lines,
             std::int32_t most_kept) {
    groups_.clear(), lines_.clear();
    k_ = k, widest_ = longest_ = 0;
    std::int32_t kept = 0;
    for (auto const& group : groups) {
      auto const first = static_cast<std::int32_t>(lines_.size());
      require(group.lines >= 0 && static_cast<std::size_t>(group.lines) <= queries.size() - lines_.size(),
              "group.lines", group.lines, "must add up to the number of queries");
      std::int64_t candidates = 0;
      for (auto i = first; i < first + group.lines; ++i) {
        lines_.push_back({queries[static_cast<std::size_t>(i)].base, i});
        candidates += queries[static_cast<std::size_t>(i)].best;
      }
      auto const merges =
          group.keep > 0 && group.keep < candidates && group.lines <= most_lines && group.keep <= most_kept;
      groups_.push_back({first, group.lines, merges ? group.keep : 0, kept});
      kept += merges ? group.keep : group.lines * k;
      if (!merges) continue;
      widest_ = (std::max)(widest_, group.lines), longest_ = (std::max)(longest_, group.keep);
      std::sort(lines_.begin() + first, lines_.end(), [&](MergeLine const& a, MergeLine const& b) {
        auto const order = [&](MergeLine const& line) {
          return std::tuple(queries[static_cast<std::size_t>(line.row)].rank, line.row);
        };
        return order(a) < order(b);
      });
    }
    kept_ = kept;
    require(longest_ == 0 || lines_.size() == queries.size(), "groups", lines_.size(),
            "must hold as many lines as there are queries");
  }

  /// Whether there is anything to merge, and merging saves copying. If not, lists may be copied as they are.
  bool merges() const {
    return longest_ > 0 && kept() * sizeof(Kept) < lines_.size() * static_cast<std::size_t>(k_) * sizeof(Candidate);
  }
  std::span<MergeGroup const> groups() const { return groups_; }
  std::span<MergeLine const> lines() const { return lines_; }
  /// Writes the group of every line to `of`.
  void number(std::int32_t* of) const {
    std::int32_t number = 0;
    for (auto const& group : groups_) std::fill_n(of + group.first, group.lines, number++);
  }
  std::int32_t widest() const { return widest_; }
  std::int32_t longest() const { return longest_; }
  /// The most Kept that the merge writes.
  std::size_t kept() const { return static_cast<std::size_t>(kept_); }

  /// Adds all lines to the lists. Pointers are host pointers.
  void read(std::span<Query const> queries, LineResult const* results, float const* probes, Kept const* kept,
            LineLists& lists) {
    for (auto const& group : groups_) {
      sort_by_line(group, results, kept + group.kept);
      for (auto row = group.first; row < group.first + group.lines; ++row) {
        auto const line = static_cast<std::size_t>(row - group.first);
        auto const begin = line > 0 ? ends_[line - 1] : 0;
        add_line(lists, queries[static_cast<std::size_t>(row)], results[row],
                 std::span(sorted_).subspan(begin, ends_[line] - begin), probes);
      }
    }
  }

 private:
  /// Sorts a group's candidates by line into sorted_; ends_[line] is where the line's end.
  void sort_by_line(MergeGroup const& group, LineResult const* results, Kept const* kept) {
    auto const line_of = [&](std::int32_t parent) {
      return static_cast<std::size_t>(lines_[static_cast<std::size_t>(group.first + parent)].row - group.first);
    };
    auto const lines = static_cast<std::size_t>(group.lines);
    std::size_t found = 0;
    for (std::size_t line = 0; line < lines; ++line)
      found += static_cast<std::size_t>(results[group.first + static_cast<std::int32_t>(line)].count);
    sorted_.resize((std::max)(sorted_.size(), found));
    ends_.assign(lines + 1, 0);
    if (group.keep == 0) {  // already in order, with gaps
      std::size_t at = 0;
      for (std::size_t line = 0; line < lines; ++line, kept += k_) {
        auto const count = results[group.first + static_cast<std::int32_t>(line)].count;
        for (std::int32_t i = 0; i < count; ++i) sorted_[at++] = {kept[i].token, kept[i].log_prob};
        ends_[line] = at;
      }
      return;
    }
    // Within a line, kept candidates are in order. ends_[line + 1] counts, then ends_[line] runs from begin to end.
    std::span const best(kept, (std::min)(found, static_cast<std::size_t>(group.keep)));
    for (auto const& x : best) ++ends_[line_of(x.parent) + 1];
    for (std::size_t line = 0; line < lines; ++line) ends_[line + 1] += ends_[line];
    for (auto const& x : best) sorted_[ends_[line_of(x.parent)]++] = {x.token, x.log_prob};
  }

  std::vector<MergeGroup> groups_;
  std::vector<MergeLine> lines_;
  std::vector<Candidate> sorted_;
  std::vector<std::size_t> ends_;
  std::int32_t k_ = 1, widest_ = 0, longest_ = 0, kept_ = 0;
};

}  // namespace sluice::inline v0::cuda::detail
