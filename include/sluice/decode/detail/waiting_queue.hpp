// SPDX-License-Identifier: Apache-2.0
/// \file
/// The requests that are not yet admitted.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/error.hpp>
#include <sluice/decode/detail/encoding.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/sorting.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// First in, first out, except for sorting in windows; encodes ahead if asked. The source lengths are in one span, for schedules
/// that look ahead. A supply may submit more requests: it is asked for no more than a schedule or the encoder wants to see.
class WaitingQueue {
 public:
  struct Entry {
    std::uint64_t id = 0;
    std::unique_ptr<AnyRequest> request{};
    std::shared_ptr<EncodedBatch> encoded{};  // the batch it is encoded in, if it is encoded ahead
    std::size_t place = 0;                    // its index in that batch
  };
  /// The first `count` entries, and the encoded batch that has all of them, if any.
  struct Run {
    std::size_t count = 0;
    std::shared_ptr<EncodedBatch> encoded{};
  };

  SLUICE_LAZY WaitingQueue(AnyModelSide const& model, Intake const& intake) : model_(model), intake_(intake) {
    intake.check();
    if (intake.encode_ahead == 0) return;
    require(model.encodes, "encode_ahead", intake.encode_ahead, "the model has no encode(sources): must be 0");
    if (intake.encoder_thread) thread_.emplace(model);
  }

  SLUICE_LAZY void push(std::uint64_t id, std::unique_ptr<AnyRequest> request) {
    lengths_.push_back(request->source_length);
    entries_.push_back({id, std::move(request)});
    if (intake_.window == 0) ++arranged_;
    else if (size() - arranged_ >= intake_.window) arrange();
  }
  /// Puts a preempted request before all others.
  SLUICE_LAZY void push_front(std::uint64_t id, std::unique_ptr<AnyRequest> request) {
    if (gone_ == 0) lengths_.insert(lengths_.begin(), 0), entries_.insert(entries_.begin(), {}), gone_ = 1;
    lengths_[--gone_] = request->source_length;
    entries_[gone_] = {id, std::move(request)};
    ++arranged_;
    if (sent_ > 0) send(0, 1);
  }
  /// Where more requests come from if those in the queue do not suffice; may be null. Reset when it is used up.
  Supply* supply = nullptr;

  std::size_t size() const { return entries_.size() - gone_; }
  bool empty() const { return size() == 0; }
  Entry& operator[](std::size_t i) { return entries_[gone_ + i]; }

  bool threaded() const { return thread_.has_value(); }
  /// How many of the first entries have their final places.
  std::size_t arranged() const { return arranged_; }
  /// The source lengths of the arranged entries; if there are none, of the next window, unsorted.
  SLUICE_LAZY std::span<std::int32_t const> lengths() const {
    return std::span(lengths_).subspan(gone_, arranged_ > 0 ? arranged_ : (std::min)(intake_.window, size()));
  }
  /// Whether a request waits; asks the supply for one if the queue is empty.
  SLUICE_LAZY bool any() {
    if (empty()) draw(1);
    return !empty();
  }
  /// Arranges more than `count` entries: sorts one more window, full or not; false if there is none.
  SLUICE_LAZY bool look_further(std::size_t count) {
    auto const before = arranged_;
    draw(count + 1);
    if (arranged_ == before) arrange();
    return arranged_ > before;
  }

  /// How many of the first `count` can be started together. If they are not yet encoded, waits if `patient`, else returns 0.
  /// Calls `done(encoded)` once for each encoded batch.
  template <class F>
  Run ready(std::size_t count, bool patient, F&& done) {
    if (intake_.encode_ahead == 0) return {.count = count};
    if (sent_ == 0) {
      draw(intake_.group());
      send((std::min)(intake_.group(), arranged_));
    }
    auto const encoded = (*this)[0].encoded;
    if (thread_ && !patient && !thread_->done(*encoded)) return {};
    if (thread_) thread_->wait(*encoded);
    if (!std::exchange(encoded->counted, true)) done(std::as_const(*encoded));
    Run run{.count = 1, .encoded = encoded};
    while (run.count < (std::min)(count, sent_) && (*this)[run.count].encoded == encoded) ++run.count;
    return run;
  }

  /// Gives the encoder thread the sources that may be encoded ahead.
  SLUICE_LAZY void feed() {
    if (!thread_) return;
    auto const group = intake_.group();
    draw(intake_.encode_ahead);
    if (sent_ == 0 && arranged_ == 0) look_further(0);
    if (sent_ == 0 && arranged_ > 0 && arranged_ < group) send(arranged_);
    while (arranged_ - sent_ >= group && sent_ + group <= intake_.encode_ahead) send(group);
  }

  SLUICE_LAZY void pop() {
    (*this)[0] = {};
    drop_first();
  }

  /// Takes a request out; false if it is not there.
  SLUICE_LAZY bool remove(std::uint64_t id) {
    std::size_t i = 0;
    while (i < size() && (*this)[i].id != id) ++i;
    if (i == size()) return false;
    auto& entry = (*this)[i];
    if (auto const encoded = std::move(entry.encoded)) encoded->left.push_back(std::move(entry.request));
    if (i == 0) {
      if (arranged_ == 0) ++arranged_;  // drop_first() undoes it
      pop();
      return true;
    }
    entries_.erase(&entry);
    lengths_.erase(lengths_.begin() + static_cast<std::ptrdiff_t>(gone_ + i));
    arranged_ -= i < arranged_, sent_ -= i < sent_;
    return true;
  }

 private:
  /// Asks the supply to submit until `count` entries are arranged or it is used up.
  SLUICE_LAZY void draw(std::size_t count) {
    while (supply != nullptr && arranged_ < count)
      if (!supply->submit_next()) supply = nullptr;
  }

  SLUICE_LAZY void drop_first() {
    ++gone_, --arranged_, sent_ -= sent_ > 0;
    if (gone_ * 2 <= lengths_.size()) return;  // moved down rarely: amortised constant time a request
    lengths_.erase(lengths_.begin(), lengths_.begin() + static_cast<std::ptrdiff_t>(gone_));
    entries_.erase(entries_.begin(), entries_.begin() + gone_);
    gone_ = 0;
  }

  /// Sorts the next window. Equal lengths stay in their order.
  SLUICE_LAZY void arrange() {
    auto const count = (std::min)(intake_.window, size() - arranged_);
    longest_first(std::span(lengths_).subspan(gone_ + arranged_, count), order_);
    for (auto const i : order_) moving_.push_back(std::move((*this)[arranged_ + i]));
    for (std::size_t i = 0; i < count; ++i) {
      lengths_[gone_ + arranged_ + i] = moving_[i].request->source_length;
      (*this)[arranged_ + i] = std::move(moving_[i]);
    }
    moving_.clear();
    arranged_ += count;
  }

  /// Sends the next `count` entries to be encoded. They must be arranged.
  SLUICE_LAZY void send(std::size_t count) { send(sent_, count); }
  SLUICE_LAZY void send(std::size_t first, std::size_t count) {
    auto const encoded = std::make_shared<EncodedBatch>();
    for (auto i = first; i < first + count; ++i) {
      auto& entry = (*this)[i];
      entry.encoded = encoded, entry.place = encoded->sources.size();
      encoded->sources.push_back(entry.request->source());
    }
    encoded->places.resize(count);
    sent_ += count;
    if (thread_) thread_->post(encoded);
    else encoded->run(model_), encoded->done = true;
  }

  AnyModelSide const& model_;
  Intake intake_;
  Buffer<Entry> entries_;              // those before gone_ are no longer in the queue
  std::vector<std::int32_t> lengths_;  // of the entries
  Buffer<std::size_t> order_;          // scratch of arrange(), like moving_
  Buffer<Entry> moving_;
  std::size_t gone_ = 0;
  std::size_t arranged_ = 0;             // see arranged()
  std::size_t sent_ = 0;                 // how many of the first have been sent to be encoded
  std::optional<EncoderThread> thread_;  // last: ends before the members that it reads
};

}  // namespace sluice::inline v0::detail
