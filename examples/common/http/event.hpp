// SPDX-License-Identifier: Apache-2.0
/// \file
/// Wakes threads that wait for several things at once, a socket among them.
#pragma once

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace serve {

/// A flag that poll() can wait for. Any thread may raise it.
class Event {
 public:
  /// \throws std::system_error  if there are no more file descriptors
  Event() : file_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Event() { close(file_); }
  Event(Event const&) = delete;
  Event& operator=(Event const&) = delete;

  void raise() const {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = write(file_, &one, sizeof one);  // fails only where it is raised already
  }
  void lower() const {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const got = read(file_, &count, sizeof count);
  }
  int file() const { return file_; }  ///< readable while raised

 private:
  int file_;
};

}  // namespace serve
