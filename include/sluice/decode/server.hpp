// SPDX-License-Identifier: Apache-2.0
/// \file
/// A decoder for many threads: submit from any of them while one worker steps.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/schedule.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/statistics.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/output/line/log_softmax_top_k.hpp>
#include <sluice/schedule/intake.hpp>
#include <sluice/schedule/streaming.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

struct ServerOptions {
  /// What submit() does while the queue is full.
  enum class Full : std::uint8_t { wait, refuse };

  std::size_t queue = 1024;  ///< requests that may wait to be admitted; >= 1
  Full full = Full::wait;
  Intake intake{};

  /// Throws std::invalid_argument naming the option and its value.
  void check() const {
    require(queue >= 1, "queue", queue, "must be at least 1");
    intake.check();
  }
};

using ServerClock = std::chrono::steady_clock;

/// What goes with one request of a Server. Callbacks run in the worker's thread, one at a time: keep them short. They may
/// call the server's functions (submit() refuses there instead of waiting), but not destroy it. What they throw is dropped.
struct Delivery {
  std::function<void(Result)> done;  ///< called exactly once
  /// Where given: called whenever more of the output is certain, with all that is (see SettlingSearch); the result's
  /// hypotheses begin with it.
  std::function<void(std::uint64_t id, std::span<Token const> tokens)> settled{};
  /// When it passes, the result is what there is, with Failure::late. Looked at between steps.
  ServerClock::time_point deadline = ServerClock::time_point::max();
};

/// Decodes requests as they come:
///
///     Server server(model, BeamSearch{.width = 5}, Streaming{.size = 64, .refill_below = 1});
///     auto result = server.submit({.source = s});              // a std::future<Result>; or with callbacks:
///     server.submit({.source = s}, {.done = ..., .settled = ..., .deadline = ...});
///
/// Every request that is not refused gets exactly one result, whatever fails, is late, is withdrawn or is left when the
/// server is destroyed. Results are those of decode(), bit for bit (samples: if the request brings a seed; ids depend on
/// who comes first).
///
/// All functions may be called from any thread. The model belongs to the worker while the server lives.
template <Model M, Search S, Schedule P = Streaming, Expander<Answer<M>> E = LogSoftmaxTopK>
class Server {
 public:
  using Source = typename M::Source;
  using SearchRequest = Request<Source, S>;
  using Clock = ServerClock;

  /// Throws std::invalid_argument for options that make no sense, before any work.
  explicit Server(M& model, S search = {}, P schedule = usual(), ServerOptions const& options = {}, E expander = {})
      : options_((options.check(), options)),
        decoder_(model, std::move(search), std::move(schedule), std::move(expander), {}, options.intake),
        worker_([this] { work(); }) {}
  Server(Server const&) = delete;
  Server& operator=(Server const&) = delete;

  /// Ends what is left with Failure::cancelled, delivers it, and returns.
  ~Server() {
    {
      std::lock_guard const lock(mutex_);
      closed_ = stop_ = true;
    }
    wake_.notify_all(), room_.notify_all();
    worker_.join();
  }

  /// Queues a request and returns its id (0, 1, 2 ...); nothing if it is refused, because the queue is full (and
  /// ServerOptions says so, or this is the worker's own thread) or the server closed: `done` is then not called.
  std::optional<std::uint64_t> submit(SearchRequest request, Delivery delivery) {
    std::unique_lock lock(mutex_);
    auto const free = [this] { return closed_ || queued_ < options_.queue; };
    if (options_.full == ServerOptions::Full::wait && std::this_thread::get_id() != worker_id_) room_.wait(lock, free);
    if (closed_ || !free()) return std::nullopt;
    auto const id = next_id_;
    inbox_.push_back({id, std::move(request), std::move(delivery)});
    ++next_id_, ++queued_, ++open_;  // not where moving the request throws
    lock.unlock();
    wake_.notify_one();
    return id;
  }

  /// The same with a future. A refused request's result has Failure::refused, and no id.
  std::future<Result> submit(SearchRequest request) { return submit(std::move(request), Clock::time_point::max()); }
  template <std::same_as<Clock::time_point> Time>
  std::future<Result> submit(SearchRequest request, Time deadline) {
    auto const promise = std::make_shared<std::promise<Result>>();
    auto future = promise->get_future();
    Delivery delivery{.done = [promise](Result result) { promise->set_value(std::move(result)); },
                      .deadline = deadline};
    if (!submit(std::move(request), std::move(delivery))) {
      Result result;
      result.fail(Failure::refused, "the queue is full or the server closed");
      promise->set_value(std::move(result));
    }
    return future;
  }

  /// Ends a request with Failure::cancelled and what hypotheses there are, before the next step. Does nothing if it has
  /// ended.
  void cancel(std::uint64_t id) {
    {
      std::lock_guard const lock(mutex_);
      withdrawn_.push_back(id);
    }
    wake_.notify_one();
  }

  /// Refuses requests from now on; those queued are served.
  void close() {
    {
      std::lock_guard const lock(mutex_);
      closed_ = true;
    }
    wake_.notify_all(), room_.notify_all();
  }

  /// Waits until every request has been answered. Not from a callback.
  void drain() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return open_ == 0; });
  }

  /// Requests that have no result yet.
  std::size_t open() const {
    std::lock_guard const lock(mutex_);
    return open_;
  }
  /// As of the last step.
  Statistics statistics() const {
    std::lock_guard const lock(mutex_);
    return statistics_;
  }

 private:
  /// Who comes need not wait for others to end.
  static P usual() {
    if constexpr (std::same_as<P, Streaming>) return {.refill_below = 1};
    else return {};
  }

  struct Submitted {
    std::uint64_t id;
    SearchRequest request;
    Delivery delivery;
  };
  struct Open {
    Delivery delivery{};
    std::size_t told = 0;  // settled tokens that the caller knows of
  };
  using Deadline = std::pair<Clock::time_point, std::uint64_t>;

  void work() {
    {
      std::lock_guard const lock(mutex_);
      worker_id_ = std::this_thread::get_id();
    }
    while (take()) {
      expire();
      auto const answered = decoder_.statistics().sentences;
      auto idle = false;
      try {
        idle = !decoder_.step();
      } catch (...) {
        // Whoever took part has a result that says so. If nobody has, nobody ever will.
        if (decoder_.statistics().sentences == answered)
          decoder_.end_all(Failure::model, describe(std::current_exception()), std::current_exception());
      }
      if constexpr (SettlingSearch<S>) tell();
      deliver();
      if (idle) sleep();
    }
    decoder_.end_all(Failure::cancelled, "the server was destroyed");
    deliver();
  }

  /// Gives the decoder what has come; false when it is time to stop.
  bool take() {
    auto stop = false;
    {
      std::lock_guard const lock(mutex_);
      incoming_.swap(inbox_);
      leaving_.swap(withdrawn_);
      stop = stop_;
    }
    for (auto& one : incoming_) {
      auto const deadline = one.delivery.deadline;
      decoder_.submit(std::move(one.request));  // counts as we do: both give numbers in the order of submission
      if (deadline != Clock::time_point::max()) deadlines_.emplace(deadline, one.id);
      if constexpr (SettlingSearch<S>) listeners_ += one.delivery.settled != nullptr;
      opened_.emplace(one.id, Open{std::move(one.delivery)});
    }
    for (auto const id : leaving_) decoder_.cancel(id);
    incoming_.clear(), leaving_.clear();
    return !stop;
  }

  void expire() {
    if (deadlines_.empty()) return;
    auto const now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      auto const id = deadlines_.begin()->second;
      deadlines_.erase(deadlines_.begin());
      decoder_.cancel(id, Failure::late);
    }
  }

  void tell() requires SettlingSearch<S> {
    if (listeners_ == 0) return;
    decoder_.settled([this](std::uint64_t id) { return opened_.find(id)->second.delivery.settled != nullptr; },
                     [this](std::uint64_t id, std::span<Token const> tokens) {
                       auto& one = opened_.find(id)->second;
                       if (tokens.size() <= one.told) return;
                       one.told = tokens.size();
                       call([&] { one.delivery.settled(id, tokens); });
                     });
  }

  void deliver() {
    std::size_t count = 0;
    for (Result result; decoder_.poll(result); result = {}, ++count) {
      auto const found = opened_.find(result.id);
      if (found == opened_.end()) continue;
      auto one = std::move(found->second);
      deadlines_.erase({one.delivery.deadline, result.id});
      if constexpr (SettlingSearch<S>) listeners_ -= one.delivery.settled != nullptr;
      opened_.erase(found);
      if (one.delivery.done) call([&] { one.delivery.done(std::move(result)); });
    }
    std::lock_guard const lock(mutex_);
    queued_ = inbox_.size() + decoder_.waiting();
    open_ -= count;
    statistics_ = decoder_.statistics();
    if (queued_ < options_.queue || open_ == 0) room_.notify_all();
  }

  void sleep() {
    std::unique_lock lock(mutex_);
    auto const something = [this] { return stop_ || !inbox_.empty() || !withdrawn_.empty(); };
    if (deadlines_.empty()) wake_.wait(lock, something);
    else wake_.wait_until(lock, deadlines_.begin()->first, something);
  }

  template <class F>
  static void call(F&& f) {
    try {
      f();
    } catch (...) {  // the caller's, and nobody else's business
    }
  }

  ServerOptions options_;
  Decoder<M, S, P, E> decoder_;  // the worker's, like the next four
  std::unordered_map<std::uint64_t, Open> opened_;
  std::set<Deadline> deadlines_;
  std::vector<Submitted> incoming_;
  std::vector<std::uint64_t> leaving_;
  std::size_t listeners_ = 0;

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable wake_, room_;
  std::vector<Submitted> inbox_;
  std::vector<std::uint64_t> withdrawn_;
  std::uint64_t next_id_ = 0;
  std::size_t queued_ = 0, open_ = 0;
  bool closed_ = false, stop_ = false;
  Statistics statistics_;
  std::thread::id worker_id_{};
  std::thread worker_;  // last: works on all of it
};

}  // namespace sluice::inline v0
