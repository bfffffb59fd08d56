// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory of an Expansion, line by line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Lists of candidates and probes for the lines of a step. Allocates nothing once it has seen its longest lists.
class LineLists {
 public:
  SLUICE_LAZY void clear() { entries_.clear(), best_.clear(), probes_.clear(); }

  /// Begins a new line; what follows belongs to it.
  SLUICE_LAZY Expansion::Entry& open() {
    auto& entry = entries_.emplace_back();
    entry.best = best_.size(), entry.probes = probes_.size();
    return entry;
  }
  SLUICE_LAZY void list(Token token, float log_prob) {
    best_.push_back({token, log_prob});
    ++entries_.back().best_count;
  }
  SLUICE_LAZY void probe(float log_prob) {
    probes_.push_back(log_prob);
    ++entries_.back().probe_count;
  }
  /// The candidates of the last line.
  SLUICE_LAZY std::span<Candidate> best() { return std::span(best_).subspan(entries_.back().best); }
  /// Keeps only the first `count` of the last line's candidates.
  SLUICE_LAZY void shorten(std::size_t count) {
    best_.resize(entries_.back().best + count);
    entries_.back().best_count = count;
  }

  /// Appends copies of another object's lines.
  SLUICE_LAZY void append(LineLists const& other) {
    for (auto entry : other.entries_) {
      entry.best += best_.size(), entry.probes += probes_.size();
      entries_.push_back(entry);
    }
    best_.append(other.best_);
    probes_.insert(probes_.end(), other.probes_.begin(), other.probes_.end());
  }

  /// All lines, cut as Group::keep allows. Valid until clear().
  SLUICE_LAZY Expansion answer(std::span<Query const> queries, std::span<Group const> groups) {
    std::size_t first = 0;
    for (auto const& group : groups) {
      auto const lines = static_cast<std::size_t>(group.lines);
      if (group.keep > 0) merge(queries.subspan(first, lines), first, static_cast<std::size_t>(group.keep));
      first += lines;
    }
    return {entries_, best_, probes_};
  }

 private:
  /// Cuts the lists of one group where candidates are strictly worse than the group's keep-th best, as a merge on a
  /// device does.
  SLUICE_LAZY void merge(std::span<Query const> queries, std::size_t first, std::size_t keep) {
    totals_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (queries[i].noise != 0) return;  // the lists are in another order
      auto const& e = entries_[first + i];
      for (auto j = e.best; j < e.best + e.best_count; ++j)
        totals_.push_back(queries[i].base + static_cast<double>(best_[j].log_prob));
    }
    if (totals_.size() <= keep) return;
    auto* const last = totals_.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
    std::nth_element(totals_.begin(), last, totals_.end(), std::greater{});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto& e = entries_[first + i];
      while (e.best_count > 0 &&
             queries[i].base + static_cast<double>(best_[e.best + e.best_count - 1].log_prob) < *last)
        --e.best_count;
    }
  }

  detail::Buffer<Expansion::Entry> entries_;
  detail::Buffer<Candidate> best_;
  std::vector<float> probes_;
  detail::Buffer<double> totals_;
};

}  // namespace sluice::inline v0
