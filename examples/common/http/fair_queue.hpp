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
/// there is room for another one. Any thread may call.
class FairQueue {
 public:
  struct Room {
    std::size_t pieces = 1;  ///< at work at a time, together
    std::size_t share = 1;   ///< weight of one client's at a time; a heavier piece runs alone of its client
  };

  /// The pieces of one request, all alike. Stays where it is until withdraw() has returned.
  struct Claim {
    std::string client{};
    std::size_t count = 0;
    std::size_t weight = 1;  ///< of a piece while it is at work
    double cost = 1;         ///< of a piece
    std::function<void(std::size_t)>
        start{};  ///< begins a piece, 0 to count - 1 in order, in any thread; must not throw

   private:
    friend class FairQueue;
    std::size_t begun = 0;
    bool starting = false;
    double served = 0;
  };

  explicit FairQueue(Room room) : room_(room) {}

  /// Its pieces begin, now or later.
  void enter(Claim& claim);
  /// A piece has ended.
  void done(Claim const& claim);
  /// What has not begun does not begin any more. Waits if a piece is just being started.
  /// \returns how many have begun
  std::size_t withdraw(Claim& claim);
  /// Whether something of a client's waits.
  bool waits(std::string const& client) const;
  /// Whether so much more of a client's would begin at once.
  bool fits(std::string const& client, std::size_t pieces, std::size_t weight) const;

 private:
  struct Client {
    double served = 0;
    std::size_t weight = 0;  // at work
    std::vector<Claim*> waiting;
  };

  Claim* next();
  void start_all(std::unique_lock<std::mutex>& lock);
  void forget(std::string const& name);

  Room room_;
  mutable std::mutex mutex_;
  std::condition_variable started_;
  std::map<std::string, Client> clients_;
  double now_ = 0;          // what the client had had whose turn it was last
  std::size_t pieces_ = 0;  // at work
  bool starting_ = false;   // a thread is in start_all()
};

}  // namespace serve
