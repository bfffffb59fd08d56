// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <http/fair_queue.hpp>

namespace serve {

void FairQueue::enter(Claim& claim) {
  std::unique_lock lock(mutex_);
  auto& client = clients_[claim.client];
  // A client that was away has no claim to what it did not use.
  client.served = std::max(client.served, now_);
  claim.served = 0;
  if (!client.waiting.empty()) claim.served = (*std::ranges::min_element(client.waiting, {}, &Claim::served))->served;
  if (claim.count > 0) client.waiting.push_back(&claim);
  start_all(lock);
}

void FairQueue::done(Claim const& claim, std::size_t piece) {
  std::unique_lock lock(mutex_);
  auto& client = clients_[claim.client];
  auto const express = claim.express[piece];
  (express ? client.express : client.large) -= claim.weight;
  auto& room = express ? express_ : large_;
  room.weight -= claim.weight, --room.pieces;
  forget(claim.client);
  start_all(lock);
}

std::size_t FairQueue::withdraw(Claim& claim) {
  std::unique_lock lock(mutex_);
  if (auto const found = clients_.find(claim.client); found != clients_.end()) {
    std::erase(found->second.waiting, &claim);
    forget(claim.client);
  }
  started_.wait(lock, [&] { return !claim.starting; });
  return claim.begun;
}

/// Where a client's next piece may begin. A few small ones of each client begin in the express room whatever the large one holds; the
/// others where less is at work.
FairQueue::Place FairQueue::place(Client const& client, Claim const& claim) const {
  auto const large = large_.pieces < room_.pieces && (client.large == 0 || client.large + claim.weight <= room_.share);
  auto const express = express_.pieces < room_.pieces && claim.count * claim.weight <= room_.express &&
                       client.express + claim.weight <= room_.express;
  auto const few = client.express + claim.weight <= room_.express / 3;
  if (express && (few || !large || express_.weight <= large_.weight)) return Place::express;
  return large ? Place::large : Place::none;
}

FairQueue::Claim* FairQueue::next() {
  Client* chosen = nullptr;
  Claim* first = nullptr;
  auto where = Place::none;
  for (auto& [name, client] : clients_) {
    if (client.waiting.empty() || (chosen != nullptr && client.served >= chosen->served)) continue;
    auto* const claim = *std::ranges::min_element(client.waiting, {}, &Claim::served);
    auto const place = this->place(client, *claim);
    if (place == Place::none) continue;
    chosen = &client, first = claim, where = place;
  }
  if (first == nullptr) return nullptr;
  now_ = std::max(now_, chosen->served);
  chosen->served += first->cost, first->served += first->cost;
  auto const express = where == Place::express;
  (express ? chosen->express : chosen->large) += first->weight;
  auto& room = express ? express_ : large_;
  room.weight += first->weight, ++room.pieces;
  first->express.push_back(express);
  return first;
}

/// One thread starts them all, and others that come meanwhile leave it to do so: a start may end at once, and call done().
void FairQueue::start_all(std::unique_lock<std::mutex>& lock) {
  if (starting_) return;
  starting_ = true;
  while (auto* const claim = next()) {
    auto const piece = claim->begun++;
    bool const express = claim->express[piece];
    if (claim->begun == claim->count) std::erase(clients_[claim->client].waiting, claim);
    claim->starting = true;
    lock.unlock();
    claim->start(piece, express);
    lock.lock();
    claim->starting = false;
    started_.notify_all();
  }
  starting_ = false;
}

/// Forgets a client of which nothing is left to remember.
void FairQueue::forget(std::string const& name) {
  auto const found = clients_.find(name);
  if (found == clients_.end()) return;
  auto const& client = found->second;
  if (client.large == 0 && client.express == 0 && client.waiting.empty() &&
      (client.served <= now_ || clients_.size() > 4096))
    clients_.erase(found);
}

}  // namespace serve
