// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whose turn it is: a share of the work for each client.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace serve {

/// Starts pieces of work in an order that gives each client its part, however much one of them asks for: next is a piece of
/// the client that has had the least, by cost, of those that wait (start-time fair queueing; Goyal, Vin and Cheng 1997). Among
/// a client's requests likewise. What runs is not interrupted; so a client may have only a part of the room at a time, and
/// there is room for another one. Small requests have a room of their own beside the large one. Any thread may call.
class FairQueue {
 public:
  struct Room {
    std::size_t pieces = 1;   ///< at work at a time, together
    std::size_t share = 1;    ///< weight of one client's at a time; a heavier piece runs alone of its client
    std::size_t express = 0;  ///< the same in the room for requests that weigh no more than this with all their pieces
  };

  /// The pieces of one request, all alike. Stays where it is until withdraw() has returned.
  struct Claim {
    std::string client{};
    std::size_t count = 0;
    std::size_t weight = 1;  ///< of a piece while it is at work
    double cost = 1;         ///< of a piece
    /// Begins a piece, 0 to count - 1 in order, in the room for small requests or in the large one, in any thread. Must not throw.
    std::function<void(std::size_t piece, bool express)> start{};

   private:
    friend class FairQueue;
    std::size_t begun = 0;
    bool starting = false;
    double served = 0;
    std::vector<bool> express{};  // of those begun
  };

  explicit FairQueue(Room room) : room_(room) {}

  /// Its pieces begin, now or later.
  void enter(Claim& claim);
  /// A piece that has begun has ended.
  void done(Claim const& claim, std::size_t piece = 0);
  /// What has not begun does not begin any more. Waits if a piece is just being started.
  /// \returns how many have begun
  std::size_t withdraw(Claim& claim);

 private:
  struct Client {
    double served = 0;
    std::size_t large = 0, express = 0;  // weight at work in the two rooms
    std::vector<Claim*> waiting;
  };

  struct AtWork {
    std::size_t pieces = 0, weight = 0;
  };
  enum class Place { none, large, express };

  Place place(Client const& client, Claim const& claim) const;
  Claim* next();
  void start_all(std::unique_lock<std::mutex>& lock);
  void forget(std::string const& name);

  Room room_;
  mutable std::mutex mutex_;
  std::condition_variable started_;
  std::map<std::string, Client> clients_;
  double now_ = 0;  // what the client had had whose turn it was last
  AtWork large_, express_;
  bool starting_ = false;  // a thread is in start_all()
};

}  // namespace serve
