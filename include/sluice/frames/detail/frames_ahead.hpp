// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of frames that were read and have not been taken yet.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A queue of lines, each a list and one probe. Refilled when it is empty; nothing is allocated once warm.
class FramesAhead {
 public:
  void clear() { lines_.clear(), lists_.clear(), taken_ = 0; }
  bool empty() const { return taken_ == lines_.size(); }
  SLUICE_LAZY void keep(Expansion const& lines) {
    if (lines.size() == 0) return;
    clear();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto const line = lines[i];
      lines_.push_back({lists_.size(), line.best.size(), line.probes[0]});
      lists_.insert(lists_.end(), line.best.begin(), line.best.end());
    }
  }
  /// Valid until keep().
  SLUICE_LAZY Line next() {
    auto const& one = lines_[taken_++];
    Line line;
    line.best = std::span<Candidate const>(lists_).subspan(one.first, one.count);
    line.probes = {&one.probe, 1};
    return line;
  }

 private:
  struct One {
    std::size_t first, count;
    float probe;
  };
  std::vector<One> lines_;
  std::vector<Candidate> lists_;
  std::size_t taken_ = 0;
};

}  // namespace sluice::inline v0::detail
