// SPDX-License-Identifier: Apache-2.0
#include <http/listener.hpp>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>

namespace serve {

namespace {

constexpr std::size_t requests_of_a_connection = 10000;

}  // namespace

void Crew::enqueue(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return busy_ + tasks_.size() < most_; });
  tasks_.push_back(std::move(task));
  if (busy_ + tasks_.size() > threads_.size()) threads_.emplace_back([this] { work(); });
  wake_.notify_one();
}

void Crew::shutdown() {
  {
    std::lock_guard const lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Crew::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ended_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto const task = std::move(tasks_.front());
    tasks_.pop_front(), ++busy_;
    lock.unlock();
    task();
    lock.lock();
    --busy_;
    room_.notify_one();
  }
}

Listener::Listener(Patience const& patience, std::size_t connections) : patience_(patience), connections_(connections) {
  new_task_queue = [this] { return new Crew(connections_); };  // httplib deletes it
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

bool Listener::process_and_close_socket(socket_t socket) {
  Connection connection(socket, patience_, stop_);
  for (auto left = requests_of_a_connection; left > 0 && connection.await_request(); --left) {
    auto closed = false;
    auto const begin_body = [&](httplib::Request&) { connection.begin_body(); };
    if (!process_request(connection, left == 1, closed, begin_body) || closed) return true;
    if (connection.trouble() != Connection::Trouble::none || !connection.body_read()) return false;
  }
  return true;
}

}  // namespace serve
