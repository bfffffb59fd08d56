// SPDX-License-Identifier: Apache-2.0
/// \file
/// Limits how many sentences are open.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace serve {

/// Counts sentences and their requests; admits all sentences of a request or none. Any thread may call.
class Admission {
 public:
  enum class Entry { granted, full, closed };

  /// \param most   maximum number of sentences, waiting or running
  /// \param share  maximum number of one client's
  Admission(std::size_t most, std::size_t share) : most_(most), share_(share) {}

  /// A request with so many sentences; if it is admitted, call leave() later.
  Entry enter(std::string const& client, std::size_t sentences) {
    std::lock_guard const lock(mutex_);
    if (closed_) return Entry::closed;
    if (sentences > most_ - sentences_) return Entry::full;
    auto& own = clients_[client];
    if (own + sentences > share_) {
      if (own == 0) clients_.erase(client);
      return Entry::full;
    }
    own += sentences, sentences_ += sentences, ++requests_;
    return Entry::granted;
  }
  /// One of the sentences has its result.
  void answered(std::string const& client) {
    std::lock_guard const lock(mutex_);
    --sentences_;
    if (auto const found = clients_.find(client); --found->second == 0) clients_.erase(found);
  }
  /// The request has its answer.
  void leave() {
    std::lock_guard const lock(mutex_);
    --requests_;
  }
  /// Admits nothing more.
  void close() {
    std::lock_guard const lock(mutex_);
    closed_ = true;
  }
  bool closed() const {
    std::lock_guard const lock(mutex_);
    return closed_;
  }
  std::size_t sentences() const {
    std::lock_guard const lock(mutex_);
    return sentences_;
  }
  std::size_t requests() const {
    std::lock_guard const lock(mutex_);
    return requests_;
  }
  std::size_t most() const { return most_; }

 private:
  std::size_t most_, share_;
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> clients_;  // sentences of each client that has some
  std::size_t sentences_ = 0, requests_ = 0;
  bool closed_ = false;
};

}  // namespace serve
