// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <http/flight.hpp>
#include <poll.h>
#include <span>
#include <string>
#include <utility>

namespace serve {

Flight::Flight(House const& house, Task const& task, bool settled) : house_(house) {
  for (auto const& ask : task.asks) try {
      jobs_.push_back(house.backend.prepare(ask, task.settings));
    } catch (BadField const& bad) {
      auto const which = task.asks.size() > 1 ? "sentence " + std::to_string(ask.number) + ": " : "";
      throw BadField(bad.field, which + bad.what(), bad.status);
    }
  switch (house.admission.enter(jobs_.size())) {
    case Admission::Entry::full: throw Refused(429, "the queue is full");
    case Admission::Entry::closed: throw Refused(503, "the server is shutting down");
    case Admission::Entry::granted: break;
  }
  tickets_.resize(jobs_.size()), done_.resize(jobs_.size());
  open_ = unanswered_ = jobs_.size();
  try {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      sluice::Delivery delivery{.done = {}, .deadline = began_ + task.time};
      delivery.done = [this, i](sluice::Result result) {
        house_.metrics.sentence(result.failure, Clock::now() - began_);
        house_.admission.answered();
        std::lock_guard const lock(mutex_);
        std::erase_if(letters_, [i](Letter const& letter) { return letter.index == i; });
        letters_.push_back({.index = i, .result = std::move(result)});
        --unanswered_;
        came_.raise();
      };
      if (settled)
        delivery.settled = [this, i](std::uint64_t, std::span<sluice::Token const> tokens) {
          std::lock_guard const lock(mutex_);
          auto const found = std::ranges::find(letters_, i, &Letter::index);
          auto& letter = found != letters_.end() ? *found : letters_.emplace_back(Letter{.index = i});
          letter.settled.assign(tokens.begin(), tokens.end());
          came_.raise();
        };
      tickets_[i] = house.backend.submit(*jobs_[i], std::move(delivery));
      if (!tickets_[i]) throw Refused(503, "the server is shutting down");
    }
  } catch (...) {
    withdraw();
    throw;
  }
}

Flight::~Flight() { withdraw(); }

std::vector<Flight::Letter> Flight::wait() {
  auto const* const connection = Connection::current();
  if (open_ == 0) return {};
  if (connection->wait(came_, Clock::time_point::max()) == Connection::Woken::gone) throw Gone();
  std::vector<Letter> letters;
  {
    std::lock_guard const lock(mutex_);
    came_.lower();
    letters.swap(letters_);
  }
  for (auto const& letter : letters) {
    if (!text_came_ && !letter.settled.empty()) text_came_ = true, house_.metrics.first_text(Clock::now() - began_);
    if (letter.result) done_[letter.index] = true, --open_;
  }
  return letters;
}

void Flight::withdraw() {
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    if (!tickets_[i]) {  // never submitted: no other code reports it
      house_.admission.answered();
      std::lock_guard const lock(mutex_);
      --unanswered_;
    } else if (!done_[i]) {
      house_.backend.cancel(*tickets_[i]);
    }
  }
  for (;;) {
    {
      std::lock_guard const lock(mutex_);
      if (unanswered_ == 0) break;
      came_.lower();
    }
    pollfd one{.fd = came_.file(), .events = POLLIN, .revents = 0};
    poll(&one, 1, -1);
  }
  house_.admission.leave();
}

}  // namespace serve
