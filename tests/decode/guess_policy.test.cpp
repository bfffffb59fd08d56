// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/detail/guess_policy.hpp>
#include <sluice/speculative/detail/adaptive_block.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

using sluice::detail::AdaptiveBlock;
using sluice::detail::GuessPolicy;

namespace {

/// A machine, and a proposer on it.
struct Machine {
  std::string name;
  std::function<double(double sentences, double guesses)> seconds;  // of a step with so many guesses in all
  std::vector<double> right;                                        // [i]: chance of the guess after i right ones
};

/// Rounds of sentences of 30 tokens in a batch. Guesses as many as pay, or always the same number.
class Run {
 public:
  Run(Machine const& machine, std::size_t batch, std::uint64_t seed)
      : machine_(machine), batch_(batch), random_(seed) {}

  /// The time of so many steps of one token, divided by the time that the same tokens took.
  double speed(int steps, std::int32_t most, std::int32_t fixed = -1) {
    struct Sentence {
      AdaptiveBlock block;
      std::int32_t left = 0, guesses = 0;
    };
    std::vector<Sentence> sentences(batch_);
    GuessPolicy policy;
    auto spent = 0.0, plain = 0.0;
    for (int step = 0; step < steps; ++step) {
      std::int32_t guesses = 0, tokens = 0;
      for (auto& one : sentences) {
        if (one.left <= 0)
          one.block.reset(), one.guesses = 0, one.left = 20 + static_cast<std::int32_t>(random_() % 20);
        guesses += one.guesses;
      }
      auto const n = static_cast<double>(batch_);
      auto const noise = std::normal_distribution<double>(1, 0.03)(random_);
      auto const its = machine_.seconds(n, guesses) * std::clamp(noise, 0.9, 1.2);
      spent += its;
      policy.step(its, batch_, static_cast<std::size_t>(guesses));
      for (auto& one : sentences) {
        one.block.begin_round();
        std::int32_t right = 0, verified = 0;
        for (bool goes_on = true; goes_on && verified < one.guesses; ++verified) {
          auto const i = std::min(static_cast<std::size_t>(verified), machine_.right.size() - 1);
          goes_on = std::uniform_real_distribution<double>(0, 1)(random_) < machine_.right[i];
          one.block.count(goes_on, verified == 0);
          right += goes_on ? 1 : 0;
        }
        told_ = told_ && one.block.round().verified == verified && one.block.round().right == right;
        one.left -= right + 1, tokens += right + 1;
        if (one.left <= 0) continue;  // it has ended, and says nothing
        policy.count(verified, right, most);
        auto const asked = policy.measure();
        one.guesses = fixed >= 0   ? fixed
                      : asked >= 0 ? std::min(asked, most)
                                   : one.block.best(most, policy.costs(), policy.rates());
        told_ = told_ && one.guesses >= 0 && one.guesses <= most;
      }
      plain += machine_.seconds(n, 0) * tokens / n;
    }
    CHECK(told_);
    return plain / spent;
  }

 private:
  Machine const& machine_;
  std::size_t batch_;
  std::mt19937_64 random_;
  bool told_ = true;
};

}  // namespace

TEST_CASE("guesses cost next to nothing where they do not pay, and are made where they do", "[guess_policy]") {
  auto const line = [](double fixed, double each, double guess) {
    return [=](double n, double g) { return fixed + each * n + guess * g + (g > 0 ? 0.05 * fixed : 0); };
  };
  std::vector<Machine> const machines{
      {"hopeless", line(1, 0.5, 0.5), {0.05}},
      {"each guess as dear as a step", line(0, 1, 1), {0.8, 0.7}},
      {"free and right", line(1, 0, 0.001), {0.9}},
      {"free and seldom right", line(1, 0, 0.01), {0.3, 0.2, 0.1}},
      {"nearly", line(1, 0.05, 0.3), {0.3, 0.3}},
      {"first guesses are right, later ones are not", line(1, 0.1, 0.1), {0.8, 0.4, 0.1, 0.05}},
      {"a fourth line falls out of the registers",
       [](double n, double g) { return 1 + (g / n > 3 ? 2.0 : 0.05) + 0.01 * g; },
       {0.75, 0.7, 0.65, 0.6}},
      {"only many guesses pay, since making them is dear",
       [](double, double g) { return 1 + (g > 0 ? 0.9 : 0.0) + 0.01 * g; },
       {0.9}},
  };
  for (auto const& machine : machines)
    for (std::size_t const batch : {1, 8, 64})
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        auto best = 1.0;
        for (std::int32_t fixed = 0; fixed <= 7; ++fixed)
          best = std::max(best, Run(machine, batch, seed).speed(1'000, 7, fixed));
        auto const speed = Run(machine, batch, seed).speed(6'000, 7);
        INFO(machine.name << ", batch " << batch << ", seed " << seed << ": " << speed << ", the best block " << best);
        CHECK(speed > 0.985);
        CHECK(speed > 0.93 * best);
      }
}

TEST_CASE("finding out that guesses do not pay costs little of a short run of large batches", "[guess_policy]") {
  auto const line = [](double each, double guess) {
    return [=](double n, double g) { return 1 + each * n + guess * g + (g > 0 ? 0.05 : 0); };
  };
  Machine const hopeless{"hopeless", line(0.5, 0.5), {0.05}}, nearly{"nearly", line(0.05, 0.3), {0.3, 0.3}};
  auto const mean = [](Machine const& machine, std::size_t batch) {
    auto sum = 0.0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) sum += Run(machine, batch, seed).speed(130, 3);
    return sum / 50;
  };
  CHECK(mean(hopeless, 64) > 0.993);
  CHECK(mean(hopeless, 8) > 0.99);
  CHECK(mean(nearly, 64) > 0.98);  // one step with a guess for each sentence takes as long as five without
  CHECK(mean(nearly, 8) > 0.98);
}

TEST_CASE("a part of a large batch guesses before all do", "[guess_policy]") {
  for (std::size_t const batch : {64, 8, 7}) {
    GuessPolicy policy;
    std::vector<std::size_t> sums;
    for (std::size_t step = 0, guesses = 0; step < 100; ++step) {
      policy.step(1 + 0.001 * static_cast<double>(guesses), batch, guesses);
      std::int32_t const right = guesses > 0 ? 1 : 0;
      guesses = 0;
      for (std::size_t i = 0; i < batch; ++i) {
        policy.count(right, right, 1);
        if (policy.measure() > 0) ++guesses;
      }
      if (guesses > 0) sums.push_back(guesses);
    }
    auto const first =
        batch < 8 ? std::vector<std::size_t>{batch} : std::vector<std::size_t>{batch / 8, batch / 8, batch / 2, batch};
    REQUIRE(sums.size() >= first.size());
    sums.resize(first.size());
    CHECK(sums == first);
  }
}

TEST_CASE("what guesses bring is found out again when it changes", "[guess_policy]") {
  Machine machine{"", [](double n, double g) { return 1 + 0.05 * n + 0.05 * g; }, {0.0}};
  GuessPolicy policy;
  std::mt19937_64 random(5);
  std::int32_t guesses = 0;
  auto const round = [&](double right) {
    policy.step(machine.seconds(1, guesses), 1, static_cast<std::size_t>(guesses));
    std::int32_t verified = 0, was_right = 0;
    for (bool goes_on = true; goes_on && verified < guesses; ++verified)
      if (goes_on = std::uniform_real_distribution<double>(0, 1)(random) < right; goes_on) ++was_right;
    policy.count(verified, was_right, 3);
    AdaptiveBlock const fresh;
    auto const asked = policy.measure();
    guesses = asked >= 0 ? std::min(asked, 3) : fresh.best(3, policy.costs(), policy.rates());
    return guesses;
  };
  auto const all = [&](double right) {
    int sum = 0;
    for (int i = 0; i < 4'000; ++i) sum += round(right);
    return sum;
  };
  CHECK(all(0) < 200);
  all(0.9);  // finds out
  CHECK(all(0.9) > 10'000);
  all(0);
  CHECK(all(0) < 200);
}
