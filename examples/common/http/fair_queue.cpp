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

void FairQueue::done(Claim const& claim) {
  std::unique_lock lock(mutex_);
  auto& client = clients_[claim.client];
  client.weight -= claim.weight, --pieces_;
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

bool FairQueue::waits(std::string const& client) const {
  std::lock_guard const lock(mutex_);
  auto const found = clients_.find(client);
  return found != clients_.end() && !found->second.waiting.empty();
}

bool FairQueue::fits(std::string const& client, std::size_t pieces, std::size_t weight) const {
  std::lock_guard const lock(mutex_);
  if (pieces_ + pieces > room_.pieces) return false;
  auto const found = clients_.find(client);
  return found == clients_.end() ? weight <= room_.share
                                 : found->second.waiting.empty() && found->second.weight + weight <= room_.share;
}

FairQueue::Claim* FairQueue::next() {
  if (pieces_ >= room_.pieces) return nullptr;
  Client* chosen = nullptr;
  Claim* first = nullptr;
  for (auto& [name, client] : clients_) {
    if (client.waiting.empty() || (chosen != nullptr && client.served >= chosen->served)) continue;
    auto* const claim = *std::ranges::min_element(client.waiting, {}, &Claim::served);
    if (client.weight > 0 && client.weight + claim->weight > room_.share) continue;
    chosen = &client, first = claim;
  }
  if (first == nullptr) return nullptr;
  now_ = std::max(now_, chosen->served);
  chosen->served += first->cost, chosen->weight += first->weight, first->served += first->cost, ++pieces_;
  return first;
}

/// One thread starts them all, and others that come meanwhile leave it to do so: a start may end at once, and call done().
void FairQueue::start_all(std::unique_lock<std::mutex>& lock) {
  if (starting_) return;
  starting_ = true;
  while (auto* const claim = next()) {
    auto const piece = claim->begun++;
    if (claim->begun == claim->count) std::erase(clients_[claim->client].waiting, claim);
    claim->starting = true;
    lock.unlock();
    claim->start(piece);
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
  if (client.weight == 0 && client.waiting.empty() && (client.served <= now_ || clients_.size() > 4096))
    clients_.erase(found);
}

}  // namespace serve
