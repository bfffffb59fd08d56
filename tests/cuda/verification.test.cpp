// SPDX-License-Identifier: Apache-2.0
// On a device; skipped where there is none. What the kernel computes is tested without one: unit/cuda_host/verification.
#include <sluice/cuda/verify/verify.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/verification_cases.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A case on the device.
struct OnDeviceCase {
  explicit OnDeviceCase(VerificationCase const& blocks)
      : task(blocks.task),
        best(blocks.best),
        results(blocks.results),
        guess_log_probs(blocks.guess_log_probs),
        first_lines(blocks.first_lines),
        counts(blocks.counts),
        guesses(blocks.guesses),
        eos(blocks.eos),
        tokens(static_cast<std::size_t>(task.sentences * task.block)),
        verdicts(static_cast<std::size_t>(task.sentences)) {
    // [verification]
    task.best = best.data(), task.results = results.data();  // what LogSoftmaxTopK::enqueue has written
    task.guesses = guesses.data(), task.eos = eos.data();
    task.tokens = tokens.data(), task.verdicts = verdicts.data();
    // [/verification]
    if (blocks.told) task.guess_log_probs = guess_log_probs.data();
    if (blocks.named) task.first_lines = first_lines.data();
    if (blocks.counted) task.guess_counts = counts.data();
  }
  void check(VerificationCase const& blocks) const {
    auto const settled = tokens.get();
    auto const verdict = verdicts.get();
    auto const size = static_cast<std::size_t>(task.block);
    for (std::int32_t s = 0; s < task.sentences; ++s) {
      INFO("sentence " << s);
      auto const at = static_cast<std::size_t>(s);
      blocks.check(s, std::span(settled).subspan(at * size, size), verdict[at]);
    }
  }

  cuda::Verification task;
  OnDevice<Candidate> best;
  OnDevice<cuda::LineResult> results;
  OnDevice<float> guess_log_probs;
  OnDevice<std::int32_t> first_lines, counts;
  OnDevice<Token> guesses, eos;
  OnDevice<Candidate> tokens;
  OnDevice<cuda::Verdict> verdicts;
};

}  // namespace

TEST_CASE("cuda verify settles what Blockwise settles", "[cuda]") {
  if (no_device()) return;
  for (std::uint64_t seed = 0; seed < rounds(1000); ++seed) {
    INFO("seed " << seed);
    VerificationCase const blocks(seed);
    OnDeviceCase const memory(blocks);
    cudaStream_t const stream = nullptr;
    // [verify]
    cuda::verify(memory.task, stream);
    // [/verify]
    memory.check(blocks);
  }
}

TEST_CASE("cuda verify in a graph sees new data", "[cuda]") {
  if (no_device()) return;
  VerificationCase const blocks(6);
  OnDeviceCase const memory(blocks);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  cuda::verify(memory.task, stream);
  cuda::check(cudaStreamEndCapture(stream, &graph), "capture");
  cuda::check(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  cuda::check(cudaGraphLaunch(runnable, stream), "graph");
  cuda::check(cudaStreamSynchronize(stream), "graph");
  memory.check(blocks);
  auto changed = blocks;
  for (auto& guess : changed.guesses) guess = (guess + 1) % changed.task.vocabulary_size;
  OnDevice<Token> const scratch(changed.guesses);
  cuda::check(cudaMemcpyAsync(memory.guesses.data(), scratch.data(), changed.guesses.size() * sizeof(Token),
                              cudaMemcpyDeviceToDevice, stream),
              "copy");
  cuda::check(cudaGraphLaunch(runnable, stream), "graph");
  cuda::check(cudaStreamSynchronize(stream), "graph");
  memory.check(changed);
  cuda::check(cudaGraphExecDestroy(runnable), "graph"), cuda::check(cudaGraphDestroy(graph), "graph");
  cuda::check(cudaStreamDestroy(stream), "stream");
}
