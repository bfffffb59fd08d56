// SPDX-License-Identifier: Apache-2.0
/// \file
/// A running request: its sentences in the decoders, and their results.
#pragma once

#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <atomic>
#include <cstddef>
#include <http/admission.hpp>
#include <http/backend.hpp>
#include <http/connection.hpp>
#include <http/event.hpp>
#include <http/fair_queue.hpp>
#include <http/memory.hpp>
#include <http/metrics.hpp>
#include <http/task.hpp>
#include <http/work.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace serve {

/// What the endpoints use.
struct House {
  Backend& backend;
  Admission& admission;
  FairQueue& preparing;  ///< requests that are being prepared
  FairQueue& decoding;   ///< sentences in the decoders
  MemoryPool& memory;
  Metrics& metrics;
  Bounds const& bounds;
};

/// For messages.
std::string megabytes(std::size_t bytes);

/// A request's place among those that are admitted, for as long as it lives. Each of its sentences leaves by itself.
class Admitted {
 public:
  /// \throws Refused
  Admitted(Admission& admission, std::string client, std::size_t sentences);
  ~Admitted();
  Admitted(Admitted const&) = delete;
  Admitted& operator=(Admitted const&) = delete;

  std::string const& client() const { return client_; }
  /// One of the sentences has its result, in any thread.
  void answered() { --open_, admission_.answered(client_); }

 private:
  Admission& admission_;
  std::string client_;
  std::atomic<std::size_t> open_;
};

/// Its client's turn to prepare a request in this thread, for as long as it lives.
class Turn {
 public:
  /// Waits for it.
  /// \throws Refused, Gone
  Turn(FairQueue& queue, std::string const& client, double cost, Clock::time_point until);
  ~Turn();
  Turn(Turn const&) = delete;
  Turn& operator=(Turn const&) = delete;

 private:
  FairQueue& queue_;
  FairQueue::Claim claim_;
  Event mine_;
};

class Flight {
 public:
  /// News of a sentence.
  struct Letter {
    std::size_t index;
    std::vector<sluice::Token> settled{};  ///< new since the last letter
    std::optional<sluice::Result> result{};
  };

  /// Prepares the request, when it is its client's turn; then its sentences are decoded, when it is theirs.
  /// \param settled  whether settled beginnings are wanted
  /// \throws BadField, Refused, Gone, OverBudget  and then nothing has been submitted
  Flight(House const& house, Task const& task, bool settled);
  /// Cancels sentences without a result, and waits for them.
  ~Flight();
  Flight(Flight const&) = delete;
  Flight& operator=(Flight const&) = delete;

  /// Waits for news. If it is called rarely, a sentence has one letter with all that is new.
  /// \throws Gone  if the client has disconnected
  std::vector<Letter> wait();
  /// Sentences whose result wait() has not returned yet.
  std::size_t open() const { return open_; }
  Job& job(std::size_t index) { return *jobs_[index]; }
  /// What a result says. If that is work: when it is the client's turn, and in time; else it is late.
  /// \throws Gone  if the client has disconnected
  Answer answer(Letter const& letter);
  std::size_t size() const { return jobs_.size(); }

 private:
  void prepare(Task const& task);
  void submit(std::size_t index, bool settled, bool express);
  void deliver(std::size_t index, sluice::Result result);
  void expire();
  void withdraw();

  House house_;
  Clock::time_point began_ = Clock::now(), until_;
  Admitted admitted_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::optional<Backend::Ticket>> tickets_;
  std::vector<bool> done_;  // returned
  std::size_t open_ = 0, reserved_ = 0;
  bool text_came_ = false, expired_ = false;
  FairQueue::Claim claim_;

  std::mutex mutex_;  // of the next two
  std::vector<Letter> letters_;
  std::size_t unanswered_ = 0;
  Event came_;
};

}  // namespace serve
