// SPDX-License-Identifier: Apache-2.0
#include <sluice/output/detail/tile/permission.hpp>
#include <sluice/output/detail/tile/tiles.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <support/catch.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("matrix units are used where they are granted, and only there", "[tile]") {
  auto const refused = std::getenv("SLUICE_TEST_TILES_REFUSED") != nullptr;
  if (refused && !detail::tile::compiled)
    std::puts("SKIPPED: not compiled for matrix units, so nothing can be refused");
  INFO("compiled " << detail::tile::compiled << ", refused " << refused);
  if (!detail::tile::compiled || refused) CHECK_FALSE(detail::tile::granted());
  CHECK(detail::tile::granted() == detail::tile::granted());
  auto const bfloat16 = instruction_set(Precision::bfloat16), int8 = instruction_set(Precision::int8);
  CHECK((bfloat16 == "amx_bf16") == detail::tile::granted());
  CHECK((int8 == "amx_int8") == detail::tile::granted());
  CHECK(instruction_set(Precision::float32).substr(0, 3) != "amx");
  CHECK((automatic_precision() == Precision::bfloat16) ==
        (bfloat16 == "amx_bf16" || bfloat16 == "avx512_bf16" || bfloat16 == "neon_bf16"));
}

TEST_CASE("products of several threads are those of one", "[tile]") {
  constexpr std::ptrdiff_t n = 130, d = 100, rows = 37;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> weights(n * d), x(rows * d);
  for (auto* const numbers : {&weights, &x})
    for (auto& number : *numbers) number = normal(random);
  for (auto const precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    PackedMatrix const matrix({weights.data(), n, d, d}, {}, precision);
    std::vector<float> expected(rows * n);
    matrix.multiply({x.data(), rows, d, d}, {expected.data(), rows, n, n});
    std::vector<std::vector<float>> got(4, std::vector<float>(expected.size()));
    std::vector<std::thread> threads;
    for (auto& y : got)
      threads.emplace_back([&matrix, &x, &y] {
        for (int i = 0; i < 20; ++i) matrix.multiply({x.data(), rows, d, d}, {y.data(), rows, n, n});
      });
    for (auto& thread : threads) thread.join();
    for (auto const& y : got) CHECK(y == expected);
  }
}
