// SPDX-License-Identifier: Apache-2.0
/// \file
/// The merge on the host, for engines without a merge on the device.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::bench {

/// The best candidates of each sentence through a heap of its sorted lists: O(keep log lines) per sentence.
class HostMerge {
 public:
  /// \param best     [rows, k]
  /// \param results  [rows]
  /// \param kept     as MergeLaunch::kept
  void operator()(Candidate const* best, cuda::LineResult const* results, std::int32_t k,
                  std::span<cuda::MergeGroup const> groups, std::span<cuda::MergeLine const> lines, cuda::Kept* kept) {
    for (auto const& group : groups) {
      heads_.clear();
      for (std::int32_t i = 0; i < group.lines; ++i) {
        auto const& line = lines[static_cast<std::size_t>(group.first + i)];
        Head head{0, i, 0, results[line.row].count, line.base, best + std::ptrdiff_t{line.row} * k};
        if (head.next()) heads_.push_back(head);
      }
      std::make_heap(heads_.begin(), heads_.end());
      auto* to = kept + group.kept;
      for (std::int32_t n = 0; n < group.keep && !heads_.empty(); ++n) {
        std::pop_heap(heads_.begin(), heads_.end());
        auto& head = heads_.back();
        auto const& candidate = head.list[head.at - 1];
        *to++ = {head.parent, candidate.token, candidate.log_prob};
        if (head.next()) std::push_heap(heads_.begin(), heads_.end());
        else heads_.pop_back();
      }
    }
  }

 private:
  /// The first entry of a list that has not been taken.
  struct Head {
    double total;
    std::int32_t parent, at, count;
    double base;
    Candidate const* list;

    bool next() {
      if (at == count) return false;
      total = base + static_cast<double>(list[at++].log_prob);
      return true;
    }
    friend bool operator<(Head const& a, Head const& b) {
      return a.total != b.total ? a.total < b.total : a.parent > b.parent;
    }
  };
  std::vector<Head> heads_;
};

}  // namespace sluice::bench
