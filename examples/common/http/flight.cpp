// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <http/flight.hpp>
#include <poll.h>
#include <span>
#include <string>
#include <utility>

namespace serve {

std::string megabytes(std::size_t bytes) {
  return std::to_string((bytes + (std::size_t{1} << 20) - 1) >> 20) + " MiB of memory";
}

Admitted::Admitted(Admission& admission, std::string client, std::size_t sentences)
    : admission_(admission), client_(std::move(client)), open_(sentences) {
  switch (admission.enter(client_, sentences)) {
    case Admission::Entry::full: throw Refused(429, "the queue is full");
    case Admission::Entry::closed: throw Refused(503, "the server is shutting down");
    case Admission::Entry::granted: break;
  }
}

Admitted::~Admitted() {
  while (open_ > 0) answered();  // never submitted: no other code reports it
  admission_.leave();
}

Turn::Turn(FairQueue& queue, std::string const& client, double cost, Clock::time_point until) : queue_(queue) {
  claim_.client = client, claim_.count = 1, claim_.cost = cost;
  claim_.start = [this](std::size_t, bool) { mine_.raise(); };
  queue.enter(claim_);
  auto const woken = Connection::current()->wait(mine_, until);
  if (woken == Connection::Woken::event) return;
  if (queue.withdraw(claim_) > 0) queue.done(claim_);
  if (woken == Connection::Woken::gone) throw Gone();
  throw Refused(504, "late: its turn did not come");
}

Turn::~Turn() {
  queue_.withdraw(claim_);
  queue_.done(claim_);
}

Flight::Flight(House const& house, Task const& task, bool settled)
    : house_(house),
      until_(began_ + task.time),
      admitted_(house.admission, Connection::current()->client(), task.asks.size()) {
  prepare(task);
  tickets_.resize(jobs_.size()), done_.resize(jobs_.size());
  open_ = unanswered_ = jobs_.size();
  claim_.client = admitted_.client(), claim_.count = jobs_.size();
  for (auto const& job : jobs_) {
    claim_.weight = std::max(claim_.weight, job->rows());
    claim_.cost += static_cast<double>(job->rows() * job->steps()) / static_cast<double>(jobs_.size());
  }
  claim_.start = [this, settled](std::size_t index, bool express) { submit(index, settled, express); };
  house.decoding.enter(claim_);
}

Flight::~Flight() { withdraw(); }

/// All that needs no model. What the decoders will allocate for it is reserved.
void Flight::prepare(Task const& task) {
  std::size_t bytes = 0;
  for (auto const& ask : task.asks) bytes += ask.text.size() + 4 * ask.tokens.size();
  Turn const turn(house_.preparing, admitted_.client(), static_cast<double>(1000 + bytes), until_);
  Work const work(until_);
  auto const shared = house_.backend.prepare(task);
  for (auto const& ask : task.asks) {
    Work::checkpoint();
    try {
      jobs_.push_back(shared->job(ask));
    } catch (BadField const& bad) {
      auto const which = task.asks.size() > 1 ? "sentence " + std::to_string(ask.number) + ": " : "";
      throw BadField(bad.field, which + bad.what(), bad.status);
    }
    reserved_ += jobs_.back()->answer_bytes();
  }
  if (auto* const account = Account::current(); account != nullptr) try {
      account->take(reserved_);
    } catch (OverBudget const& over) {
      if (over.together) throw;
      throw BadField("",
                     "the answer may take " + megabytes(reserved_) + ", more than is left of the request's " +
                         megabytes(over.most) + " (fewer sentences, hypotheses or tokens take less)",
                     413);
    }
}

void Flight::submit(std::size_t index, bool settled, bool express) {
  Account::Counting const uncounted(nullptr);  // it may be in the thread of another request
  sluice::Result failed;
  try {
    sluice::Delivery delivery{.done = {}, .deadline = until_};
    delivery.done = [this, index](sluice::Result result) { deliver(index, std::move(result)); };
    if (settled)
      delivery.delta = [this, index](std::uint64_t, std::span<sluice::Token const> tokens) {
        std::lock_guard const lock(mutex_);
        auto const found = std::ranges::find(letters_, index, &Letter::index);
        auto& letter = found != letters_.end() ? *found : letters_.emplace_back(Letter{.index = index});
        letter.settled.insert(letter.settled.end(), tokens.begin(), tokens.end());
        came_.raise();
      };
    tickets_[index] = house_.backend.submit(*jobs_[index], std::move(delivery), express);
    if (tickets_[index]) return;
    failed.fail(sluice::Failure::refused, "the server is shutting down");
  } catch (std::exception const& error) {
    failed.fail(sluice::Failure::refused, error.what());
  }
  deliver(index, std::move(failed));
}

void Flight::deliver(std::size_t index, sluice::Result result) {
  house_.metrics.sentence(result.failure, Clock::now() - began_);
  house_.metrics.blocks(result);
  admitted_.answered();
  house_.decoding.done(claim_, index);
  std::lock_guard const lock(mutex_);
  std::erase_if(letters_, [index](Letter const& letter) { return letter.index == index; });
  letters_.push_back({.index = index, .result = std::move(result)});
  --unanswered_;
  came_.raise();
}

std::vector<Flight::Letter> Flight::wait() {
  auto const* const connection = Connection::current();
  if (open_ == 0) return {};
  // Sentences in a decoder end in time by themselves.
  auto const woken = connection->wait(came_, expired_ ? Clock::time_point::max() : until_);
  if (woken == Connection::Woken::gone) throw Gone();
  if (woken == Connection::Woken::time && !expired_) expire();
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
  if (open_ == 0)  // what was reserved for the results is taken as the answer is written
    if (auto* const account = Account::current(); account != nullptr) account->give(std::exchange(reserved_, 0));
  return letters;
}

Answer Flight::answer(Letter const& letter) {
  auto& job = *jobs_[letter.index];
  auto const cost = letter.result->ok() ? job.answer_work() : 0;
  if (cost <= 0) return job.answer(*letter.result);
  try {
    Turn const turn(house_.preparing, admitted_.client(), cost, until_);
    Work const work(until_);
    return job.answer(*letter.result);
  } catch (Refused const&) {
    return {.failure = sluice::Failure::late, .message = "the choice among its hypotheses took too long"};
  }
}

/// Sentences whose turn did not come.
void Flight::expire() {
  expired_ = true;
  for (auto i = house_.decoding.withdraw(claim_); i < jobs_.size(); ++i) {
    sluice::Result late;
    late.fail(sluice::Failure::late, "the sentence waited too long");
    house_.metrics.sentence(late.failure, Clock::now() - began_);
    admitted_.answered();
    std::lock_guard const lock(mutex_);
    letters_.push_back({.index = i, .result = std::move(late)});
    --unanswered_;
  }
}

void Flight::withdraw() {
  auto const begun = house_.decoding.withdraw(claim_);
  for (std::size_t i = 0; i < begun; ++i)
    if (tickets_[i] && !done_[i]) house_.backend.cancel(*tickets_[i]);
  std::unique_lock lock(mutex_);
  if (!expired_) unanswered_ -= jobs_.size() - begun;
  while (unanswered_ > 0) {
    came_.lower();
    lock.unlock();
    pollfd one{.fd = came_.file(), .events = POLLIN, .revents = 0};
    poll(&one, 1, -1);
    lock.lock();
  }
}

}  // namespace serve
