// SPDX-License-Identifier: Apache-2.0
/// \file
/// Communication between the ranks of one run.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <string>

namespace translate_mpi {

/// All ranks, for as long as the program runs. An error of MPI ends them all.
class Ranks {
 public:
  Ranks(int& argc, char**& argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);  // decoders in threads ask in turn
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    serialized_ = provided >= MPI_THREAD_SERIALIZED;
  }
  Ranks(Ranks const&) = delete;
  Ranks& operator=(Ranks const&) = delete;
  ~Ranks() { MPI_Finalize(); }

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool first() const { return rank_ == 0; }
  bool threads() const { return serialized_; }

  void wait() const { MPI_Barrier(MPI_COMM_WORLD); }
  std::uint64_t sum(std::uint64_t value) const { return reduced(value, MPI_SUM); }
  std::uint64_t least(std::uint64_t value) const { return reduced(value, MPI_MIN); }
  std::uint64_t largest(std::uint64_t value) const { return reduced(value, MPI_MAX); }
  /// Of the ranks before this one.
  std::uint64_t sum_before(std::uint64_t value) const {
    std::uint64_t sum = 0;
    MPI_Exscan(&value, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return rank_ == 0 ? 0 : sum;  // where it is not written
  }

 private:
  std::uint64_t reduced(std::uint64_t value, MPI_Op op) const {
    std::uint64_t all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_UINT64_T, op, MPI_COMM_WORLD);
    return all;
  }

  int rank_ = 0, count_ = 1;
  bool serialized_ = false;
};

/// A rank has failed, and the first that did has said why.
struct Agreed : std::exception {
  char const* what() const noexcept override { return "another rank has failed"; }
};

/// Calls `work`, which may fail on any rank, and throws on all ranks if it did. `work` must not wait for other ranks.
/// \throws what `work` throws, on the first rank where it failed
inline void together(Ranks const& ranks, std::function<void()> const& work) {
  constexpr auto none = std::numeric_limits<std::uint64_t>::max();
  std::exception_ptr problem;
  try {
    work();
  } catch (...) {
    problem = std::current_exception();
  }
  auto const rank = static_cast<std::uint64_t>(ranks.rank());
  auto const first = ranks.least(problem == nullptr ? none : rank);
  if (first == none) return;
  if (first == rank) std::rethrow_exception(problem);
  throw Agreed();
}

/// 0, 1, 2, ...: each number once, to any rank that asks. The number is in a window of rank 0's memory, where others add to
/// it: no rank is asked, and the first rank's computation does not wait for it.
class Counter {
 public:
  explicit Counter(Ranks const& ranks) : host_(ranks.first()) {
    auto const bytes = static_cast<MPI_Aint>(host_ ? sizeof(std::uint64_t) : 0);
    MPI_Win_allocate(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &number_, &window_);
    MPI_Win_lock_all(0, window_);
    if (host_) {
      *number_ = 0;
      MPI_Win_sync(window_);
    }
    ranks.wait();
  }
  Counter(Counter const&) = delete;
  Counter& operator=(Counter const&) = delete;
  /// Waits for all ranks.
  ~Counter() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  std::uint64_t next() {
    std::lock_guard const lock(mutex_);
    std::uint64_t const one = 1;
    std::uint64_t number = 0;
    MPI_Fetch_and_op(&one, &number, MPI_UINT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return number;
  }
  /// Without a network card that adds (TCP), the first rank adds for the others whenever it calls MPI, so it calls often.
  void serve() {
    if (!host_) return;
    std::lock_guard const lock(mutex_);
    int some = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &some, MPI_STATUS_IGNORE);
  }

 private:
  bool host_;
  std::uint64_t* number_ = nullptr;
  MPI_Win window_{};
  std::mutex mutex_;
};

}  // namespace translate_mpi
