// SPDX-License-Identifier: Apache-2.0
/// \file
/// The requests that are not yet admitted.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/decode/loop/encoding.hpp>
#include <sluice/decode/loop/orders.hpp>
#include <sluice/schedule/intake.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// What a model encodes ahead with: nothing, unless it can.
template <class M>
struct EncodingOf {
  struct Group {};
  struct Thread {
    explicit Thread(M const&) {}
  };
};
template <EncodingModel M>
struct EncodingOf<M> {
  using Group = EncodedGroup<M>;
  using Thread = EncoderThread<M>;
};

/// First in, first out, but for sorting in windows; encodes ahead where asked. The source lengths lie in one span, for
/// schedules that look ahead.
template <Model M, class Request>
class WaitingQueue {
 public:
  using Group = typename EncodingOf<M>::Group;
  struct Entry {
    std::uint64_t id;
    Request request;
    std::int32_t source_length;
    std::shared_ptr<Group> group{};  // that encodes it, if any
    std::size_t place = 0;           // in the group
  };
  /// The first `count` entries, with the group that has encoded all of them, if any.
  struct Run {
    std::size_t count = 0;
    std::shared_ptr<Group> group{};
  };

  WaitingQueue(M& model, Intake const& intake) : model_(model), intake_(intake) {
    intake.check();
    if (intake.encode_ahead == 0) return;
    require(EncodingModel<M>, "encode_ahead", intake.encode_ahead, "the model has no encode(sources): must be 0");
    if constexpr (EncodingModel<M>)
      if (intake.encoder_thread) thread_.emplace(model);
  }

  void push(std::uint64_t id, Request request, std::int32_t source_length) {
    entries_.push_back(std::make_unique<Entry>(Entry{id, std::move(request), source_length}));
    lengths_.push_back(source_length);
    if (intake_.window == 0) ++arranged_;
    else if (size() - arranged_ >= intake_.window) arrange();
  }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Entry& operator[](std::size_t i) { return *entries_[i]; }

  bool threaded() const { return thread_.has_value(); }
  std::size_t arranged() const { return arranged_; }
  /// Of those whose places are settled; if there are none, of the window that would be next, as they came.
  std::span<std::int32_t const> lengths() const {
    return std::span(lengths_).subspan(gone_, arranged_ > 0 ? arranged_ : std::min(intake_.window, size()));
  }
  /// Settles the places of one more window, full or not; false if there is none.
  bool look_further() {
    auto const before = arranged_;
    arrange();
    return arranged_ > before;
  }

  /// How many of the first `count` can be started together; waits until they are encoded. `done(group)` is called for
  /// every group when it is.
  template <class F>
  Run ready(std::size_t count, F&& done) {
    if constexpr (EncodingModel<M>)
      if (intake_.encode_ahead > 0) {
        if (sent_ == 0) send(std::min(intake_.group(), arranged_));
        auto const group = entries_[0]->group;
        if (thread_) thread_->wait(*group);
        if (!std::exchange(group->counted, true)) done(std::as_const(*group));
        Run run{.count = 1, .group = group};
        while (run.count < std::min(count, sent_) && entries_[run.count]->group == group) ++run.count;
        return run;
      }
    return {.count = count};
  }

  /// Gives the encoder thread what may be encoded ahead.
  void feed() {
    if constexpr (EncodingModel<M>) {
      if (!thread_) return;
      auto const group = intake_.group();
      if (sent_ == 0 && arranged_ == 0) look_further();
      if (sent_ == 0 && arranged_ > 0 && arranged_ < group) send(arranged_);
      while (arranged_ - sent_ >= group && sent_ + group <= intake_.encode_ahead) send(group);
    }
  }

  void pop(std::size_t count) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(count));
    gone_ += count, arranged_ -= count, sent_ -= std::min(sent_, count);
    if (gone_ * 2 <= lengths_.size()) return;  // moved down now and then: constant time a request
    lengths_.erase(lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(gone_));
    gone_ = 0;
  }

  /// Takes a request out; false if it is not there.
  bool remove(std::uint64_t id) {
    auto const entry = std::ranges::find(entries_, id, [](auto const& one) { return one->id; });
    if (entry == entries_.end()) return false;
    auto const i = static_cast<std::size_t>(entry - entries_.begin());
    if constexpr (EncodingModel<M>)
      if (auto const group = std::move((*entry)->group)) group->left.push_back(std::move(*entry));
    if (i == 0) {
      if (arranged_ == 0) ++arranged_;  // which pop() takes back
      pop(1);
      return true;
    }
    lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(gone_ + i));
    entries_.erase(entry);
    arranged_ -= i < arranged_, sent_ -= i < sent_;
    return true;
  }

 private:
  /// Sorts the next window. Equal lengths stay in the order in which they came.
  void arrange() {
    auto const count = std::min(intake_.window, size() - arranged_);
    longest_first(std::span(lengths_).subspan(gone_ + arranged_, count), order_);
    for (auto const i : order_) moving_.push_back(std::move(entries_[arranged_ + i]));
    for (std::size_t i = 0; i < count; ++i) {
      lengths_[gone_ + arranged_ + i] = moving_[i]->source_length;
      entries_[arranged_ + i] = std::move(moving_[i]);
    }
    moving_.clear();
    arranged_ += count;
  }

  /// Has the next `count` encoded, whose places are settled.
  void send(std::size_t count) requires EncodingModel<M> {
    auto const group = std::make_shared<Group>();
    for (auto i = sent_; i < sent_ + count; ++i) {
      entries_[i]->group = group, entries_[i]->place = group->sources.size();
      group->sources.push_back(&entries_[i]->request.source);
    }
    group->places.resize(count);
    sent_ += count;
    if (thread_) thread_->post(group);
    else group->run(model_), group->done = true;
  }

  M const& model_;
  Intake intake_;
  std::deque<std::unique_ptr<Entry>> entries_;  // at addresses of their own: the encoder thread reads their sources
  std::vector<std::int32_t> lengths_;           // those before gone_ have left
  std::vector<std::size_t> order_;              // of arrange(), and the next
  std::vector<std::unique_ptr<Entry>> moving_;
  std::size_t gone_ = 0;
  std::size_t arranged_ = 0;                              // so many of the first have their final places
  std::size_t sent_ = 0;                                  // so many of the first are encoded, or will be
  std::optional<typename EncodingOf<M>::Thread> thread_;  // last: ends before what it reads
};

}  // namespace sluice::inline v0::detail
