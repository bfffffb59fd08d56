// SPDX-License-Identifier: Apache-2.0
/// \file
/// Traces of requests of the C interface.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/trace_each.hpp>
#include <sluice/decode/trace_file.hpp>

#include "handles.hpp"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace sluice::c {

using EachTrace = TraceEach<TraceFile>;

/// A trace that a request has, until this is destroyed. None, if made of null.
class TakenTrace {
 public:
  TakenTrace() = default;
  /// \throws std::invalid_argument  if another request has it
  explicit TakenTrace(sluice_trace* trace) {
    if (trace == nullptr) return;
    require(!trace->taken.exchange(true), "trace", "taken", "must be of one request at a time");
    trace_ = trace;
  }
  TakenTrace(TakenTrace&& other) noexcept : trace_(std::exchange(other.trace_, nullptr)) {}
  TakenTrace& operator=(TakenTrace&& other) noexcept {
    std::swap(trace_, other.trace_);
    return *this;
  }
  ~TakenTrace() { release(); }

  void release() {
    if (trace_ != nullptr) trace_->taken = false;
    trace_ = nullptr;
  }

  /// Forgets what it has of an earlier request.
  TraceFile begin(std::uint64_t id, TokenBytes const& bytes) const {
    trace_->lines.str({});
    trace_->lines.clear();
    TraceFile::Texts texts;
    if (!bytes.empty()) texts = [bytes](Token token) { return std::string(bytes.bytes(token)); };
    TraceFile made(trace_->lines, std::move(texts));
    if (!trace_->about.empty()) made.describe(id, trace_->about);
    return made;
  }

 private:
  sluice_trace* trace_ = nullptr;
};

/// Those of a server, whose worker asks for the trace of a request by the number that submit() returns, maybe before it has returned:
/// it waits for know(), which the thread that submits calls next.
class Traces {
 public:
  using Held = std::shared_ptr<TakenTrace>;

  /// Null for null.
  static Held take(sluice_trace* trace) { return trace == nullptr ? nullptr : std::make_shared<TakenTrace>(trace); }

  void know(std::uint64_t id, Held const& trace) {
    std::lock_guard const lock(mutex_);
    if (over_.erase(id) == 0) live_.emplace(id, trace);
    known_.notify_all();
  }
  TraceFile begin(std::uint64_t id, TokenBytes const& bytes) {
    std::unique_lock lock(mutex_);
    known_.wait(lock, [&] { return live_.contains(id); });
    return live_.at(id)->begin(id, bytes);
  }
  void end(std::uint64_t id, TakenTrace& trace) {
    std::lock_guard const lock(mutex_);
    trace.release();
    if (live_.erase(id) == 0) over_.insert(id);  // it has ended before it was known
  }

 private:
  std::mutex mutex_;
  std::condition_variable known_;
  std::map<std::uint64_t, Held> live_;
  std::set<std::uint64_t> over_;
};

}  // namespace sluice::c
