// SPDX-License-Identifier: Apache-2.0
/// \file
/// The worker thread of a Server, and its queue.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/at_end.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/server_options.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The server without its types. See Server for the members.
/// \tparam L  Loop or CompiledLoop
template <class L>
// NOLINTNEXTLINE(cppcoreguidelines-special-member-functions): AtEnd destroys
class Serving {
 public:
  using Clock = ServerClock;

  /// \param settles  whether the searches can say which tokens are settled
  SLUICE_LAZY Serving(L& loop, ServerOptions const& options, bool settles)
      : options_(options), loop_(loop), settles_(settles), worker_([this] { work(); }) {}
  Serving(Serving const&) = delete;
  Serving& operator=(Serving const&) = delete;

  /// Queues a request and returns its id (0, 1, 2 ...). Returns nothing, and never calls `done`, if the request is refused: the
  /// server is closed, or the queue is full and ServerOptions::full says refuse (or this is the worker's thread).
  SLUICE_LAZY std::optional<std::uint64_t> submit(std::unique_ptr<AnyRequest> request, Delivery delivery) {
    std::unique_lock lock(mutex_);
    auto const free = [this] { return closed_ || queued_ < options_.queue; };
    if (options_.full == ServerOptions::Full::wait && std::this_thread::get_id() != worker_id_) room_.wait(lock, free);
    if (closed_ || !free()) return std::nullopt;
    auto const id = next_id_;
    inbox_.push_back({id, std::move(request), std::move(delivery)});
    ++next_id_, ++queued_, ++open_;  // not if moving the request throws
    lock.unlock();
    wake_.notify_one();
    return id;
  }

  /// Ends a request with Failure::cancelled and the hypotheses so far, before the next step. Does nothing if it has ended.
  SLUICE_LAZY void cancel(std::uint64_t id) {
    {
      std::lock_guard const lock(mutex_);
      withdrawn_.push_back(id);
    }
    wake_.notify_one();
  }

  /// Lets `change` add to the source of a request, before the next step. If it throws, the request ends with Failure::source. Does nothing
  /// if it has ended.
  SLUICE_LAZY void append(std::uint64_t id, std::function<void(AnyRequest&)> change) {
    {
      std::lock_guard const lock(mutex_);
      appended_.push_back({id, std::move(change)});
    }
    wake_.notify_one();
  }

  /// Refuses requests from now on; serves those in the queue.
  SLUICE_LAZY void close() {
    {
      std::lock_guard const lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all(), room_.notify_all();
  }

  /// Waits until every request has been answered. Not from a callback.
  SLUICE_LAZY void drain() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return open_ == 0; });
  }

  /// Requests that have no result yet.
  SLUICE_LAZY std::size_t open() const {
    std::lock_guard const lock(mutex_);
    return open_;
  }
  /// As of the last step.
  SLUICE_LAZY Statistics statistics() const {
    std::lock_guard const lock(mutex_);
    return statistics_;
  }

 private:
  friend AtEnd<Serving>;
  /// Ends what is left with Failure::cancelled, and delivers the results.
  SLUICE_LAZY void end() {
    {
      std::lock_guard const lock(mutex_);
      closed_ = stop_ = true;
    }
    wake_.notify_all(), room_.notify_all();
    worker_.join();
  }

  struct Submitted {
    std::uint64_t id;
    std::unique_ptr<AnyRequest> request;
    Delivery delivery;
  };
  struct InFlight {
    Delivery delivery{};
    std::size_t told = 0;  // settled tokens that the caller has
  };
  struct Appended {
    std::uint64_t id;
    std::function<void(AnyRequest&)> change;
  };
  using Deadline = std::pair<Clock::time_point, std::uint64_t>;

  SLUICE_LAZY void work() {
    {
      std::lock_guard const lock(mutex_);
      worker_id_ = std::this_thread::get_id();
    }
    while (take()) {
      expire();
      auto const answered = loop_.statistics().sentences;
      auto idle = false;
      try {
        idle = !loop_.step();
      } catch (...) {
        // The sentences of the step have results that say so. If there are none, the next step would throw the same.
        if (loop_.statistics().sentences == answered)
          loop_.end_all(Failure::schedule, describe(std::current_exception()), std::current_exception());
      }
      if (settles_) tell();
      deliver();
      if (idle) sleep();
    }
    loop_.end_all(Failure::cancelled, "the server was destroyed", {});
    deliver();
  }

  /// Gives the decoder the new requests and cancellations; false when it is time to stop.
  SLUICE_LAZY bool take() {
    auto stop = false;
    {
      std::lock_guard const lock(mutex_);
      incoming_.swap(inbox_);
      leaving_.swap(withdrawn_);
      growing_.swap(appended_);
      stop = stop_;
    }
    for (auto& one : incoming_) {
      auto const deadline = one.delivery.deadline;
      loop_.submit(std::move(one.request));  // gives the same id: both count submissions
      if (deadline != (Clock::time_point::max)()) deadlines_.emplace(deadline, one.id);
      if (settles_) listeners_ += one.delivery.delta != nullptr;
      in_flight_.emplace(one.id, InFlight{std::move(one.delivery)});
    }
    for (auto& one : growing_) {
      try {
        loop_.append(one.id, one.change);
      } catch (...) {
        loop_.cancel(one.id, Failure::source, describe(std::current_exception()));
      }
    }
    for (auto const id : leaving_) loop_.cancel(id, Failure::cancelled);
    incoming_.clear(), growing_.clear(), leaving_.clear();
    return !stop;
  }

  SLUICE_LAZY void expire() {
    if (deadlines_.empty()) return;
    auto const now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      auto const id = deadlines_.begin()->second;
      deadlines_.erase(deadlines_.begin());
      loop_.cancel(id, Failure::late);
    }
  }

  SLUICE_LAZY void tell() {
    if (listeners_ == 0) return;
    loop_.settled([this](std::uint64_t id) { return in_flight_.find(id)->second.delivery.delta != nullptr; },
                  [this](std::uint64_t id, std::span<Token const> tokens) {
                    auto& one = in_flight_.find(id)->second;
                    if (tokens.size() <= one.told) return;
                    auto const fresh = tokens.subspan(std::exchange(one.told, tokens.size()));
                    call([&] { one.delivery.delta(id, fresh); });
                  });
  }

  SLUICE_LAZY void deliver() {
    std::size_t count = 0;
    for (Result result; loop_.poll(result); result = {}, ++count) {
      auto const found = in_flight_.find(result.id);
      if (found == in_flight_.end()) continue;
      auto one = std::move(found->second);
      deadlines_.erase({one.delivery.deadline, result.id});
      if (settles_) listeners_ -= one.delivery.delta != nullptr;
      in_flight_.erase(found);
      if (one.delivery.done) call([&] { one.delivery.done(std::move(result)); });
    }
    std::lock_guard const lock(mutex_);
    queued_ = inbox_.size() + loop_.waiting();
    open_ -= count;
    statistics_ = loop_.statistics();
    if (queued_ < options_.queue || open_ == 0) room_.notify_all();
  }

  SLUICE_LAZY void sleep() {
    std::unique_lock lock(mutex_);
    auto const something = [this] { return stop_ || !inbox_.empty() || !appended_.empty() || !withdrawn_.empty(); };
    if (deadlines_.empty()) wake_.wait(lock, something);
    else wake_.wait_until(lock, deadlines_.begin()->first, something);
  }

  template <class F>
  static void call(F&& f) {
    try {
      f();
    } catch (...) {  // exceptions of callbacks are dropped
    }
  }

  ServerOptions options_;
  L& loop_;  // used by the worker alone, like all members before mutex_
  bool settles_;
  std::unordered_map<std::uint64_t, InFlight> in_flight_;
  std::set<Deadline> deadlines_;
  std::vector<Submitted> incoming_;
  std::vector<Appended> growing_;
  std::vector<std::uint64_t> leaving_;
  std::size_t listeners_ = 0;

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable wake_, room_;
  std::vector<Submitted> inbox_;
  std::vector<Appended> appended_;
  std::vector<std::uint64_t> withdrawn_;
  std::uint64_t next_id_ = 0;
  std::size_t queued_ = 0, open_ = 0;
  bool closed_ = false, stop_ = false;
  Statistics statistics_;
  std::thread::id worker_id_{};
  std::thread worker_;  // last: uses all other members
  AtEnd<Serving> at_end_{*this};
};

}  // namespace sluice::inline v0::detail
