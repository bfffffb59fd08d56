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
#include <httplib.h>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace serve {

/// Threads that serve one connection each. While all are busy, new connections wait in the system's queue.
class Crew final : public httplib::TaskQueue {
 public:
  explicit Crew(std::size_t most) : most_(most) {}
  void enqueue(std::function<void()> task) override;
  void shutdown() override;

 private:
  void work();

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_, room_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t busy_ = 0;
  bool ended_ = false;
};

class Listener final : public httplib::Server {
 public:
  Listener(Patience const& patience, std::size_t connections);

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

  Patience patience_;
  std::size_t connections_;
  Event stop_;
};

}  // namespace serve
