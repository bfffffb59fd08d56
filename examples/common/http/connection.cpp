// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <http/connection.hpp>
#include <iterator>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace serve {

namespace {

thread_local Connection* mine = nullptr;

/// For poll(): rounded up, so that the time has passed.
int milliseconds_until(Clock::time_point when) {
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3600000));
}

/// Address and port; empty for anything but IP.
void name(sockaddr_storage const& address, std::string& ip, int& port) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    auto const& v4 = reinterpret_cast<sockaddr_in const&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()), port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    auto const& v6 = reinterpret_cast<sockaddr_in6 const&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()), port = ntohs(v6.sin6_port);
  }
  ip = text.data();
}

/// Of IPv6 the network: a client has the rest to itself.
std::string network_of(std::string const& ip) {
  in6_addr address{};
  if (inet_pton(AF_INET6, ip.c_str(), &address) != 1) return ip;
  std::fill_n(std::begin(address.s6_addr) + 8, 8, std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, &address, text.data(), text.size());
  return text.data();
}

/// Whether a line is a header of this name, given in small letters with its colon.
bool is_header(std::string_view line, std::string_view name) {
  return line.size() >= name.size() && std::ranges::equal(line.substr(0, name.size()), name, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
         });
}

}  // namespace

Connection::Connection(int socket, Patience const& patience, Event const& stop)
    : socket_(socket), patience_(patience), stop_(stop) {
  mine = this;
  int port = 0;
  std::string ip;
  get_remote_ip_and_port(ip, port);
  address_ = network_of(ip);
}

Connection::~Connection() {
  mine = nullptr;
  shutdown(socket_, SHUT_WR);
  if (in_body_ && !body_read_ && trouble_ != Trouble::too_slow) drain_ = std::chrono::seconds(1);
  if (drain_.count() > 0) {
    // Closing while the client still sends would discard an answer that it has not read yet.
    auto const until = Clock::now() + drain_;
    for (std::size_t drained = 0; drained < (std::size_t{1} << 24);) {
      pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
      if (poll(&one, 1, milliseconds_until(until)) <= 0) break;
      auto const got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      drained += static_cast<std::size_t>(got);
    }
  }
  close(socket_);
}

Connection* Connection::current() { return mine; }

bool Connection::await_request() {
  auto const until = Clock::now() + patience_.idle;
  for (;;) {
    std::array<pollfd, 2> both{
        {{.fd = socket_, .events = POLLIN, .revents = 0}, {.fd = stop_.file(), .events = POLLIN, .revents = 0}}};
    auto const ready = poll(both.data(), both.size(), begin_ < end_ ? 0 : milliseconds_until(until));
    if (ready < 0 && errno == EINTR) continue;
    if ((ready <= 0 && begin_ == end_) || both[1].revents != 0) return false;
    break;
  }
  began_ = Clock::now(), blocked_ = {}, in_body_ = body_read_ = old_ = answers_ = false;
  client_.clear();
  return true;
}

Connection::Got Connection::fill(Clock::time_point until) {
  for (;;) {
    pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
    auto const ready = poll(&one, 1, milliseconds_until(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Got::late;
    auto const got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Got::none;
    begin_ = 0, end_ = static_cast<std::size_t>(got);
    return Got::some;
  }
}

Connection::Head Connection::read_head() {
  head_.clear(), head_read_ = 0;
  std::size_t line = 0, kept = 0;  // where this line begins; where it is kept, if it is
  for (;;) {
    if (begin_ == end_) switch (fill(began_ + patience_.read)) {
        case Got::some: break;
        case Got::none: return Head::none;
        case Got::late: return Head::too_slow;
      }
    head_.push_back(buffer_[begin_++]);
    if (head_.size() - line > patience_.line) return line == 0 ? Head::line_too_long : Head::too_large;
    if (kept + head_.size() > patience_.head) return Head::too_large;
    if (!head_.ends_with("\r\n")) continue;
    auto const whole = std::string_view(head_).substr(line);
    if (whole == "\r\n" && line > 0) return Head::whole;
    if (line == 0) old_ = whole.ends_with(" HTTP/1.0\r\n");
    auto const drop = whole == "\r\n" || is_header(whole, "range:") || is_header(whole, "if-range:") ||
                      (old_ && is_header(whole, "connection:"));
    if (drop) kept += whole.size(), head_.resize(line);  // what is dropped counts
    line = head_.size();
  }
}

bool Connection::gone() const {
  pollfd one{.fd = socket_, .events = POLLRDHUP, .revents = 0};
  return poll(&one, 1, 0) > 0;
}

void Connection::refuse(std::string_view answer, std::chrono::milliseconds drain) {
  [[maybe_unused]] auto const sent = ::send(socket_, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  drain_ = drain;
}

void Connection::begin_body() {
  in_body_ = true;
  allowed_ = patience_.body + patience_.body / 4 + 4096;  // chunks have heads, too
}

Connection::Woken Connection::wait(Event const& event, Clock::time_point until) const {
  for (;;) {
    std::array<pollfd, 2> both{
        {{.fd = socket_, .events = POLLRDHUP, .revents = 0}, {.fd = event.file(), .events = POLLIN, .revents = 0}}};
    auto const ready = poll(both.data(), both.size(), milliseconds_until(until));
    if (ready < 0 && errno == EINTR) continue;
    if (both[0].revents != 0) return Woken::gone;
    return ready > 0 ? Woken::event : Woken::time;
  }
}

bool Connection::is_readable() const { return head_read_ < head_.size() || begin_ < end_; }

bool Connection::is_writable() const {
  pollfd one{.fd = socket_, .events = POLLOUT | POLLRDHUP, .revents = 0};
  return poll(&one, 1, 0) >= 0 && (one.revents & (POLLERR | POLLHUP | POLLRDHUP)) == 0;
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (auto const left = std::min(size, head_.size() - head_read_); left > 0) {
    std::copy_n(head_.data() + head_read_, left, to);
    head_read_ += left;
    return static_cast<ssize_t>(left);
  }
  if (trouble_ != Trouble::none) return -1;
  if (begin_ == end_) switch (fill(began_ + patience_.read)) {
      case Got::some: break;
      case Got::none: return 0;
      case Got::late: return trouble_ = Trouble::too_slow, -1;
    }
  auto const count = std::min(size, end_ - begin_);
  if (count > allowed_) return trouble_ = Trouble::body_too_large, -1;
  std::copy_n(buffer_.data() + begin_, count, to);
  begin_ += count, allowed_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(char const* from, std::size_t size) {
  answers_ = true;
  for (std::size_t sent = 0; sent < size;) {
    auto const got = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got >= 0) {
      sent += static_cast<std::size_t>(got);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    auto const before = Clock::now();
    pollfd one{.fd = socket_, .events = POLLOUT, .revents = 0};
    auto const ready = poll(&one, 1, milliseconds_until(before + patience_.write - blocked_));
    blocked_ += Clock::now() - before;
    if (ready == 0) return trouble_ = Trouble::too_slow, -1;
  }
  return static_cast<ssize_t>(size);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) name(address, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0) name(address, ip, port);
}

}  // namespace serve
