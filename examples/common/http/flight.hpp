// SPDX-License-Identifier: Apache-2.0
/// \file
/// A running request: its sentences in the decoders, and their results.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <http/admission.hpp>
#include <http/backend.hpp>
#include <http/connection.hpp>
#include <http/event.hpp>
#include <http/metrics.hpp>
#include <http/task.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

namespace serve {

/// What the endpoints use.
struct House {
  Backend& backend;
  Admission& admission;
  Metrics& metrics;
  Bounds const& bounds;
};

/// A request that cannot be admitted.
struct Refused : std::runtime_error {
  Refused(int its_status, char const* what) : std::runtime_error(what), status(its_status) {}
  int status;
};
/// The client has closed its side.
struct Gone : std::runtime_error {
  Gone() : std::runtime_error("the client has disconnected") {}
};

class Flight {
 public:
  /// News of a sentence.
  struct Letter {
    std::size_t index;
    std::vector<sluice::Token> settled{};  ///< all that is; empty: nothing new
    std::optional<sluice::Result> result{};
  };

  /// \param settled  whether settled beginnings are wanted
  /// \throws BadField, Refused  and then nothing has been submitted
  Flight(House const& house, Task const& task, bool settled);
  /// Cancels sentences without a result, and waits for them.
  ~Flight();
  Flight(Flight const&) = delete;
  Flight& operator=(Flight const&) = delete;

  /// Waits for news. If it is called rarely, only the last settled beginning of each sentence is kept.
  /// \throws Gone  if the client has disconnected
  std::vector<Letter> wait();
  /// Sentences whose result wait() has not returned yet.
  std::size_t open() const { return open_; }
  Job& job(std::size_t index) { return *jobs_[index]; }
  std::size_t size() const { return jobs_.size(); }

 private:
  void withdraw();

  House house_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::optional<Backend::Ticket>> tickets_;
  std::vector<bool> done_;  // returned
  std::size_t open_ = 0;
  Clock::time_point began_ = Clock::now();
  bool text_came_ = false;

  std::mutex mutex_;  // of the next two
  std::vector<Letter> letters_;
  std::size_t unanswered_ = 0;
  Event came_;
};

}  // namespace serve
