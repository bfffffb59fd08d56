// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs the blocks of a kernel on one host thread as a device might: several blocks at once, their threads in any order
/// between two barriers, with stores that other threads see late.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <support/emulated_copies.hpp>
#include <support/fiber_stack.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sluice::test {

/// The mechanisms that a mutation removes.
struct DeviceFaults {
  cuda::detail::Barrier skipped = cuda::detail::Barrier::count_;
  bool no_fence = false;   ///< stores become visible at any time
  bool no_ticket = false;  ///< every block considers itself the last

  // For rings. A wait for an mbarrier counts as a Barrier too.
  bool no_init_fence = false;  ///< mbarriers are not published
  bool no_arrival = false;     ///< no thread reports that a stage is empty
  bool no_bytes = false;       ///< no thread announces the number of bytes to come
  bool no_proxy_fence = false;
  bool nothing() const {
    return skipped == cuda::detail::Barrier::count_ && !no_fence && !no_ticket && !no_init_fence && !no_arrival &&
           !no_bytes && !no_proxy_fence;
  }
};

/// Runs blocks of `threads_` threads (fibers), and producers_ more that take part in no barrier but sync_all(). The same seed
/// gives the same order.
template <int threads_, int producers_ = 0>
class EmulatedDevice {
  struct Fiber;
  struct Team;

 public:
  /// The interface of DeviceBlock, as a program sees its block.
  class Block {
   public:
    static constexpr int threads = threads_;
    static constexpr int producers = producers_;
    static constexpr int warps = threads / 32;

    Block(EmulatedDevice& device, Team& team, int thread) : device_(&device), team_(&team), thread_(thread) {}
    int thread() const { return thread_; }
    int lane() const { return thread_ % 32; }
    int warp() const { return thread_ / 32; }

    void sync(cuda::detail::Barrier barrier) {
      device_->seen_.at(static_cast<std::size_t>(barrier)) = true;
      if (thread_ == 0) ++device_->met_.at(static_cast<std::size_t>(barrier));
      if (barrier != device_->faults_.skipped) device_->wait(static_cast<int>(barrier));
    }
    void sync_all(cuda::detail::Barrier barrier) {
      device_->seen_.at(static_cast<std::size_t>(barrier)) = true;
      if (barrier != device_->faults_.skipped) device_->wait(with_producers + static_cast<int>(barrier));
    }
    void converge() {}  // lanes exchange what they multiply, and so wait for each other
    void sync_warp(cuda::detail::Barrier barrier) {
      device_->seen_.at(static_cast<std::size_t>(barrier)) = true;
      if (barrier != device_->faults_.skipped) device_->wait(in_warp);
    }
    template <class Value>
    Value exchange(Value value, int distance) {
      static_assert(sizeof(Value) <= 8);
      auto& fiber = device_->current();
      auto& slots = team_->slots[fiber.exchanges++ % 2];
      std::memcpy(&slots[static_cast<std::size_t>(thread_)], &value, sizeof(value));
      device_->wait(in_warp);
      std::memcpy(&value, &slots[static_cast<std::size_t>(thread_ ^ distance)], sizeof(value));
      return value;
    }
    std::uint32_t largest(std::uint32_t value) {
      auto const all = all_lanes(value);
      return static_cast<std::uint32_t>(*std::max_element(all.begin(), all.end()));
    }
    std::uint32_t ballot(bool vote) {
      auto& fiber = device_->current();
      auto& slots = team_->slots[fiber.exchanges++ % 2];
      slots[static_cast<std::size_t>(thread_)] = vote ? 1 : 0;
      device_->wait(in_warp);
      std::uint32_t votes = 0;
      for (int lane = 0; lane < 32; ++lane)
        votes |= static_cast<std::uint32_t>(slots[static_cast<std::size_t>(32 * warp() + lane)]) << lane;
      return votes;
    }
    /// mma.m16n8k16 as the PTX ISA documents it (9.7.14.5.8), with its names: the elements of A, B and C that the a_i,
    /// b_i and c_i of a lane hold. Products are exact in float32; they are added one by one, in ascending order of k.
    template <class Format>
    void multiply_add(float (&c)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2]) {
      static_assert(sizeof(typename Format::Bits) == 2);
      float A[16][16], B[16][8];
      auto const element = [](std::uint64_t pair, int i) {  // the i-th of four numbers
        return Format::value(static_cast<std::uint16_t>(pair >> (16 * i)));
      };
      auto const pair = [](std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; };
      auto const a_low = all_lanes(pair(a[0], a[1])), a_high = all_lanes(pair(a[2], a[3]));
      auto const b_all = all_lanes(pair(b[0], b[1]));
      for (int laneid = 0; laneid < 32; ++laneid) {
        auto const group_id = laneid >> 2, thread_in_group = laneid % 4;
        auto const at = static_cast<std::size_t>(laneid);
        for (int i = 0; i < 8; ++i) {
          auto const row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group_id : group_id + 8;
          auto const col = i < 4 ? thread_in_group * 2 + (i & 1) : thread_in_group * 2 + (i & 1) + 8;
          A[row][col] = i < 4 ? element(a_low[at], i) : element(a_high[at], i - 4);
        }
        for (int i = 0; i < 4; ++i) {
          auto const row = i < 2 ? thread_in_group * 2 + (i & 1) : thread_in_group * 2 + (i & 1) + 8;
          B[row][group_id] = element(b_all[at], i);
        }
      }
      auto const group_id = lane() >> 2, thread_in_group = lane() % 4;
      for (int i = 0; i < 4; ++i) {
        auto const row = i < 2 ? group_id : group_id + 8, col = thread_in_group * 2 + (i & 1);
        for (int k = 0; k < 16; ++k) c[i] += A[row][k] * B[k][col];
      }
    }
    int add(int* counter, int n) { return std::exchange(*counter, *counter + n); }
    void set(std::uint32_t* word, std::uint32_t bits) { *word |= bits; }
    cuda::detail::Words read16(void const* from) const {
      if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) device_->fail("a load of 16 bytes is not aligned");
      cuda::detail::Words words;
      std::memcpy(&words, from, sizeof(words));
      return words;
    }
    void write16(void* to, cuda::detail::Words const& words) const {
      if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0) device_->fail("a store of 16 bytes is not aligned");
      std::memcpy(to, &words, sizeof(words));
    }
    template <class Value>
    Value read(Value const* from) const {
      if constexpr (std::is_same_v<Value, Token>) ++device_->tokens_read;
      return *from;
    }
    template <class Value>
    void store(Value* to, Value value) {
      device_->current().stores.push_back([to, value] { *to = value; });
      if (device_->one_of(4)) device_->wait(nowhere);
    }
    template <class Value>
    Value load(Value const* from) {
      if (device_->one_of(16)) device_->wait(nowhere);
      return *from;
    }
    void fence() {
      if (device_->faults_.no_fence) return;
      team_->publish();
      device_->current().publish();
    }
    unsigned ticket(unsigned* counter, unsigned last) {
      device_->wait(nowhere);
      auto const before = std::exchange(*counter, *counter >= last ? 0 : *counter + 1);
      if (device_->one_of(2)) device_->left_ = team_, device_->away_ = 32;
      device_->wait(nowhere);
      return device_->faults_.no_ticket ? last : before;
    }

    void init_mbarrier(std::uint64_t* mbarrier, unsigned arrivals) {
      device_->trap(team_->copies.init(mbarrier, arrivals));
      if (device_->one_of(2)) device_->wait(nowhere);
    }
    void publish_mbarriers() {
      if (!device_->faults_.no_init_fence) team_->copies.publish();
    }
    void arrive(cuda::detail::Barrier, std::uint64_t* mbarrier) {
      if (device_->faults_.no_arrival) return;
      device_->trap(team_->copies.arrive(mbarrier, 0));
      device_->wake(*team_);
    }
    void arrive_expecting(std::uint64_t* mbarrier, unsigned bytes) {
      device_->trap(team_->copies.arrive(mbarrier, device_->faults_.no_bytes ? 0 : bytes));
      device_->wake(*team_);
      if (device_->one_of(4)) device_->wait(nowhere);
    }
    void wait(cuda::detail::Barrier which, std::uint64_t* mbarrier, unsigned parity) {
      device_->seen_.at(static_cast<std::size_t>(which)) = true;
      if (!team_->copies.exists(mbarrier)) device_->fail("somebody waits for what is no mbarrier");
      auto& fiber = device_->current();
      fiber.ordered = false;
      if (which == device_->faults_.skipped) return;
      fiber.mbarrier = mbarrier, fiber.parity = parity;
      if (!team_->copies.passes(thread_, mbarrier, parity)) device_->wait(at_mbarrier);
    }
    void order_copies() { device_->current().ordered = !device_->faults_.no_proxy_fence; }
    void copy_bulk(void* to, void const* from, unsigned bytes, std::uint64_t* mbarrier) {
      device_->trap(team_->copies.issue(to, from, bytes, mbarrier, device_->current().ordered));
      ++device_->bulk_copies;
      if (device_->one_of(4)) device_->wait(nowhere);
    }
    cuda::detail::Words read_stage(void const* from) const {
      cuda::detail::Words words{};
      device_->trap(team_->copies.read(thread_, from, words));
      return words;
    }

    // A skipped barrier of a cluster is neither arrived at nor waited for.
    void arrive_cluster(cuda::detail::Barrier barrier) {
      device_->seen_.at(static_cast<std::size_t>(barrier)) = true;
      if (barrier != device_->faults_.skipped) device_->arrive_cluster(*team_, false);
    }
    void wait_cluster(cuda::detail::Barrier barrier) {
      if (barrier == device_->faults_.skipped) return;
      auto& fiber = device_->current();
      if (team_->cluster->phase <= fiber.phase) device_->wait(at_cluster);
      ++fiber.phase;
    }
    void sync_cluster(cuda::detail::Barrier barrier) {
      device_->seen_.at(static_cast<std::size_t>(barrier)) = true;
      if (barrier != device_->faults_.skipped) device_->arrive_cluster(*team_, true);
      wait_cluster(barrier);
    }
    template <class Value>
    void store_first(Value* to, Value value) {
      auto const& cluster = *team_->cluster;
      if (cluster.phase == 0) return device_->fail("a store to a block that may not have begun");
      if (cluster.first_ended) return device_->fail("a store to a block that has ended");
      auto const at = reinterpret_cast<std::byte*>(to) - reinterpret_cast<std::byte*>(team_->memory.data());
      auto* const there = reinterpret_cast<std::byte*>(cluster.teams.front()->memory.data()) + at;
      device_->current().stores.push_back([there, value] { std::memcpy(there, &value, sizeof(value)); });
      if (device_->one_of(4)) device_->wait(nowhere);
    }

    static float exp2(float x) { return std::exp2(x); }
    static float log(float x) { return std::log(x); }

   private:
    /// Collects a value from all lanes of the warp.
    std::array<std::uint64_t, 32> all_lanes(std::uint64_t value) {
      auto& slots = team_->slots[device_->current().exchanges++ % 2];
      slots[static_cast<std::size_t>(thread_)] = value;
      device_->wait(in_warp);
      std::array<std::uint64_t, 32> all;
      std::copy_n(slots.begin() + 32 * warp(), 32, all.begin());
      return all;
    }

    EmulatedDevice* device_;
    Team* team_;
    int thread_;
  };

  /// Runs Program(Block&, Memory&, block number) for every thread of `blocks` blocks, each with its own Memory,
  /// `residents` of them at once, or as many clusters as these make. Memory starts as garbage: keys of place 0, so that
  /// results of mutations go wrong but no access goes astray.
  template <class Memory, class Program>
  void run(int blocks, int residents, std::uint64_t seed, DeviceFaults faults, Program const& program) {
    random_.seed(seed), faults_ = faults;
    residents = (residents + of_cluster - 1) / of_cluster * of_cluster;
    while (teams_.size() < static_cast<std::size_t>(residents)) teams_.push_back(std::make_unique<Team>());
    auto next = 0;
    std::vector<Team*> busy, idle;
    for (int i = 0; i < residents; ++i) idle.push_back(teams_[static_cast<std::size_t>(i)].get());
    while (next < blocks || !busy.empty()) {
      std::shared_ptr<Cluster> cluster;
      while (next < blocks && (next % of_cluster > 0 || std::ssize(idle) >= of_cluster)) {
        busy.push_back(idle.back()), idle.pop_back();
        auto& team = *busy.back();
        if (next % of_cluster == 0) cluster = std::make_shared<Cluster>();
        cluster->teams.push_back(&team), team.cluster = cluster;
        team.memory.resize(sizeof(Memory) / sizeof(std::uint64_t) + 1);
        for (auto& word : team.memory) word = random_() << 32 | 0xffffffffu;
        team.copies.begin(std::as_bytes(std::span(team.memory)), readable);
        for (int t = 0; t < everybody; ++t) begin<Memory>(team, t, next, program);
        ++next;
      }
      for (auto turns = 1 + random_() % 64; turns > 0; --turns) {  // stay with one block for a while
        auto& team = next_team(busy);
        while (!team.ready.empty() && !one_of(8 * threads)) {
          step(team);
          if (left_ == &team && away_ == 32) break;
        }
        release(team);
        if (team.done == everybody) {
          if (team.copies.pending()) fail("a block ends while copies to its memory are under way");
          if (&team == team.cluster->teams.front()) team.cluster->first_ended = true;
          idle.push_back(&team);
          busy.erase(std::find(busy.begin(), busy.end(), &team));
          break;
        }
      }
    }
  }

  int of_cluster = 1;                     ///< blocks
  std::span<std::byte const> readable{};  ///< the memory that bulk copies may read; empty: any
  std::uint64_t bulk_copies = 0;          ///< so far
  bool racing = false;                    ///< one warp runs ahead of the others, sometimes a different one
  std::uint64_t tokens_read = 0;          ///< by all threads so far: reads of edits, where lines are read
  bool uneven = false;                    ///< sometimes one warp falls behind the others

  /// An error that no answer shows.
  std::string const& failure() const { return failure_; }
  /// Whether a program ever reached this barrier.
  bool has_seen(cuda::detail::Barrier barrier) const { return seen_[static_cast<std::size_t>(barrier)]; }
  /// How often blocks have met at it.
  std::size_t met(cuda::detail::Barrier barrier) const { return met_[static_cast<std::size_t>(barrier)]; }

 private:
  static constexpr int threads = threads_, everybody = threads_ + producers_;
  static constexpr int with_producers = 1000;  // and above: a barrier for everybody
  static constexpr int running = -1, in_warp = -2, nowhere = -3, ended = -4, at_mbarrier = -5, at_cluster = -6;

  struct Fiber {
    FiberStack stack;
    StackPlace place;
    std::function<void()> program;
    std::vector<std::function<void()>> stores;
    unsigned exchanges = 0;
    int waits = running;
    void const* mbarrier = nullptr;
    unsigned parity = 0;
    bool ordered = false;  // a proxy fence was executed after its last wait
    int phase = 0;         // of the cluster's barrier: so many it has waited for
    void publish() {
      for (auto const& store : stores) store();
      stores.clear();
    }
  };
  struct Cluster {
    std::vector<Team*> teams;
    int arrived = 0, phase = 0;  // threads at the barrier; barriers that all have reached
    bool first_ended = false;
  };
  struct Team {
    /// Stores that precede the last barrier: a fence of any of the block's threads orders them, too.
    std::vector<std::function<void()>> passed;
    void publish() {
      for (auto const& store : passed) store();
      passed.clear();
    }
    std::array<Fiber, everybody> fibers;
    std::array<std::array<std::uint64_t, everybody>, 2> slots;
    std::vector<std::uint64_t> memory;
    EmulatedCopies copies;
    std::shared_ptr<Cluster> cluster;
    std::vector<int> ready;
    int done = 0;
  };

  Team& next_team(std::vector<Team*> const& busy) {
    auto const at = random_() % busy.size();
    if (busy[at] != left_ || away_ == 0) return *busy[at];
    --away_;
    return *busy[(at + 1) % busy.size()];
  }

  template <class Memory, class Program>
  void begin(Team& team, int thread, int number, Program const& program) {
    if (thread == 0) team.ready.clear(), team.done = 0;
    auto& fiber = team.fibers[static_cast<std::size_t>(thread)];
    fiber.exchanges = 0, fiber.waits = running, fiber.ordered = false, fiber.phase = 0;
    fiber.program = [this, &team, thread, number, &program] {
      Block block(*this, team, thread);
      program(block, *reinterpret_cast<Memory*>(team.memory.data()), number);
    };
    fiber.stack.begin(fiber.place, &EmulatedDevice::enter, this);
    team.ready.push_back(thread);
  }

  static void enter(void* device) {
    auto* const self = static_cast<EmulatedDevice*>(device);
    self->current().program();
    self->wait(ended);
  }

  /// Runs one ready thread until it waits.
  void step(Team& team) {
    auto at = random_() % team.ready.size();
    if (racing) {
      if (one_of(8 * 32)) favoured_ = static_cast<int>(random_() % (threads / 32));
      for (int tries = 0; tries < 3 && team.ready[at] / 32 != favoured_; ++tries) at = random_() % team.ready.size();
    }
    if (uneven && one_of(2 * threads)) shunned_ = static_cast<int>(random_() % (threads / 32 + 1));
    for (int tries = 0; uneven && tries < 16 && team.ready[at] / 32 == shunned_; ++tries)
      at = random_() % team.ready.size();
    auto const thread = team.ready[at];
    team.ready[at] = team.ready.back(), team.ready.pop_back();
    auto& fiber = team.fibers[static_cast<std::size_t>(thread)];
    current_ = &fiber;
    fiber.waits = running;
    switch_stack(&scheduler_, &fiber.place);
    if (fiber.waits == nowhere) team.ready.push_back(thread);
    if (fiber.waits == in_warp) release_warp(team, thread / 32);
    if (fiber.waits == ended) ++team.done, team.publish(), fiber.publish();
    if (one_of(16)) fiber.publish();  // stores may also become visible early
    if (one_of(16 * threads)) team.publish();
    if (team.copies.pending() && one_of(threads)) deliver(team);
  }

  void wait(int where) {
    auto& fiber = current();
    fiber.waits = where;
    switch_stack(&fiber.place, &scheduler_);
  }

  void release_warp(Team& team, int warp) {
    for (int t = 32 * warp; t < 32 * warp + 32; ++t)
      if (team.fibers[static_cast<std::size_t>(t)].waits != in_warp) return;
    for (int t = 32 * warp; t < 32 * warp + 32; ++t) {
      team.fibers[static_cast<std::size_t>(t)].waits = running;
      team.ready.push_back(t);
    }
  }

  /// \param release  whether what all have stored becomes visible
  void arrive_cluster(Team& team, bool release) {
    auto& cluster = *team.cluster;
    if (++cluster.arrived < of_cluster * everybody) return;
    cluster.arrived = 0, ++cluster.phase;
    for (auto* const other : cluster.teams) {
      if (release) other->publish();
      for (int t = 0; t < everybody; ++t) {
        auto& fiber = other->fibers[static_cast<std::size_t>(t)];
        if (release) fiber.publish();
        if (fiber.waits != at_cluster) continue;
        fiber.waits = running;
        other->ready.push_back(t);
      }
    }
  }
  /// Whether nobody goes on but by a barrier of the cluster.
  bool waits_for_cluster(Team const& team) const {
    return team.done == everybody ||
           (team.ready.empty() && std::all_of(team.fibers.begin(), team.fibers.end(), [](Fiber const& fiber) {
              return fiber.waits == at_cluster || fiber.waits == ended;
            }));
  }

  void deliver(Team& team) {
    team.copies.deliver(random_());
    wake(team);
  }
  /// Wakes threads whose mbarrier phase has ended.
  void wake(Team& team) {
    for (int t = 0; t < everybody; ++t) {
      auto& fiber = team.fibers[static_cast<std::size_t>(t)];
      if (fiber.waits != at_mbarrier || !team.copies.passes(t, fiber.mbarrier, fiber.parity)) continue;
      fiber.waits = running;
      team.ready.push_back(t);
    }
  }

  /// Requires all threads of a block to reach the same barrier, and releases them.
  void release(Team& team) {
    if (!team.ready.empty() || team.done == everybody) return;
    auto const barrier = team.fibers[0].waits;
    auto const who = barrier >= with_producers ? everybody : threads;
    auto const meets = [&](Fiber const& fiber) { return fiber.waits == barrier; };
    if (barrier >= 0 && std::all_of(team.fibers.begin(), team.fibers.begin() + who, meets)) return pass(team, who);
    if (waits_for_cluster(team)) {
      auto const& all = team.cluster->teams;
      if (!std::all_of(all.begin(), all.end(), [&](Team const* other) { return waits_for_cluster(*other); })) return;
      fail("somebody waits for a cluster that does not meet");
      team.done = everybody;
      return;
    }
    auto const waits = [](Fiber const& fiber) { return fiber.waits == at_mbarrier; };
    if (std::any_of(team.fibers.begin(), team.fibers.end(), waits)) {
      if (team.copies.pending()) return deliver(team);
      fail("somebody waits for what never comes");
      team.done = everybody;
      return;
    }
    fail("the threads of a block wait at different barriers");
    team.done = everybody;  // abandon them
  }
  /// The first `who` threads have met.
  void pass(Team& team, int who) {
    for (int t = 0; t < who; ++t) {
      auto& fiber = team.fibers[static_cast<std::size_t>(t)];
      std::move(fiber.stores.begin(), fiber.stores.end(), std::back_inserter(team.passed));
      fiber.stores.clear();
      fiber.waits = running;
      team.ready.push_back(t);
    }
  }

  void trap(char const* wrong) {
    if (wrong != nullptr) fail(wrong);
  }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  Fiber& current() { return *current_; }
  bool one_of(std::uint64_t n) { return random_() % n == 0; }

  std::vector<std::unique_ptr<Team>> teams_;
  std::mt19937_64 random_;
  DeviceFaults faults_;
  std::array<bool, static_cast<std::size_t>(cuda::detail::Barrier::count_)> seen_{};
  std::array<std::size_t, static_cast<std::size_t>(cuda::detail::Barrier::count_)> met_{};
  std::string failure_;
  int shunned_ = 0;
  StackPlace scheduler_;
  Fiber* current_ = nullptr;
  int favoured_ = 0;      // warp
  Team* left_ = nullptr;  // has a ticket, and others may take theirs before it continues:
  int away_ = 0;          // it is skipped this many times
};

}  // namespace sluice::test
