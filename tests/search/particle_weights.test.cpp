// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/detail/particle_weights.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::vector<double> some_weights(std::mt19937_64& random, std::size_t count) {
  std::vector<double> weights(count);
  for (auto& x : weights) x = random() % 3 == 0 ? 0 : std::exp(5 * static_cast<double>(random() % 1000) / 1000);
  weights[random() % count] = 1;
  return weights;
}

}  // namespace

TEST_CASE("particle weights: systematic resampling gives each its share on average, and never one more or less") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    auto const count = 1 + random() % 12;
    auto const weights = some_weights(random, count);
    double all = 0;
    for (auto const x : weights) all += x;
    constexpr int grid = 2000;
    std::vector<double> mean(count);
    for (int step = 0; step < grid; ++step) {
      detail::ParticleWeights particles;
      particles.begin(count, 0.25);
      for (std::size_t i = 0; i < count; ++i) particles.multiply(i, std::log(weights[i]));
      auto const before = particles.log_z();
      CHECK_THAT(before, WithinAbs(0.25 + std::log(all / static_cast<double>(count)), 1e-12));
      auto const parents = particles.resample((step + 0.5) / grid);
      REQUIRE(parents.size() == count);
      std::vector<std::size_t> children(count);
      for (auto const parent : parents) ++children[parent];
      for (std::size_t i = 0; i < count; ++i) {
        auto const share = static_cast<double>(count) * weights[i] / all;
        auto const own = static_cast<double>(children[i]);
        if (!(own >= std::floor(share - 1e-9) && own <= std::ceil(share + 1e-9))) CHECK(own == share);
        if (children[i] > 0) CHECK(parents[i] == i);  // keeps its place
        mean[i] += own / grid;
      }
      CHECK_THAT(particles.log_z(), WithinAbs(before, 1e-12));
      CHECK_THAT(particles.effective(), WithinAbs(static_cast<double>(count), 1e-9));
    }
    for (std::size_t i = 0; i < count; ++i)
      CHECK_THAT(mean[i], WithinAbs(static_cast<double>(count) * weights[i] / all, 2.0 / grid));
  }
}

TEST_CASE("particle weights: rounding at either end of the grid leaves every place filled") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 2000; ++round) {
    auto const count = 1 + random() % 50;
    for (auto const uniform : {0x1p-53, 0.5, 1 - 0x1p-53}) {
      detail::ParticleWeights particles;
      particles.begin(count, 0);
      for (std::size_t i = 0; i < count; ++i) particles.multiply(i, static_cast<double>(random() % 4000) / 10 - 300);
      for (std::size_t i = count / 2; i < count; ++i)
        if (i > 0) particles.kill(i);
      for (auto const parent : particles.resample(uniform)) CHECK((parent == 0 || parent < count / 2));
    }
  }
}

TEST_CASE("particle weights: effective number, log Z, and no weight at all") {
  detail::ParticleWeights particles;
  particles.begin(4, 0);
  CHECK_THAT(particles.effective(), WithinAbs(4, 1e-12));
  CHECK_THAT(particles.log_z_error(), WithinAbs(0, 1e-7));
  particles.multiply(0, std::log(3.0)), particles.kill(1);  // 3 0 1 1
  CHECK_THAT(particles.effective(), WithinAbs(25.0 / 11, 1e-12));
  CHECK_THAT(particles.log_z(), WithinAbs(std::log(5.0 / 4), 1e-12));
  // without resampling: the variance of a mean, s^2 / n, over the square of the mean
  auto const variance = ((3 - 1.25) * (3 - 1.25) + 1.25 * 1.25 + 2 * 0.25 * 0.25) / 3 / 4;
  CHECK_THAT(particles.log_z_error(), WithinAbs(std::sqrt(variance) / 1.25, 1e-12));
  // after it, a parent counts for its founder what it weighed, whatever its number of children
  detail::ParticleWeights two;
  two.begin(2, 0);
  two.multiply(0, std::log(1.5)), two.multiply(1, std::log(0.5));
  two.resample(0.75);  // a child each, which count 1.5 and 1
  CHECK_THAT(two.log_z_error(), WithinAbs(std::sqrt(2 * (1.5 * 1.5 + 1) / (2.5 * 2.5) - 1), 1e-12));
  two.begin(2, 0);
  two.multiply(0, std::log(1.5)), two.multiply(1, std::log(0.5));
  two.resample(0.25);  // both are children of the first
  CHECK_THAT(two.log_z_error(), WithinAbs(1, 1e-12));
  for (std::size_t i = 0; i < 4; ++i) particles.kill(i);
  CHECK(particles.effective() == 0);
  CHECK(particles.log_z() == detail::ParticleWeights::none);
  CHECK(std::isnan(particles.log_z_error()));
  particles.begin(1, -1000);
  CHECK_THAT(particles.log_z(), WithinAbs(-1000, 1e-12));
  CHECK(std::isnan(particles.log_z_error()));
}
