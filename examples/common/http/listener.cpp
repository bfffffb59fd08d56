// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <http/answers.hpp>
#include <http/listener.hpp>
#include <new>
#include <stdexcept>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

namespace serve {

namespace {

constexpr std::size_t requests_of_a_connection = 10000;
constexpr std::chrono::seconds idle_thread(10);  // then it ends

thread_local bool short_handed = false;

/// A whole answer, for what httplib does not see.
std::string answer_of(int status) {
  auto const [reason, message] = [&]() -> std::pair<std::string, std::string> {
    switch (status) {
      case 408: return {"Request Timeout", "the request did not arrive in time"};
      case 414: return {"URI Too Long", "the path is too long"};
      case 431: return {"Request Header Fields Too Large", "the headers are too large"};
      default: return {"Service Unavailable", "the server has no memory or no threads left"};
    }
  }();
  auto const body = dump(error_json(status, message)) + '\n';
  return "HTTP/1.1 " + std::to_string(status) + ' ' + reason + "\r\nConnection: close\r\n" +
         (status == 503 ? "Retry-After: 1\r\n" : "") +
         "X-Content-Type-Options: nosniff\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

void Crew::enqueue(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return busy_ + tasks_.size() < most_; });
  try {
    tasks_.push_back(task);
    if (busy_ + tasks_.size() > threads_) {
      std::thread([this] { work(); }).detach();
      ++threads_;
    }
  } catch (std::exception const&) {  // std::system_error: there are as many as the system allows
    if (busy_ + tasks_.size() > threads_ && !tasks_.empty()) tasks_.pop_back();
    lock.unlock();
    short_handed = true;
    task();
    short_handed = false;
    return;
  }
  wake_.notify_one();
}

bool Crew::is_short_handed() { return short_handed; }

void Crew::shutdown() {
  std::unique_lock lock(mutex_);
  ended_ = true;
  wake_.notify_all();
  ended_one_.wait(lock, [this] { return threads_ == 0; });
}

void Crew::work() {
  std::unique_lock lock(mutex_);
  while (wake_.wait_for(lock, idle_thread, [this] { return ended_ || !tasks_.empty(); }) && !tasks_.empty()) {
    {
      auto const task = std::move(tasks_.front());
      tasks_.pop_front(), ++busy_;
      lock.unlock();
      task();
    }
    lock.lock();
    --busy_;
    room_.notify_one();
  }
  --threads_;
  ended_one_.notify_all();
}

Listener::Listener(Patience const& patience, Limits limits, MemoryPool& memory)
    : patience_(patience), limits_(limits), memory_(memory) {
  new_task_queue = [this] { return new Crew(limits_.connections); };  // httplib deletes it
  set_keep_alive_max_count(requests_of_a_connection);
  set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(patience.idle).count());
  set_payload_max_length(patience.body);
  set_tcp_nodelay(true);
  // Without SO_REUSEPORT: with it, two servers could share a port, and each would get some of the requests.
  set_socket_options([](socket_t socket) {
    int const yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

int Listener::bind(std::string const& address, int port) {
  auto const bound = port == 0 ? bind_to_any_port(address) : bind_to_port(address, port) ? port : -1;
  if (bound < 0) throw std::runtime_error("cannot listen on " + address + ", port " + std::to_string(port));
  ::listen(svr_sock_, SOMAXCONN);  // httplib's own backlog is five connections
  return bound;
}

void Listener::end() {
  stop_.raise();
  stop();
}

/// Runs in a thread of the crew. Whatever is thrown here ends this connection, not the server.
bool Listener::process_and_close_socket(socket_t socket) {
  try {
    Connection connection(socket, patience_, stop_);
    try {
      if (!Crew::is_short_handed()) return serve(connection);
    } catch (std::exception const&) {  // std::bad_alloc, outside of what httplib guards; or from a stream
      if (connection.answers()) return false;
    }
    refuse(connection, 503);
  } catch (std::exception const&) {  // not even for this
  }
  return false;
}

bool Listener::serve(Connection& connection) {
  for (auto left = requests_of_a_connection; left > 0 && connection.await_request(); --left) {
    Account account(memory_, limits_.request_memory);
    Account::Counting const counting(&account);
    switch (connection.read_head()) {
      case Connection::Head::whole: break;
      case Connection::Head::none: return false;
      case Connection::Head::too_slow: return refuse(connection, 408), false;
      case Connection::Head::line_too_long: return refuse(connection, 414), false;
      case Connection::Head::too_large: return refuse(connection, 431), false;
    }
    auto closed = false;
    auto const last = left == 1 || connection.is_old();
    auto const begin_body = [&](httplib::Request&) { connection.begin_body(); };
    if (!process_request(connection, last, closed, begin_body) || closed || last) return true;
    if (connection.trouble() != Connection::Trouble::none || !connection.body_read()) return false;
  }
  return true;
}

void Listener::refuse(Connection& connection, int status) {
  Account::Counting const uncounted(nullptr);
  connection.refuse(answer_of(status), std::chrono::milliseconds(Crew::is_short_handed() ? 10 : 1000));
  if (log_) log_(status, Clock::now() - connection.began());
}

}  // namespace serve
