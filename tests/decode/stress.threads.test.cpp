// SPDX-License-Identifier: Apache-2.0
// Many threads, one server, everything going wrong at once. SLUICE_STRESS=N for N sentences, with figures; SLUICE_SEED for
// others. tools/soak runs the longest.
#include <sluice/decode/server.hpp>
#include <sluice/search/beam_search.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/encoding_table.hpp>
#include <support/server_stress.hpp>
#include <support/slot_checker.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

class Run {
 public:
  explicit Run(Stress const& stress)
      : table_{.size = 12, .scale = 6, .eos_bias = -2, .eos_slope = 0.3, .broken = stress.worst ? &breaks : nullptr},
        search_{.width = 3, .length = {.max = stress.worst ? 6 : 20}},
        stress_(stress),
        cancelled_(stress.sentences),
        answered_(stress.sentences),
        expected_(kinds) {
    for (std::uint64_t seed = 0; seed < kinds; ++seed) expected_[seed] = run_one<everything>(table_, seed, search_);
  }

  void operator()() {
    auto const sources = HeapSource::alive();
    std::thread([] {}).join();  // a sanitizer's own thread comes with the first
    auto alive = threads_alive();
    // The system counts a thread for a while after it was joined.
    for (auto i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      alive = std::min(alive, threads_alive());
    }
    auto const broken_steps = [](std::size_t call) {
      if (hash_mix(call) % 128 == 0) throw std::runtime_error("no step");
    };
    auto const slow = [this](std::uint64_t seed) {
      auto const n = hash_mix(++encodings_);
      if (n % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds(n / 256 % 1000));
      if (no_encoding(seed)) throw std::runtime_error("no encoding");
    };
    auto const start = [](std::uint64_t seed) {
      if (no_start(seed)) throw std::runtime_error("no start");
    };
    auto const release = [this, call = std::size_t(0)]() mutable {
      if (stress_.worst && hash_mix(++call) % 64 == 0) throw std::runtime_error("no release");
    };
    SlotChecker model{
        EncodingTable<>(table_, {.encode = slow, .start = start, .step = broken_steps, .release = release})};
    {
      Moody const schedule{{.size = 16, .refill_below = 0.5}, stress_.worst ? 128u : 0u};
      Server server(model, search_, schedule, stress_.options);
      std::vector<std::thread> threads;
      for (std::size_t w = 0; w < writers; ++w) threads.emplace_back([&, w] { write(server, w); });
      for (auto& thread : threads) thread.join();
      server.drain();
      CHECK(server.open() == 0);
      CHECK(server.statistics().sentences == stress_.sentences);
    }
    CHECK(std::ranges::all_of(answered_, [](auto const& n) { return n == 1; }));
    CHECK(wrong_ == 0);
    CHECK(counts_[0] > stress_.sentences / 4);
    for (auto const failure :
         {Failure::source, Failure::model, Failure::bad_request, Failure::late, Failure::cancelled})
      CHECK(counts_[static_cast<std::size_t>(failure)] > 0);
    CHECK((stress_.options.full == ServerOptions::Full::refuse) ==
          (counts_[static_cast<std::size_t>(Failure::refused)] > 0));
    CHECK((stress_.worst ? counts_[static_cast<std::size_t>(Failure::not_a_number)] > 0 : true));
    CHECK((stress_.worst ? counts_[static_cast<std::size_t>(Failure::schedule)] > 0 : true));
    CHECK(tellings_ > stress_.sentences / (stress_.worst ? 8 : 4));
    // A twentieth, and what an allocator of so many threads may take at any time.
    INFO("resident at half " << memory_[moments / 2 - 1] << " KiB, at the end " << memory_[moments - 1]);
    if (stress_.sentences >= 100'000 && memory_is_ours)  // fewer warm up
      CHECK(memory_[moments - 1] <= memory_[moments / 2 - 1] * 21 / 20 + 1024);
    for (auto const until = ServerClock::now() + std::chrono::seconds(10);
         threads_alive() > alive && ServerClock::now() < until;)
      std::this_thread::yield();
    CHECK(threads_alive() <= alive);
    auto const& counts = model.model().counts();
    CHECK(counts.broken == 0);
    CHECK(counts.batches == 0);
    CHECK(counts.waiting == 0);
    CHECK(model.report() == "");
    CHECK(HeapSource::alive() == sources);
    // Whoever writes holds one, the queue, the batch; and those withdrawn from groups that others still wait for.
    auto const bound = writers + 2 * stress_.options.queue + 16 + 4 * stress_.options.intake.encode_ahead + writers;
    CHECK(HeapSource::most() - sources <= static_cast<std::int64_t>(bound));
    if (std::getenv("SLUICE_STRESS") != nullptr) figures(counts);
  }

 private:
  template <class S>
  void write(S& server, std::size_t writer) {
    std::mt19937_64 random(writer + 1 + writers * number("SLUICE_SEED", 0));
    std::deque<std::pair<std::uint64_t, std::future<Result>>> futures;
    auto const take = [&] {
      auto const result = futures.front().second.get();
      check(result, futures.front().first, true, {});
      ++answered_[result.id];
      futures.pop_front();
    };
    while (ticket_++ < stress_.sentences) {
      Request<HeapSource, BeamSearch> request{};
      auto const seed = random() % kinds;
      auto deadline = ServerClock::time_point::max();
      if (random() % 8 == 0)
        deadline = ServerClock::now() + std::chrono::microseconds(random() % 2 * (random() % 4000));
      auto const past = deadline != ServerClock::time_point::max();
      auto const future = stress_.options.full == ServerOptions::Full::wait && random() % 4 == 0;
      for (;;) {  // until there is room
        request = {.source = HeapSource(seed), .seed = seed};
        if (bad_prefix(seed)) request.prefix = {3, 1000};
        if (future) {
          futures.emplace_back(seed, server.submit(std::move(request), deadline));
          break;
        }
        auto const told = std::make_shared<Told>();
        Delivery delivery{.done =
                              [this, told, seed, past](Result result) {
                                check(result, seed, past, told->tokens);
                                if (++told->answers != 1) ++wrong_;
                                if (result.id < answered_.size()) ++answered_[result.id];
                                else ++wrong_;
                                if (stress_.worst && result.id % 512 == 0)
                                  std::this_thread::sleep_for(std::chrono::microseconds(500));
                                if (result.id % 16 == 0) throw std::runtime_error("a callback that throws");
                              },
                          .deadline = deadline};
        if (random() % 2 == 0)
          delivery.delta = [this, told](std::uint64_t, std::span<Token const> tokens) {
            if (told->answers != 0 || tokens.empty()) ++wrong_;
            told->tokens.insert(told->tokens.end(), tokens.begin(), tokens.end());
            ++tellings_;
          };
        auto const id = server.submit(std::move(request), std::move(delivery));
        if (!id) {
          ++counts_[static_cast<std::size_t>(Failure::refused)];
          std::this_thread::yield();
          continue;
        }
        if (random() % 16 == 0) cancel(server, *id);
        if (random() % 16 == 0) cancel(server, random() % (*id + 1));  // anybody's, ended or not
        break;
      }
      if (futures.size() > 4) take();
    }
    while (!futures.empty()) take();
  }

  template <class S>
  void cancel(S& server, std::uint64_t id) {
    cancelled_[id] = true;
    server.cancel(id);
  }

  /// Whether the result is one that this request may have. `limited`: it may have had a deadline.
  void check(Result const& result, std::uint64_t seed, bool limited, std::vector<Token> const& told) {
    ++counts_[static_cast<std::size_t>(result.failure)];
    auto right = false;
    switch (result.failure) {
      case Failure::none:
        right = expected_[seed].ok() && identical(result, expected_[seed]) && !bad_prefix(seed);
        break;
      case Failure::not_a_number: right = expected_[seed].failure == Failure::not_a_number; break;
      case Failure::schedule: right = stress_.worst && result.message == "no schedule"; break;
      case Failure::bad_request: right = bad_prefix(seed); break;
      case Failure::source:
        right = no_start(seed) || (no_encoding(seed) && stress_.options.intake.encode_ahead > 0);
        break;
      case Failure::model: right = result.message == "no step"; break;
      case Failure::late: right = limited; break;
      case Failure::cancelled: right = result.id < cancelled_.size() && cancelled_[result.id]; break;
      default: break;
    }
    for (auto const& h : result.hypotheses)
      right = right && h.tokens.size() >= told.size() && std::equal(told.begin(), told.end(), h.tokens.begin());
    wrong_ += !right;
    auto const n = ++all_;
    if (n % (stress_.sentences / moments) == 0 && n / (stress_.sentences / moments) <= moments)
      memory_[n / (stress_.sentences / moments) - 1] = resident_kib();
  }

  void figures(EncodingCounts const& counts) const {
    std::ostringstream text;
    text << stress_.sentences << " sentences of " << writers << " writers:";
    for (std::size_t i = 0; i < failures; ++i) text << ' ' << name(static_cast<Failure>(i)) << ' ' << counts_[i] << ',';
    text << " told " << tellings_ << " times, encode calls " << counts.encodes << ", most encoded and waiting "
         << counts.most_waiting << ", most sources alive " << HeapSource::most() << "; resident KiB:";
    for (auto const& kib : memory_) text << ' ' << kib;
    WARN(text.str());
    if (!stress_.worst) return;
    std::cout << "| " << stress_.sentences;  // a row of the table of tools/soak
    for (auto const failure : {Failure::none, Failure::late, Failure::cancelled, Failure::model, Failure::schedule,
                               Failure::source, Failure::not_a_number, Failure::bad_request})
      std::cout << " | " << counts_[static_cast<std::size_t>(failure)];
    std::cout << " | " << std::ranges::count_if(answered_, [](auto const& n) { return n != 1; }) << " | " << wrong_
              << " |";
    for (auto const& kib : memory_) std::cout << ' ' << kib;
    std::cout << " |" << std::endl;
  }

  Table const table_;
  BeamSearch const search_;
  Stress stress_;
  std::vector<std::atomic<bool>> cancelled_;         // [id]: somebody asked
  std::vector<std::atomic<std::uint8_t>> answered_;  // [id]
  std::vector<Result> expected_;                     // [seed]
  std::array<std::atomic<std::size_t>, failures> counts_{};
  std::array<std::atomic<std::size_t>, moments> memory_{};
  std::atomic<std::size_t> ticket_{0}, all_{0}, wrong_{0}, tellings_{0}, encodings_{0};
};

}  // namespace

TEST_CASE("64 writers, cancels, deadlines and errors: nothing is lost or answered twice", "[stress]") {
  Run run({.sentences = sentences(10'000),
           .options = {.queue = 64, .intake = {.window = 16, .encode_ahead = 12, .encode_group = 4}}});
  run();
}
TEST_CASE("the same with a queue of one", "[stress]") {
  Run run({.sentences = sentences(2'000), .options = {.queue = 1, .intake = {.encode_ahead = 2}}});
  run();
}
TEST_CASE("the same where a full queue refuses, and nothing is encoded ahead", "[stress]") {
  Run run({.sentences = sentences(2'000),
           .options = {.queue = 8, .full = ServerOptions::Full::refuse, .intake = {.window = 4}}});
  run();
}
TEST_CASE("the worst: models, schedules and callbacks too", "[soak]") {
  Run run({.sentences = sentences(4'000),
           .options = {.queue = 64, .intake = {.window = 16, .encode_ahead = 12, .encode_group = 4}},
           .worst = true});
  run();
}
