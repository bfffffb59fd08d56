// SPDX-License-Identifier: Apache-2.0
/// \file
/// One client's connection, with limits on size and time; notices when the client disconnects.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <http/event.hpp>
#include <httplib.h>
#include <string>

namespace serve {

using Clock = std::chrono::steady_clock;

/// The limits of a client.
struct Patience {
  std::chrono::milliseconds idle{5000};   ///< between two requests
  std::chrono::milliseconds read{10000};  ///< until a request, including its body, has arrived
  std::chrono::milliseconds write{
      10000};                  ///< for reading an answer, not counting the time in which there is nothing to read
  std::size_t head = 32768;    ///< bytes of request line and headers
  std::size_t body = 1 << 20;  ///< bytes
};

/// The stream that httplib reads requests from and writes answers to.
class Connection final : public httplib::Stream {
 public:
  enum class Trouble { none, head_too_large, body_too_large, too_slow };
  enum class Woken { event, gone, time };

  /// Takes ownership of the socket.
  /// \param stop  raised when no more requests are wanted
  Connection(int socket, Patience const& patience, Event const& stop);
  ~Connection() override;
  Connection(Connection const&) = delete;
  Connection& operator=(Connection const&) = delete;

  /// The one that this thread serves; nullptr: none.
  static Connection* current();

  /// Waits for the next request to begin; false: none came, it took too long, or no more are wanted.
  bool await_request();
  /// Headers have arrived, the body follows.
  void begin_body();
  /// The body has been read: what comes next is another request.
  void end_body() { body_read_ = true; }
  bool body_read() const { return body_read_; }
  std::size_t most_body() const { return patience_.body; }  ///< bytes
  /// Why read() gave up.
  Trouble trouble() const { return trouble_; }
  /// When the first byte of the request arrived.
  Clock::time_point began() const { return began_; }

  /// Waits until the event is raised, the client has closed its side, or the time has passed.
  Woken wait(Event const& event, Clock::time_point until) const;

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(char const* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  int socket_;
  Patience const& patience_;
  Event const& stop_;
  std::array<char, 16384> buffer_{};  // read, not yet asked for
  std::size_t begin_ = 0, end_ = 0;
  std::size_t allowed_ = 0;  // bytes of what is being read
  Clock::time_point began_{};
  Clock::duration blocked_{};  // time that this answer waited for the client
  Trouble trouble_ = Trouble::none;
  bool in_body_ = false, body_read_ = false;
};

}  // namespace serve
