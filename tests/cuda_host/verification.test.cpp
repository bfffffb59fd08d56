// SPDX-License-Identifier: Apache-2.0
// The device's program of verify, run on an emulated device.
#include <sluice/cuda/verify/detail/verification_warp.cuh>

#include <support/catch.hpp>
#include <support/emulated_device.hpp>
#include <support/verification_cases.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("the device's verification settles what Blockwise settles", "[cuda]") {
  struct Nothing {};
  constexpr int threads = 64;
  EmulatedDevice<threads> device;
  int kept = 0, finished = 0, impossible = 0, invalid = 0, long_ones = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    VerificationCase blocks(seed);
    auto task = blocks.task;
    INFO("seed " << seed << ", rule " << static_cast<int>(task.accept) << ", n " << task.n << ", minimum "
                 << task.minimum << ", block " << task.block << ", k " << task.k);
    auto const size = static_cast<std::size_t>(task.block);
    std::vector<Candidate> tokens(size * static_cast<std::size_t>(task.sentences), {-7, 7});
    std::vector<cuda::Verdict> verdicts(static_cast<std::size_t>(task.sentences), {-1, -1, -1, -1, -1, -1});
    task.best = blocks.best.data(), task.results = blocks.results.data();
    task.guesses = blocks.guesses.data(), task.eos = blocks.eos.data();
    if (blocks.told) task.guess_log_probs = blocks.guess_log_probs.data();
    if (blocks.named) task.first_lines = blocks.first_lines.data();
    if (blocks.counted) task.guess_counts = blocks.counts.data();
    task.tokens = tokens.data(), task.verdicts = verdicts.data();
    device.run<Nothing>((task.sentences + 1) / 2, 2, seed, {},
                        [&](auto& block, Nothing&, int number) { cuda::detail::verify_block(block, task, number); });
    for (std::int32_t s = 0; s < task.sentences; ++s) {
      INFO("sentence " << s);
      auto const at = static_cast<std::size_t>(s);
      auto const& verdict = verdicts[at];
      auto const mine = std::span(tokens).subspan(at * size, size);
      blocks.check(s, mine, verdict);
      for (auto i = static_cast<std::size_t>(verdict.count); verdict.valid != 0 && i < size; ++i)
        CHECK(mine[i].token == -7);
      kept += verdict.kept, finished += verdict.finished, invalid += 1 - verdict.valid;
      impossible += verdict.valid != 0 && verdict.finished == 0 && verdict.count == verdict.kept;
      long_ones += verdict.kept > 32;
    }
  }
  CHECK(device.failure() == "");
  // The cases were worth it.
  CHECK(kept > 10000);
  CHECK(finished > 500);
  CHECK(impossible > 20);
  CHECK(invalid > 100);
  CHECK(long_ones > 20);
}
