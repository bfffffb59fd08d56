// SPDX-License-Identifier: Apache-2.0
/// \file
/// Encodes sources before their requests are admitted.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/at_end.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Sources that are encoded in one call.
struct EncodedBatch {
  struct Place {
    std::size_t part = 0;  // of `parts`
    std::int32_t item = 0;
    std::exception_ptr problem{};
  };

  /// Starts sentences in the model's slots. Throws what encoding one of them, or starting some of them, threw; the first `begun`
  /// slots have been started then. Calls the model once per part of the batch.
  SLUICE_LAZY void start(AnyModelSide& model, std::span<std::size_t const> which, std::span<Slot const> slot_numbers,
                         std::size_t& begun) {
    begun = 0;
    for (auto const i : which)
      if (places[i].problem != nullptr) std::rethrow_exception(places[i].problem);
    for (std::size_t first = 0, last = 0; first < which.size(); first = last) {
      items.clear();
      auto const part = places[which[first]].part;
      for (; last < which.size() && places[which[last]].part == part; ++last) items.push_back(places[which[last]].item);
      model.start(parts[part].get(), std::span<std::int32_t const>(items), slot_numbers.subspan(first, last - first));
      begun = last;
    }
  }
  Buffer<void const*> sources;          // the requests keep them alive until `done`
  Buffer<std::shared_ptr<void>> parts;  // one, unless the call failed
  Buffer<Place> places;                 // [source]
  std::vector<std::int32_t> items;      // of start()
  std::uint64_t calls = 0;              // of Model::encode
  double seconds = 0;
  bool done = false, counted = false;
  Buffer<std::unique_ptr<AnyRequest>> left;  // cancelled meanwhile; kept for their sources

  /// If encoding the batch fails, encodes its sources one by one: only those that fail alone have a problem.
  SLUICE_LAZY void run(AnyModelSide const& model) {
    auto const began = std::chrono::steady_clock::now();
    try {
      encode(model, sources);
      for (std::size_t i = 0; i < sources.size(); ++i) places[i].item = static_cast<std::int32_t>(i);
    } catch (...) {
      if (sources.size() == 1) places[0].problem = std::current_exception();
      else
        for (std::size_t i = 0; i < sources.size(); ++i) try {
            encode(model, std::span(sources).subspan(i, 1));
            places[i].part = parts.size() - 1;
          } catch (...) {
            places[i].problem = std::current_exception();
          }
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

 private:
  SLUICE_LAZY void encode(AnyModelSide const& model, std::span<void const* const> some) {
    ++calls;
    parts.push_back(model.encode(some));
  }
};

/// A thread that encodes batches, first in, first out.
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): AtEnd destroys
class EncoderThread {
 public:
  SLUICE_LAZY explicit EncoderThread(AnyModelSide const& model) : model_(model), thread_([this] { work(); }) {}
  EncoderThread(EncoderThread const&) = delete;
  EncoderThread& operator=(EncoderThread const&) = delete;

  SLUICE_LAZY void post(std::shared_ptr<EncodedBatch> batch) {
    {
      std::lock_guard const lock(mutex_);
      erase_if(batches_, [](auto const& one) { return one.use_count() == 1; });  // all its requests have been cancelled
      batches_.push_back(std::move(batch));
    }
    work_.notify_one();
  }
  SLUICE_LAZY void wait(EncodedBatch const& batch) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return batch.done; });
  }
  SLUICE_LAZY bool done(EncodedBatch const& batch) {
    std::lock_guard const lock(mutex_);
    return batch.done;
  }

 private:
  friend AtEnd<EncoderThread>;
  /// Waits for the call that is running; drops the batches after it.
  SLUICE_LAZY void end() {
    {
      std::lock_guard const lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    thread_.join();
  }

  SLUICE_LAZY void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return stop_ || !batches_.empty(); });
      if (stop_) return;
      auto const batch = std::move(batches_.front());
      batches_.erase(batches_.begin());
      lock.unlock();
      if (batch.use_count() > 1) batch->run(model_);  // else all its requests have been cancelled
      lock.lock();
      batch->done = true;
      done_.notify_all();
    }
  }

  AnyModelSide const& model_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  Buffer<std::shared_ptr<EncodedBatch>> batches_;
  bool stop_ = false;
  std::thread thread_;
  AtEnd<EncoderThread> at_end_{*this};
};

}  // namespace sluice::inline v0::detail
