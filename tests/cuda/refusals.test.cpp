// SPDX-License-Identifier: Apache-2.0
// What the host refuses before it needs a device.
#include <sluice/cuda/cache/cache_indirection.cuh>
#include <sluice/cuda/cache/paged_cache.cuh>
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/verify/verify.cuh>

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
  CHECK(expander.expand(cuda::scores<float>(nullptr, 0, 100), {}, {}).size() == 0);
}

TEST_CASE("cuda merge_beams refuses what it has no memory for, without a device too", "[cuda]") {
  auto const launch = [](auto const& change) {
    cuda::MergeLaunch merge;
    merge.group_count = 1, merge.widest = 5, merge.longest = 10, merge.k = 6;
    change(merge);
    cuda::merge_beams(merge, nullptr);
  };
  CHECK_THROWS_AS(launch([](auto& merge) { merge.k = 65; }), std::invalid_argument);
  CHECK_THROWS_AS(launch([](auto& merge) { merge.k = 0; }), std::invalid_argument);
  CHECK_THROWS_AS(launch([](auto& merge) { merge.widest = 129; }), std::invalid_argument);
  CHECK_THROWS_AS(launch([](auto& merge) { merge.longest = 257; }), std::invalid_argument);
  CHECK_THROWS_AS(launch([](auto& merge) { merge.group_count = -1; }), std::invalid_argument);
  CHECK_NOTHROW(launch([](auto& merge) { merge.group_count = 0; }));
}

TEST_CASE("cuda verify refuses tasks that make no sense, without a device too", "[cuda]") {
  auto const refused = [](auto change) {
    Candidate tokens[8];
    cuda::LineResult results[8];
    float log_probs[8];
    Token guesses[8];
    cuda::Verdict verdicts[2];
    cuda::Verification task;
    task.sentences = 2, task.block = 4, task.k = 3, task.guess_stride = 3;
    task.best = tokens, task.results = results, task.guess_log_probs = log_probs, task.guesses = guesses;
    task.tokens = tokens, task.verdicts = verdicts;
    change(task);
    try {
      cuda::verify(task, nullptr);
    } catch (std::invalid_argument const&) {
      return true;
    } catch (cuda::Error const&) {  // there may be no device
    }
    return false;
  };
  using Task = cuda::Verification;
  CHECK(refused([](Task& t) { t.sentences = -1; }));
  CHECK(refused([](Task& t) { t.block = 0; }));
  CHECK(refused([](Task& t) { t.k = 65; }));
  CHECK(refused([](Task& t) { t.guess_stride = 2; }));
  CHECK(refused([](Task& t) { t.accept = cuda::Accept::top_k, t.n = 4; }));
  CHECK(refused([](Task& t) { t.accept = cuda::Accept::distance, t.n = -1; }));
  CHECK(refused([](Task& t) { t.accept = cuda::Accept::distance, t.guess_log_probs = nullptr; }));
  CHECK(refused([](Task& t) { t.accept = cuda::Accept::top_k, t.minimum = 2, t.guess_log_probs = nullptr; }));
  CHECK(refused([](Task& t) { t.minimum = 2; }));  // exact
  CHECK(refused([](Task& t) { t.accept = cuda::Accept::top_k, t.minimum = 5; }));
  CHECK(refused([](Task& t) { t.vocabulary_size = 0; }));
  CHECK(refused([](Task& t) { t.eos_count = 1; }));
  CHECK(refused([](Task& t) { t.best = nullptr; }));
  CHECK(refused([](Task& t) { t.results = nullptr; }));
  CHECK(refused([](Task& t) { t.guesses = nullptr; }));
  CHECK(refused([](Task& t) { t.tokens = nullptr; }));
  CHECK(refused([](Task& t) { t.verdicts = nullptr; }));
  CHECK_FALSE(refused([](Task& t) { t.sentences = 0; }));
}

TEST_CASE("cuda's caches refuse options that make no sense, without a device too", "[cuda]") {
  CHECK_THROWS_AS(cuda::CacheIndirection({0, 10, 1}), std::invalid_argument);
  CHECK_THROWS_AS(cuda::PagedCache<float>({.elements_per_position = 0}), std::invalid_argument);
}

TEST_CASE("cuda errors carry CUDA's words", "[cuda]") {
  CHECK_NOTHROW(cuda::check(cudaSuccess, "nothing"));
  CHECK_THROWS_WITH(cuda::check(cudaErrorInvalidValue, "an example"), "sluice: an example: invalid argument");
}
