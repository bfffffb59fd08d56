// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/loop/step_times.hpp>

#include <support/catch.hpp>

#include <cstdint>
#include <random>

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
