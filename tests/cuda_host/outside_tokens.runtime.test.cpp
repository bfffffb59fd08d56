// SPDX-License-Identifier: Apache-2.0
// Probes and edits of tokens outside [0, V), as a padded draft has them, where other headers than line_reader.cuh see them.
#include <sluice/cuda/expand/log_softmax_top_k.cuh>
#include <sluice/cuda/projection/detail/union_words.cuh>

#include <support/catch.hpp>
#include <support/device_memory.hpp>
#include <support/emulated_launches.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {
constexpr auto lowest = -std::numeric_limits<float>::infinity();
}

TEST_CASE("tokens outside the vocabulary become active for nobody", "[cuda]") {
  // V = 40: bits 40 to 63 of the masks belong to no token, and there is none behind them.
  std::vector<std::uint32_t> masks(3, 0);
  std::vector<Token> const probes{-1, 3, 40, 63, 64, std::numeric_limits<Token>::max()};
  std::vector<Edit> const edits{{.token = -1, .add = 1}, {.token = 5, .add = 1}, {.token = 41, .add = 1}};
  cuda::LineQuery query;
  query.probe_count = static_cast<std::int32_t>(probes.size());
  query.edit_count = static_cast<std::int32_t>(edits.size());
  std::vector<std::uint32_t> const nothing(2, 0);
  cuda::LineResult const found;
  cuda::detail::UnionLaunch launch;
  launch.words = 2, launch.size = 40, launch.lines = launch.unions = 1;
  launch.clusters = launch.always = nothing.data(), launch.found_of = &found, launch.queries = &query;
  launch.probes = probes.data(), launch.edits = edits.data(), launch.joint = masks.data();
  using Block = EmulatedDevice<few_threads>::Block;
  using Cover = cuda::detail::UnionWords<Block>;
  run_blocks<few_threads, Cover::Memory>(
      1, [&](Block& block, Cover::Memory& memory, int number) { Cover(block, memory, launch, number).run(); });
  CHECK(masks == std::vector<std::uint32_t>{1u << 3 | 1u << 5, 0, 0});
}

TEST_CASE("probes outside the line are -infinity where lines are made tile by tile", "[cuda]") {
  constexpr auto chunk = cuda::LogSoftmaxTopK::tile_columns<float>();
  std::ptrdiff_t const size = 3 * chunk + 5;
  std::vector<float> x(static_cast<std::size_t>(size));
  for (std::size_t v = 0; v < x.size(); ++v) x[v] = static_cast<float>(v % 17);
  std::vector<Token> const asked{-1,
                                 7,
                                 static_cast<Token>(size),
                                 static_cast<Token>(size + 2 * chunk),
                                 1 << 30,
                                 std::numeric_limits<Token>::min(),
                                 static_cast<Token>(size - 1)};
  OnDevice<float> const line(x), values(asked.size()), tile(static_cast<std::size_t>(chunk));
  OnDevice<Token> const probes(asked);
  OnDevice<Candidate> const best(1);
  OnDevice<cuda::LineResult> const results(1);
  cuda::LineTask<float> task;
  task.scores = {line.data(), 1, size, size};
  task.best = best.data(), task.results = results.data();
  task.query.probe_count = static_cast<std::int32_t>(asked.size());
  task.probes = probes.data(), task.probe_values = values.data();
  cuda::LogSoftmaxTopK expander;
  expander.enqueue(task, nullptr);
  cuda::check(cudaStreamSynchronize(nullptr), "wait");
  auto const whole = values.get();
  cuda::detail::fill_now(values.data(), 0x40, asked.size() * sizeof(float));
  expander.enqueue_tiles(
      task, MatrixView<float>{tile.data(), 1, chunk, chunk}, nullptr, [&](std::ptrdiff_t first, std::ptrdiff_t count) {
        HostCuda::get().add([&, first, count] { std::copy_n(line.data() + first, count, tile.data()); });
      });
  cuda::check(cudaStreamSynchronize(nullptr), "wait");
  CHECK(values.get() == whole);
  for (std::size_t i = 0; i < asked.size(); ++i) CHECK((whole[i] > lowest) == (i == 1 || i == 6));
}
