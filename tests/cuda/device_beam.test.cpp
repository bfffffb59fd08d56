// SPDX-License-Identifier: Apache-2.0
// The beam that stays on a device; skipped where there is none. Without one: unit/cuda_host/device_beam.runtime.
#include <sluice/cuda/beam/device_beam.cuh>
#include <sluice/cuda/device/step_options.cuh>

#include <support/catch.hpp>
#include <support/device_beam_cases.hpp>
#include <support/device_beam_driver.hpp>
#include <support/device_memory.hpp>
#include <support/following_cache.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("cuda device_beam finds what BeamSearch finds, token for token and bit for bit", "[cuda]") {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < rounds(500); ++seed) {
    INFO("seed " << seed);
    auto const one = random_beam_case(seed);
    auto const expected = one.on_host();
    cuda::StepOptions const step{.early_starts = seed % 2 > 0, .merge_behind_lines = seed % 3 > 0};
    check_beams(one, BeamDriver(one, 1 + static_cast<std::int32_t>(seed % 4), expected, step).run(), expected);
  }
}

TEST_CASE("cuda device_beam finds the same in wide beams", "[cuda]") {
  if (no_device()) return;
  for (std::int32_t const width : {33, 50, 63}) {
    INFO("width " << width);
    BeamCase one{.table = {.size = 90, .scale = 3, .eos_bias = 1, .levels = width == 50 ? 0 : 20},
                 .search = presets::fairseq(width)};
    one.search.n_best = width, one.search.length = {.min = 2, .max = 9};
    for (std::uint64_t source = 1; source < 2 + rounds(38); ++source) one.requests.push_back({.source = source});
    check_beams(one, decode_at_once(one), one.on_host());
  }
}

TEST_CASE("cuda cache_indirection follows a device_beam by its moves alone", "[cuda]") {
  if (no_device()) return;
  for (std::uint64_t seed = 1000; seed < 1000 + rounds(100); ++seed) {
    INFO("seed " << seed);
    check_following(random_beam_case(seed));
  }
}

TEST_CASE("cuda device_beam finds the same where its step is a graph", "[cuda]") {
  if (no_device()) return;
  BeamCase one{.table = {.size = 500, .scale = 6, .eos_slope = 0.3, .levels = 60}, .search = presets::huggingface(5)};
  one.search.n_best = 5, one.search.length.max = 20;
  for (std::uint64_t source = 1; source < 30; ++source) one.requests.push_back({.source = source});
  auto const expected = one.on_host();
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  BeamDriver driver(one, 7, expected);
  OnDevice<std::byte> workspace(std::size_t{1} << 20);  // more than the lists need
  auto const found = driver.run([&](cuda::DeviceBeam& beam, cuda::LogSoftmaxTopK& lists, cuda::Scores<float> scores) {
    cuda::check(cudaDeviceSynchronize(), "what was begun");
    scores.stream = stream;
    if (runnable == nullptr) {
      auto const task = beam.task<float>(scores);
      REQUIRE(lists.workspace_bytes(task) <= std::size_t{1} << 20);
      // [graph]
      cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
      lists.enqueue(task, {workspace.data(), std::size_t{1} << 20}, stream);
      beam.advance(stream);
      cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
      // [/graph]
      cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
    }
    cuda::check(cudaGraphLaunch(runnable, stream), "graph");
    cuda::check(cudaStreamSynchronize(stream), "graph");
  });
  check_beams(one, found, expected);
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}
