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
#include <string_view>
#include <utility>

namespace serve {

using Clock = std::chrono::steady_clock;

/// The limits of a client.
struct Patience {
  std::chrono::milliseconds idle{5000};   ///< between two requests
  std::chrono::milliseconds read{10000};  ///< until a request, including its body, has arrived
  std::chrono::milliseconds write{
      10000};                  ///< for reading an answer, not counting the time in which there is nothing to read
  std::size_t line = 8192;     ///< bytes of the request line, and of each header
  std::size_t head = 32768;    ///< bytes of request line and headers
  std::size_t body = 1 << 20;  ///< bytes
};

/// The stream that httplib reads requests from and writes answers to.
class Connection final : public httplib::Stream {
 public:
  enum class Trouble { none, body_too_large, too_slow };
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
  /// What came of its request line and headers.
  enum class Head { whole, none, too_slow, line_too_long, too_large };
  /// Reads them, for httplib: without Range, which our answers do not have, and which httplib would multiply.
  Head read_head();
  /// Whether the request is of HTTP/1.0, which knows neither chunks nor, from us, another request on this connection.
  bool is_old() const { return old_; }
  /// Whose requests these are, for fairness: the address (of IPv6, the network), or what was set for this request.
  std::string const& client() const { return client_.empty() ? address_ : client_; }
  void set_client(std::string client) { client_ = std::move(client); }
  /// Whether the client has closed its side.
  bool gone() const;
  /// Whether a part of an answer has been written.
  bool answers() const { return answers_; }
  /// Headers have arrived, the body follows.
  void begin_body();
  /// The body has been read: what comes next is another request.
  void end_body() { body_read_ = true; }
  bool body_read() const { return body_read_; }
  std::size_t most_body() const { return patience_.body; }  ///< bytes
  /// Why read() gave up.
  Trouble trouble() const { return trouble_; }
  /// Sends an answer that is whole, if the client reads it at once; no more requests are taken.
  /// \param drain  how long the end waits for the client to read it
  void refuse(std::string_view answer, std::chrono::milliseconds drain);
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
  /// No real socket: httplib asks only whether select() could wait for it, and refuses from 1,024 files on; we poll().
  socket_t socket() const override { return 0; }

 private:
  enum class Got { some, none, late };
  Got fill(Clock::time_point until);

  int socket_;
  Patience const& patience_;
  Event const& stop_;
  std::array<char, 16384> buffer_{};  // read, not yet asked for
  std::size_t begin_ = 0, end_ = 0;
  std::string head_{};         // of the request, for httplib
  std::size_t head_read_ = 0;  // by httplib
  std::string address_{}, client_{};
  std::size_t allowed_ = 0;  // bytes of what is being read
  Clock::time_point began_{};
  std::chrono::milliseconds drain_{0};
  Clock::duration blocked_{};  // time that this answer waited for the client
  Trouble trouble_ = Trouble::none;
  bool in_body_ = false, body_read_ = false, old_ = false, answers_ = false;
};

}  // namespace serve
