// SPDX-License-Identifier: Apache-2.0
// What the host refuses before it needs a device.
#include <sluice/cuda/log_softmax_top_k.cuh>

#include <support/catch.hpp>

#include <span>
#include <stdexcept>
#include <vector>

using namespace sluice;

TEST_CASE("cuda log_softmax_top_k refuses what it cannot answer, without a device too", "[cuda]") {
  cuda::LogSoftmaxTopK expander;
  auto const ask = [&](Query const& query) {
    return expander.expand(cuda::scores<float>(nullptr, 1, 100), std::span(&query, 1), {});
  };
  CHECK_THROWS_AS(ask({.best = -1}), std::invalid_argument);
  CHECK_THROWS_AS(ask({.mass = 0.5f}), std::invalid_argument);
  CHECK_THROWS_AS(ask({.noise = 1}), std::invalid_argument);
  CHECK_THROWS_AS(ask({.entropy = true}), std::invalid_argument);
  std::vector<Token> const probes{100};
  CHECK_THROWS_AS(ask({.probes = probes}), std::invalid_argument);
  std::vector<Edit> const edits{{1, 0, 2}};
  CHECK_THROWS_AS(ask({.edits = edits, .stage = Stage::after_softmax}), std::invalid_argument);
  CHECK(expander.expand(cuda::scores<float>(nullptr, 0, 100), {}, {}).size() == 0);
}

TEST_CASE("cuda errors carry CUDA's words", "[cuda]") {
  CHECK_NOTHROW(cuda::check(cudaSuccess, "nothing"));
  CHECK_THROWS_WITH(cuda::check(cudaErrorInvalidValue, "an example"), "sluice: an example: invalid argument");
}
