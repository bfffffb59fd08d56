// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bounds the memory of requests: memory.cpp replaces the global operator new, which asks first.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>

namespace serve {

/// The memory of all requests together. Any thread may call.
class MemoryPool {
 public:
  /// \param most  bytes
  explicit MemoryPool(std::size_t most) : most_(most) {}
  bool take(std::size_t bytes) {
    if (used_.fetch_add(bytes) + bytes <= most_) return true;
    used_ -= bytes;
    return false;
  }
  void give(std::size_t bytes) { used_ -= bytes; }
  std::size_t used() const { return used_; }
  std::size_t most() const { return most_; }

 private:
  std::size_t most_;
  std::atomic<std::size_t> used_ = 0;
};

/// A request wants more memory than it may have, or than all requests may have together.
struct OverBudget : std::bad_alloc {
  OverBudget(char const* which, std::size_t limit, bool of_all) : field(which), most(limit), together(of_all) {}
  char const* what() const noexcept override { return "the request takes too much memory"; }
  char const* field;  ///< for which it was; may be empty
  std::size_t most;   ///< bytes
  bool together;      ///< of all requests
};

/// The memory of one request: what its thread allocates, less what it frees. What the decoders allocate for it, which are
/// other threads, is reserved beforehand.
class Account {
 public:
  /// \param most  bytes; \param pool  must outlive this
  Account(MemoryPool& pool, std::size_t most) : pool_(pool), most_(most) {}
  /// Gives everything back; after a large request also to the system.
  ~Account();
  Account(Account const&) = delete;
  Account& operator=(Account const&) = delete;

  /// \throws OverBudget  and then nothing has been taken
  void take(std::size_t bytes);
  void give(std::size_t bytes) { used_ = used_ > bytes ? used_ - bytes : 0; }
  /// A little more than was taken, which the allocator has given.
  void add(std::size_t bytes) { used_ += bytes; }
  /// What has been taken in excess of what was given.
  std::size_t used() const { return used_; }

  /// While it lives, this thread's allocations are taken from the account. nullptr: from none, as what outlives the request.
  class Counting {
   public:
    explicit Counting(Account* account);
    ~Counting();
    Counting(Counting const&) = delete;
    Counting& operator=(Counting const&) = delete;

   private:
    Account* before_;
  };
  /// The account of this thread; nullptr: none.
  static Account* current();

  /// While it lives, errors name this field of the request.
  class Naming {
   public:
    explicit Naming(char const* field);
    ~Naming();
    Naming(Naming const&) = delete;
    Naming& operator=(Naming const&) = delete;

   private:
    Account* account_ = current();
    char const* before_ = "";
  };

 private:
  static constexpr std::size_t chunk = 65536;  // taken from the pool at a time

  MemoryPool& pool_;
  std::size_t most_, used_ = 0, peak_ = 0, reserved_ = 0;
  char const* field_ = "";
};

/// Tells the allocator to give memory back to the system, and not to hold some for each thread. At the beginning of a program.
void spare_memory();

}  // namespace serve
