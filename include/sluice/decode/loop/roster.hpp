// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sentences that are alive.
#pragma once

#include <sluice/core/request.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A sentence that is being decoded.
template <class Source, class S>
struct Running {
  std::uint64_t id = 0;
  Request<Source, S> request{};
  typename S::State state{};
  S const* search = nullptr;
  Slot base = 0;
  std::int32_t slots = 0, source_length = 0, age = 0, idle = 0;
  std::int64_t turn = 0;                       // see Live
  std::size_t first = 0, lines = 0, rows = 0;  // its part of the step
  bool ended = false;
};

/// Sentences, oldest first, each at an address of its own. The memory of those that have ended is used again.
template <class T>
class Roster {
 public:
  /// Room for a sentence, to be given to add().
  std::unique_ptr<T> take() {
    if (spare_.empty()) return std::make_unique<T>();
    auto one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }
  void add(std::unique_ptr<T> one) { alive_.push_back(std::move(one)); }

  /// Takes out those that have ended.
  void sweep() {
    std::size_t kept = 0;
    for (auto& one : alive_) {
      if (one->ended) {
        one->request = {};  // what the caller gave is the caller's again
        spare_.push_back(std::move(one));
      } else std::swap(alive_[kept++], one);
    }
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(kept), alive_.end());
  }

  std::size_t size() const { return alive_.size(); }
  bool empty() const { return alive_.empty(); }
  T& operator[](std::size_t i) { return *alive_[i]; }
  auto begin() const { return alive_.begin(); }
  auto end() const { return alive_.end(); }

 private:
  std::vector<std::unique_ptr<T>> alive_, spare_;
};

}  // namespace sluice::inline v0::detail
