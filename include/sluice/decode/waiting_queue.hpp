// SPDX-License-Identifier: Apache-2.0
/// \file
/// The requests that are not yet admitted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// First in, first out; the source lengths lie in one span, for schedules that look ahead.
template <class Request>
class WaitingQueue {
 public:
  struct Entry {
    std::uint64_t id;
    Request request;
  };

  void push(std::uint64_t id, Request request, std::int32_t source_length) {
    entries_.push_back({id, std::move(request)});
    lengths_.push_back(source_length);
  }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::span<std::int32_t const> lengths() const { return std::span(lengths_).subspan(gone_); }
  Entry& operator[](std::size_t i) { return entries_[i]; }

  void pop(std::size_t count) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
    gone_ += count;
    if (gone_ * 2 <= lengths_.size()) return;  // moved down now and then: constant time a request
    lengths_.erase(lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(gone_));
    gone_ = 0;
  }

  /// Takes a request out; false if it is not there.
  bool remove(std::uint64_t id) {
    auto const entry = std::ranges::find(entries_, id, &Entry::id);
    if (entry == entries_.end()) return false;
    lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(gone_) + (entry - entries_.begin()));
    entries_.erase(entry);
    return true;
  }

 private:
  std::deque<Entry> entries_;
  std::vector<std::int32_t> lengths_;  // those before gone_ have left
  std::size_t gone_ = 0;
};

}  // namespace sluice::inline v0::detail
