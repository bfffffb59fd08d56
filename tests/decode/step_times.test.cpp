// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/detail/step_times.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstddef>
#include <random>

using namespace sluice::test;
using sluice::detail::StepTimes;

TEST_CASE("times of steps and of guesses are those measured, whatever their shape", "[step_times]") {
  // Two guesses cost nothing, the third as much as a step; and a step of 64 sentences takes three times one of 8.
  auto const shape = [](double sentences, std::size_t guesses) {
    return 1e-3 * std::sqrt(sentences) * (guesses < 3 ? 1.0 : 2.0 + 0.1 * static_cast<double>(guesses));
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> noise(0.97, 1.03);
    StepTimes times;
    CHECK((times.plain(1) < 0 && times.added(1, 1) < 0 && times.weight(1, 1) == 0));
    for (int step = 0; step < 8'000; ++step) {
      auto const sentences = std::size_t{1} << (3 * (random() % 3));
      auto const guesses = random() % 6;
      auto const outlier = step > 1'000 && random() % 100 == 0 ? 30.0 : 1.0;  // a busy machine
      times.note(outlier * noise(random) * shape(static_cast<double>(sentences), guesses), sentences,
                 guesses * sentences);
      times.note(0, sentences, 0), times.note(-1, sentences, 0), times.note(1, 0, 0);  // these say nothing
    }
    for (std::size_t const sentences : {1, 8, 64}) {
      auto const n = static_cast<double>(sentences);
      CHECK_THAT(times.plain(sentences), WithinRel(shape(n, 0), 0.1));
      for (std::size_t g = 1; g < 6; ++g) {
        INFO("seed " << seed << ", " << sentences << " sentences, " << g << " guesses");
        CHECK_THAT(times.added(sentences, g), WithinAbs(shape(n, g) / shape(n, 0) - 1, 0.2));
        CHECK(times.weight(sentences, g) == 16);
      }
      CHECK(times.added(sentences, 7) < 0);
    }
  }
}

TEST_CASE("what was not measured is taken from about as many sentences, or not known", "[step_times]") {
  StepTimes times;
  times.note(1, 16, 16);  // no step without guesses to compare it with
  CHECK(times.added(16, 1) < 0);
  times.note(1, 16, 0);
  CHECK(times.plain(16) < 0);  // the first steps are slow
  times.note(0.5, 16, 0), times.note(0.5, 16, 0);
  CHECK(times.plain(16) == 0.5);
  CHECK((times.plain(17) == 0.5 && times.plain(19) == 0.5 && times.plain(20) < 0 && times.plain(15) < 0));
  times.note(0.75, 16, 16);
  CHECK((times.added(16, 1) == 0.5 && times.weight(16, 1) == 1));
  CHECK((times.added(32, 1) == 0.5 && times.added(8, 1) == 0.5));  // an octave away
  CHECK((times.added(48, 1) < 0 && times.added(5, 1) < 0 && times.added(16, 2) < 0));
  CHECK((times.added(16, 0) == 0.5 && times.added(16, 99) < 0));

  // Some sentences had guesses, others had none: in proportion. Of few, little is learnt.
  times.note(0.6, 16, 4);
  CHECK_THAT(times.added(16, 1), WithinAbs(0.5, 1e-9));  // 0.8, and the first three are the least
  CHECK(times.weight(16, 1) == 1.25);
  times.note(0.5, 16, 24);
  CHECK_THAT(times.added(16, 2), WithinAbs(0, 1e-9));
  times.note(0.1, 16, 16 * 20);
  CHECK(times.added(16, 16) == 0);  // never less than nothing
  CHECK(times.added(16, 20) == 0);

  for (int i = 0; i < 20; ++i) times.note(0.75, 16, 16);
  CHECK(times.weight(16, 1) == 16);
  times.fade();
  CHECK((times.weight(16, 1) == 2 && times.plain(16) == 0.5 && times.added(16, 1) > 0.45));
}

TEST_CASE("any number of sentences has its row", "[step_times]") {
  StepTimes times;
  for (std::size_t sentences = 1; sentences < std::size_t{1} << 40; sentences += (sentences + 3) / 4) {
    auto const seconds = static_cast<double>(sentences);
    times.note(seconds, sentences, 0), times.note(seconds, sentences, 0);
    INFO(sentences);
    REQUIRE(times.plain(sentences) > 0);
    if (sentences <= 8) CHECK(times.plain(sentences) == seconds);
    else if (sentences < 500'000) CHECK_THAT(times.plain(sentences), WithinRel(seconds, 0.25));
  }
}
