// SPDX-License-Identifier: Apache-2.0
/// \file
/// httplib's server over our own connections, with one thread per connection.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <http/connection.hpp>
#include <http/event.hpp>
#include <http/memory.hpp>
#include <httplib.h>
#include <mutex>
#include <string>
#include <utility>

namespace serve {

/// Threads that serve one connection each. While all are busy, new connections wait in the system's queue. Threads that are
/// not needed for a while end, and give their memory back.
class Crew final : public httplib::TaskQueue {
 public:
  explicit Crew(std::size_t most) : most_(most) {}
  /// If no thread can be made, the task runs in this one, which is_short_handed() tells it.
  void enqueue(std::function<void()> task) override;
  void shutdown() override;

  /// Whether this thread has something more important to do.
  static bool is_short_handed();

 private:
  void work();

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_, room_, ended_one_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0, busy_ = 0;
  bool ended_ = false;
};

class Listener final : public httplib::Server {
 public:
  struct Limits {
    std::size_t connections;     ///< at a time
    std::size_t request_memory;  ///< bytes of a request
  };

  Listener(Patience const& patience, Limits limits, MemoryPool& memory);

  /// Called with the code and the time of each answer that httplib does not know of.
  void set_refusal_logger(std::function<void(int, Clock::duration)> logger) { log_ = std::move(logger); }
  /// Binds, but accepts no connection yet. A port in use is refused.
  /// \param port  0: any
  /// \return      the port
  /// \throws std::runtime_error  naming address and port
  int bind(std::string const& address, int port);
  /// Serves until end() is called and all requests have been answered.
  void serve() { listen_after_bind(); }
  /// From any thread.
  void end();

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool serve(Connection& connection);
  void refuse(Connection& connection, int status);

  Patience patience_;
  Limits limits_;
  MemoryPool& memory_;
  std::function<void(int, Clock::duration)> log_;
  Event stop_;
};

}  // namespace serve
