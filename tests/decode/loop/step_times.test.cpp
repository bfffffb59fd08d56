// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/loop/step_times.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

using namespace sluice::test;
using sluice::detail::StepTimes;

TEST_CASE("what a guess costs is learnt from the steps", "[step_times]") {
  struct Machine {
    double fixed, each, guess;
  };
  for (auto const& machine : {Machine{1e-3, 0, 1e-4}, Machine{1e-4, 1e-4, 1e-4}, Machine{0, 2e-3, 3e-3},
                              Machine{4e-2, 1e-3, 5e-3}, Machine{1e-5, 1e-6, 1e-4}}) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> noise(0.95, 1.05);
    StepTimes times;
    CHECK(times.added(1) < 0);
    for (int step = 0; step < 600; ++step) {
      auto const sentences = static_cast<double>(1 + random() % 64);
      auto const guesses = random() % 3 == 0 ? 0.0 : sentences * static_cast<double>(random() % 4);
      auto const outlier = random() % 50 == 0 ? 30.0 : 1.0;  // a busy machine
      times.note(outlier * noise(random) * (machine.fixed + machine.each * sentences + machine.guess * guesses),
                 sentences, guesses);
    }
    for (double const sentences : {1.0, 8.0, 64.0}) {
      auto const truth = machine.guess * sentences / (machine.fixed + machine.each * sentences);
      INFO("sentences " << sentences << ", truth " << truth << ", learnt " << times.added(sentences));
      if (truth > 5) CHECK(times.added(sentences) > 1);  // no guess would pay
      else if (sentences > 1) CHECK((times.added(sentences) > truth / 2 && times.added(sentences) < truth * 2));
      CHECK((times.added(sentences) < 0.5) == (truth < 0.5));
    }
  }
}

TEST_CASE("what is not known is believed, and found out now and then", "[step_times]") {
  StepTimes times;
  int explored = 0;
  for (int step = 0; step < 1280; ++step) {
    times.note(1e-3, 4, 0);
    explored += times.explore() ? 1 : 0;
  }
  CHECK(explored == 10);
  CHECK((times.added(4) > 0.05 && times.added(4) < 1));
  times.note(0, 4, 0), times.note(1e-3, 0, 0);  // nothing happened
  CHECK((times.added(4) > 0.05 && times.added(4) < 1));
}

namespace {

/// Least squares over all steps and what was believed at first, each row with its weight: by elimination, in more digits.
class Reference {
 public:
  using Row = std::array<long double, 4>;  // fixed, each, guess; seconds

  void note(long double seconds, long double sentences, long double guesses) {
    if (steps_.empty()) {
      guess_ = {0.75L * seconds, 0.25L * seconds / sentences, 0.25L * seconds / sentences};
      for (std::size_t i = 0; i < 3; ++i) believed_ += guess_[i];
      auto const weight = 0.1L / (seconds * seconds);
      for (std::size_t i = 0; i < 3; ++i) {
        auto const scale = std::sqrt(weight) * (i == 0 ? 1 : sentences);
        beliefs_[i][i] = scale, beliefs_[i][3] = scale * guess_[i];
      }
      times_ = guess_;
    }
    auto const expected = std::max(times_[0] + times_[1] * sentences + times_[2] * guesses, 0.1L * guess_[0]);
    auto const y = std::min(seconds, 2 * expected);
    steps_.push_back({1 / y, sentences / y, guesses / y, 1});  // relative errors
    solve();
  }
  long double added(long double sentences) const {
    auto const plain = std::max(times_[0] + times_[1] * sentences, 0.05L * believed_);
    return std::clamp(times_[2] * sentences / plain, 0.01L, 10.0L);
  }

 private:
  void solve() {
    std::array<Row, 3> normal{};
    auto const add = [&](Row const& row, long double weight) {
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j) normal[i][j] += weight * row[i] * row[j];
    };
    for (auto const& belief : beliefs_) add(belief, 1);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      add(steps_[i], std::pow(0.99L, static_cast<long double>(steps_.size() - 1 - i)));
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k) {
        if (k == i) continue;
        auto const factor = normal[k][i] / normal[i][i];
        for (std::size_t j = 0; j < 4; ++j) normal[k][j] -= factor * normal[i][j];
      }
    for (std::size_t i = 0; i < 3; ++i) times_[i] = normal[i][3] / normal[i][i];
  }

  std::vector<Row> steps_;
  std::array<Row, 3> beliefs_{};
  std::array<long double, 3> guess_{}, times_{};
  long double believed_ = 0;
};

}  // namespace

TEST_CASE("what is learnt of the steps are their least squares", "[step_times]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    auto const uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    StepTimes times;
    Reference reference;
    auto const fixed = uniform(1e-4, 1e-2), each = uniform(0, 1e-3), guess = std::pow(10, uniform(-6, -1));
    for (int step = 0; step < 60; ++step) {
      auto const sentences = static_cast<double>(1 + random() % 20);
      auto const guesses = static_cast<double>(random() % 3 * random() % 30);
      auto const outlier = random() % 9 == 0 ? 5.0 : random() % 9 == 0 ? 0.01 : 1.0;
      auto const seconds = outlier * uniform(0.9, 1.1) * (fixed + each * sentences + guess * guesses);
      times.note(seconds, sentences, guesses), reference.note(seconds, sentences, guesses);
      times.note(0, sentences, guesses), times.note(-1, sentences, guesses);  // these say nothing
      times.note(seconds, 0, guesses), times.note(seconds, -1, guesses);
      for (auto const asked : {1.0, 7.0, 100.0}) {
        auto const expected = static_cast<double>(reference.added(asked));
        INFO("seed " << seed << ", step " << step << ", " << asked << " sentences");
        CHECK_THAT(times.added(asked), WithinRel(expected, 1e-6));
      }
    }
  }
}
