// SPDX-License-Identifier: Apache-2.0
/// \file
/// A block's mbarriers and the bulk copies that complete on them, for an emulated device. Copies arrive late and in any
/// order, and invalid uses are detected.
#pragma once

#include <sluice/cuda/device/detail/score_format.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace sluice::test {

/// The copies of one block. Errors are returned as text; nullptr: no error.
class EmulatedCopies {
 public:
  /// Starts another block.
  /// \param shared    the block's shared memory
  /// \param readable  the memory that copies may read; empty: any
  void begin(std::span<std::byte const> shared, std::span<std::byte const> readable) {
    shared_ = shared, readable_ = readable;
    mbarriers_.clear(), pending_.clear(), stages_.clear(), waited_.clear();
  }

  char const* init(void const* at, unsigned arrivals) {
    if (reinterpret_cast<std::uintptr_t>(at) % 8 != 0) return "an mbarrier is not aligned";
    if (mbarriers_.contains(at)) return "an mbarrier is made twice";
    mbarriers_[at] = {arrivals, arrivals};
    return nullptr;
  }
  void publish() {
    for (auto& [at, mbarrier] : mbarriers_) mbarrier.published = true;
  }
  char const* arrive(void const* at, std::int64_t bytes) {
    auto const found = mbarriers_.find(at);
    if (found == mbarriers_.end()) return "somebody arrives at what is no mbarrier";
    auto& mbarrier = found->second;
    if (mbarrier.left == 0) return "more arrive at an mbarrier than it counts";
    --mbarrier.left, mbarrier.bytes += bytes;
    mbarrier.turn();
    return nullptr;
  }
  /// \param ordered  whether the thread has executed a proxy fence after its last wait
  char const* issue(void* to, void const* from, std::size_t bytes, void const* at, bool ordered) {
    auto const found = mbarriers_.find(at);
    if (found == mbarriers_.end()) return "a copy is to complete on what is no mbarrier";
    if (!found->second.published) return "a copy may not see its mbarrier yet";
    if (bytes == 0) return "a copy of nothing";
    for (auto const number : {reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from),
                              static_cast<std::uintptr_t>(bytes)})
      if (number % 16 != 0) return "a bulk copy is not aligned";
    if (!inside(shared_, to, bytes)) return "a bulk copy writes outside the block's memory";
    if (!readable_.empty() && !inside(readable_, from, bytes)) return "a bulk copy reads outside the lines";
    auto* const first = static_cast<unsigned char*>(to);
    for (auto const& copy : pending_)
      if (first < copy.stage.end && copy.stage.begin < first + bytes)
        return "a stage is filled while it is being filled";
    auto const before =
        std::erase_if(stages_, [&](Stage const& stage) { return first < stage.end && stage.begin < first + bytes; });
    if (before > 0 && !ordered) return "a stage is filled again without a proxy fence behind its readers";
    std::memset(to, 0xff, bytes);  // NaN until it arrives
    stages_.push_back({first, first + bytes, at, found->second.phase});
    pending_.push_back({static_cast<unsigned char const*>(from), stages_.back()});
    return nullptr;
  }
  bool pending() const { return !pending_.empty(); }
  /// Completes one copy.
  /// \param any  selects it: any number
  void deliver(std::size_t any) {
    std::swap(pending_[any % pending_.size()], pending_.back());
    auto const [from, stage] = pending_.back();
    pending_.pop_back();
    std::memcpy(stage.begin, from, static_cast<std::size_t>(stage.end - stage.begin));
    auto& mbarrier = mbarriers_[stage.mbarrier];
    mbarrier.bytes -= stage.end - stage.begin;
    mbarrier.turn();
  }

  /// Whether the phase of this parity has ended; if so, the thread may read what arrived with it.
  bool passes(int thread, void const* at, unsigned parity) {
    auto const found = mbarriers_.find(at);
    if (found == mbarriers_.end() || found->second.phase % 2 == parity) return false;
    waited_[{thread, at}] = found->second.phase;
    return true;
  }
  bool exists(void const* at) const { return mbarriers_.contains(at); }
  /// \param words  the words read
  char const* read(int thread, void const* from, cuda::detail::Words& words) const {
    if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) return "a stage is not read at a multiple of 16";
    auto const* const at = static_cast<unsigned char const*>(from);
    std::memcpy(&words, at, sizeof(words));
    for (auto const& stage : stages_) {
      if (at < stage.begin || at + 16 > stage.end) continue;
      auto const waited = waited_.find({thread, stage.mbarrier});
      return waited != waited_.end() && waited->second > stage.phase ? nullptr
                                                                     : "a stage is read that nobody waited for";
    }
    return "a stage is read that nobody fills";
  }

 private:
  struct Mbarrier {
    unsigned count = 0, left = 0;
    unsigned phase = 0;      // number of phases that have ended
    std::int64_t bytes = 0;  // bytes still to arrive
    bool published = false;
    void turn() {
      if (left == 0 && bytes == 0) ++phase, left = count;
    }
  };
  struct Stage {
    unsigned char *begin, *end;
    void const* mbarrier;
    unsigned phase;  // it has arrived at the end of this phase
  };
  struct Copy {
    unsigned char const* from;
    Stage stage;
  };
  static bool inside(std::span<std::byte const> memory, void const* at, std::size_t bytes) {
    auto const* const first = static_cast<std::byte const*>(at);
    return first >= memory.data() && first + bytes <= memory.data() + memory.size();
  }

  std::span<std::byte const> shared_, readable_;
  std::map<void const*, Mbarrier> mbarriers_;
  std::vector<Copy> pending_;
  std::vector<Stage> stages_;                               // the latest copy to each address
  std::map<std::pair<int, void const*>, unsigned> waited_;  // phases that have ended, as far as a thread knows
};

}  // namespace sluice::test
