// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table with an encoder that may run in another thread. It checks how its sources are used.
#pragma once

#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// A seed on the heap: the address sanitizer detects reads after its end, and reads after a move are detected by null
/// dereference. Counts its instances.
class HeapSource {
 public:
  HeapSource() = default;
  explicit HeapSource(std::uint64_t seed, std::int32_t length = -1) : data_(std::make_unique<Data>(seed, length)) {}
  HeapSource(HeapSource const& other) : data_(other.data_ ? std::make_unique<Data>(*other.data_) : nullptr) {}
  HeapSource(HeapSource&&) noexcept = default;
  HeapSource& operator=(HeapSource other) noexcept {
    data_.swap(other.data_);
    return *this;
  }
  ~HeapSource() = default;

  bool valid() const { return data_ != nullptr && data_->witness == ~data_->seed; }
  std::uint64_t seed() const { return data_->seed; }
  std::int32_t length() const { return data_ == nullptr ? -1 : data_->length; }

  static std::int64_t alive() { return count().load(); }
  static std::int64_t most() { return highest().load(); }

 private:
  struct Data {
    std::uint64_t seed, witness;
    std::int32_t length;
    Data(std::uint64_t s, std::int32_t n) : seed(s), witness(~s), length(n) { born(); }
    Data(Data const& other) : seed(other.seed), witness(other.witness), length(other.length) { born(); }
    Data& operator=(Data const&) = delete;
    ~Data() {
      witness = seed;
      --count();
    }
    static void born() {
      auto const now = ++count();
      for (auto before = highest().load(); before < now && !highest().compare_exchange_weak(before, now);) {
      }
    }
  };
  static std::atomic<std::int64_t>& count() {
    static std::atomic<std::int64_t> n{0};
    return n;
  }
  static std::atomic<std::int64_t>& highest() {
    static std::atomic<std::int64_t> n{0};
    return n;
  }
  std::unique_ptr<Data> data_;
};

/// Counts of the calls of an EncodingTable, from any thread.
struct EncodingCounts {
  std::atomic<std::size_t> encodes{0};        ///< calls of encode
  std::atomic<std::size_t> encoded{0};        ///< sentences in those that did not throw
  std::atomic<std::size_t> starts{0};         ///< calls of start, of either kind
  std::atomic<std::size_t> started{0};        ///< sentences in those that did not throw
  std::atomic<std::size_t> from_encoded{0};   ///< of these, the ones encoded before
  std::atomic<std::size_t> steps{0};          ///< calls of step
  std::atomic<std::int64_t> waiting{0};       ///< encoded, and not yet started, abandoned or forgotten
  std::atomic<std::int64_t> most_waiting{0};  ///< at once
  std::atomic<std::int64_t> batches{0};       ///< non-empty Encoded objects
  std::atomic<std::int64_t> most_batches{0};  ///< at once
  std::atomic<std::int64_t> encoding{0};      ///< calls that are running
  std::atomic<std::size_t> broken{0};         ///< broken promises of the caller

  static void raise(std::atomic<std::int64_t>& most, std::int64_t now) {
    for (auto before = most.load(); before < now && !most.compare_exchange_weak(before, now);) {
    }
  }
};

/// Called before the work; if they throw, the model throws. They may wait.
struct EncodingHooks {
  std::function<void(std::uint64_t seed)> encode{};  ///< for every sentence of a call; in the encoder's thread
  std::function<void(std::uint64_t seed)> start{};   ///< the same for start
  std::function<void(std::size_t call)> step{};      ///< counted from 0
  std::function<void()> release{};                   ///< after the work
  bool again = false;  ///< items may be started twice: a model next to this one throws, and the caller cannot know
};

/// A table with encode(). `counts()` may be read while other threads work.
template <Abilities A = Abilities{.ragged = true, .blocks = true, .roll_back = true}>
class EncodingTable {
 public:
  using Source = HeapSource;
  static constexpr Abilities abilities = A;

  class Encoded {
   public:
    Encoded(std::vector<std::uint64_t> seeds, std::shared_ptr<EncodingCounts> counts)
        : seeds_(std::move(seeds)), gone_(seeds_.size()), started_(seeds_.size()), counts_(std::move(counts)) {
      EncodingCounts::raise(counts_->most_waiting, counts_->waiting += std::ssize(seeds_));
      EncodingCounts::raise(counts_->most_batches, ++counts_->batches);
    }
    Encoded(Encoded&&) noexcept = default;
    Encoded& operator=(Encoded&&) = delete;
    ~Encoded() {
      if (counts_ == nullptr) return;
      for (std::size_t i = 0; i < seeds_.size(); ++i) leave(i);
      --counts_->batches;
    }

   private:
    friend class EncodingTable;
    void leave(std::size_t item) {
      if (!gone_[item]) --counts_->waiting;
      gone_[item] = true;
    }
    std::vector<std::uint64_t> seeds_;
    std::vector<bool> gone_;     // no longer waiting: started, or failed to start
    std::vector<bool> started_;  // must not be started again
    std::shared_ptr<EncodingCounts> counts_;
  };

  explicit EncodingTable(Table const& table = {}, EncodingHooks hooks = {}, TableOptions const& options = {})
      : model_(table, options), hooks_(std::move(hooks)) {}

  Vocabulary const& vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return model_.limits(); }
  std::int32_t source_length(Source const& source) const { return source.length(); }
  EncodingCounts const& counts() const { return *counts_; }

  Encoded encode(std::span<Source const* const> sources) const {
    struct Running {
      EncodingCounts& counts;
      explicit Running(EncodingCounts& c) : counts(c) {
        if (++counts.encoding > 1) ++counts.broken;  // encode must not run twice at once
      }
      Running(Running const&) = delete;
      Running& operator=(Running const&) = delete;
      ~Running() { --counts.encoding; }
    } const running(*counts_);
    ++counts_->encodes;
    if (sources.empty()) ++counts_->broken;
    std::vector<std::uint64_t> seeds;
    for (auto const* source : sources) {
      if (!source->valid()) broken("encode is given a source that is gone");
      if (hooks_.encode) hooks_.encode(source->seed());
      if (!source->valid()) broken("a source went while it was encoded");
      seeds.push_back(source->seed());
    }
    counts_->encoded += seeds.size();
    return Encoded(std::move(seeds), counts_);
  }

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    ++counts_->starts;
    if (items.size() != slots.size() || items.empty()) broken("start of as many items as slots");
    seeds_.clear();
    for (auto const item : items) {
      auto const i = static_cast<std::size_t>(item);
      if (i >= encoded.seeds_.size() || (encoded.started_[i] && !hooks_.again))
        broken("start of an item that is not there, or no more");
      if (hooks_.start) try {
          hooks_.start(encoded.seeds_[i]);
        } catch (...) {
          if (items.size() == 1) encoded.leave(i);
          throw;
        }
      seeds_.push_back(encoded.seeds_[i]);
    }
    for (auto const item : items) {
      encoded.leave(static_cast<std::size_t>(item));
      encoded.started_[static_cast<std::size_t>(item)] = true;
    }
    counts_->from_encoded += slots.size();
    begin(slots);
  }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    ++counts_->starts;
    seeds_.clear();
    for (auto const* source : sources) {
      if (!source->valid()) broken("start is given a source that is gone");
      if (hooks_.start) hooks_.start(source->seed());
      seeds_.push_back(source->seed());
    }
    begin(slots);
  }

  Scores<float> step(std::span<Row const> rows) {
    auto const call = counts_->steps++;
    if (hooks_.step) hooks_.step(call);
    return model_.step(rows);
  }

  void release(std::span<Slot const>) {
    if (hooks_.release) hooks_.release();
  }

 private:
  void begin(std::span<Slot const> slots) {
    counts_->started += slots.size();
    pointers_.clear();
    for (auto const& seed : seeds_) pointers_.push_back(&seed);
    model_.start(std::span<std::uint64_t const* const>(pointers_), slots);
  }
  [[noreturn]] void broken(char const* what) const {
    ++counts_->broken;
    throw std::logic_error(what);
  }

  TableModel<A> model_;
  EncodingHooks hooks_;
  std::shared_ptr<EncodingCounts> counts_ = std::make_shared<EncodingCounts>();
  std::vector<std::uint64_t> seeds_;
  std::vector<std::uint64_t const*> pointers_;
};

}  // namespace sluice::test
