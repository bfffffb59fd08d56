// SPDX-License-Identifier: Apache-2.0
/// \file
/// Work for a client in its connection's thread, which ends when it is late or the client has gone.
#pragma once

#include <http/connection.hpp>
#include <stdexcept>

namespace serve {

/// A request that cannot be admitted, or not be answered in time.
struct Refused : std::runtime_error {
  Refused(int its_status, char const* what) : std::runtime_error(what), status(its_status) {}
  int status;
};
/// The client has closed its side.
struct Gone : std::runtime_error {
  Gone() : std::runtime_error("the client has disconnected") {}
};

/// While it lives, this thread works for the client of its connection.
class Work {
 public:
  explicit Work(Clock::time_point until);
  ~Work();
  Work(Work const&) = delete;
  Work& operator=(Work const&) = delete;

  /// Goes on, if this thread works for a client, only while it is wanted. Cheap: call it every millisecond or so.
  /// \throws Refused  with 504, if it is late
  /// \throws Gone     if the client has disconnected
  static void checkpoint();

 private:
  Clock::time_point until_, next_look_{};  // at the client
};

}  // namespace serve
