// SPDX-License-Identifier: Apache-2.0
// How lines are shared out among blocks.
#include <sluice/cuda/line/detail/line_plan.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sluice;

TEST_CASE("lines are cut into larger parts before they are refused", "[cuda]") {
  using cuda::LineShape;
  constexpr int threads = cuda::detail::line_threads;
  auto const plan = [](std::ptrdiff_t rows, std::ptrdiff_t size, std::int32_t k) {
    cuda::LineTask<float> task;
    task.scores = {nullptr, rows, size, size}, task.k = k;
    cuda::detail::LinePlan<float> const lines(task, 132);
    std::vector<std::byte> memory(lines.bytes() + 1), tickets(lines.ticket_bytes() + 1);
    auto const launch = lines.launch(memory.data(), tickets.data());
    return std::pair(launch.splits, launch.chunks);
  };
  auto const chunks = LineShape::chunks<cuda::detail::Float32>(600000, threads);
  CHECK(chunks == 147);
  CHECK_FALSE(LineShape::fits(chunks, 64, threads));
  for (auto const rows : {1, 320}) {
    auto const [splits, each] = plan(rows, 600000, 64);
    CHECK(LineShape::fits(splits, 64, threads));
    CHECK(std::int64_t{splits} * each >= chunks);
  }
  CHECK(plan(1, 600000, 5).first == 147);  // as far as it goes where that fits
  CHECK_THROWS_AS(plan(1, 3000000, 64), std::invalid_argument);
}

TEST_CASE("lines are shared out among the blocks that read through rings, but for lines with masks", "[cuda]") {
  cuda::LineTask<float> task;
  task.scores = {nullptr, 320, 32000, 32000};
  auto const plan = [&](std::int64_t processors, std::int32_t ring) {
    cuda::detail::LinePlan<float> const lines(task, processors, {}, ring);
    std::vector<std::byte> memory(lines.bytes() + 1), tickets(lines.ticket_bytes() + 1);
    return lines.launch(memory.data(), tickets.data());
  };
  auto const direct = plan(132, 0), ring = plan(132, 100);
  CHECK(direct.ring == 0);
  CHECK(ring.ring == 100);
  CHECK(ring.splits == cuda::LineShape::of(8, 320, 100).splits);
  CHECK(direct.splits == cuda::LineShape::of(8, 320, 528).splits);
  std::uint32_t const word = 0;
  task.masks = &word;
  auto const masked = plan(132, 100);
  CHECK(masked.ring == 0);
  CHECK(masked.splits == direct.splits);
}

TEST_CASE("the split of lines counts in waves of blocks", "[cuda]") {
  using cuda::LineShape;
  auto const time = [](std::int64_t line_chunks, std::int64_t rows, std::int64_t places, std::int64_t chunks) {
    auto const blocks = rows * ((line_chunks + chunks - 1) / chunks);
    return (blocks + places - 1) / places * (1 + chunks);
  };
  for (std::int64_t const places : {1, 16, 432, 528})
    for (std::int64_t line_chunks = 1; line_chunks < 70; ++line_chunks)
      for (std::int64_t const rows : {1, 5, 64, 320, 4096}) {
        auto const shape = LineShape::of(line_chunks, rows, places);
        INFO(rows << " lines of " << line_chunks << " chunks, " << places << " places: " << shape.chunks_of_block);
        REQUIRE(shape.splits == (line_chunks + shape.chunks_of_block - 1) / shape.chunks_of_block);
        for (std::int64_t chunks = 1; chunks <= std::min<std::int64_t>(LineShape::most_chunks, line_chunks); ++chunks)
          REQUIRE(time(line_chunks, rows, places, shape.chunks_of_block) <= time(line_chunks, rows, places, chunks));
      }
  // 320 lines of 32,000 floats on 132 multiprocessors: 640 blocks of four chunks would be one wave and a fifth of another.
  auto const shape = LineShape::of(8, 320, 528);
  CHECK(shape.chunks_of_block == 3);
  CHECK(shape.splits == 3);
  CHECK(LineShape::of(62, 1, 528).chunks_of_block == 1);
  CHECK(LineShape::of(62, 4096, 528).chunks_of_block == 4);
}
