// SPDX-License-Identifier: Apache-2.0
// How lines are shared out among blocks.
#include <sluice/cuda/line/detail/line_plan.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
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
  CHECK(plan(1, 500000, 5).first == 123);  // as far as it goes where that fits
  CHECK_THROWS_AS(plan(1, 6000000, 64), std::invalid_argument);
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
  auto const rings = cuda::LineResidents{.processors = 132, .blocks = 100 / 132.0, .under_way = 40960, .ahead = true};
  CHECK(ring.splits == cuda::LineShape::of(8, 320, rings).splits);
  CHECK(direct.splits == cuda::LineShape::of(8, 320, {.processors = 132, .blocks = 4}).splits);
  std::uint32_t const word = 0;
  task.masks = &word;
  auto const masked = plan(132, 100);
  CHECK(masked.ring == 0);
  CHECK(masked.splits == direct.splits);
}

namespace {

/// When a multiprocessor has done its blocks, event by event: those that read share its rate, by the bytes that they have
/// under way together; selections take about the same time each, so blocks that began together drift apart.
double simulate(std::int64_t line_chunks, std::int64_t rows, cuda::LineResidents const& residents,
                std::int64_t chunks) {
  using cuda::LineShape;
  auto const splits = (line_chunks + chunks - 1) / chunks;
  auto const blocks = (rows * splits + residents.processors - 1) / residents.processors;
  struct Block {
    double reads, selects;
  };
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> about(0.8, 1.2);
  auto left = blocks, seen = std::int64_t{0};
  auto const begin = [&]() -> Block {
    --left;
    auto const merges = splits > 1 && (++seen % splits == 0 || left == 0);  // at worst, the last one does
    return {static_cast<double>(line_chunks) / static_cast<double>(splits),
            about(random) * (LineShape::selection + (merges ? LineShape::merging : 0))};
  };
  std::vector<Block> running;
  auto time = 0.0;
  while (left > 0 || !running.empty()) {
    while (left > 0 && static_cast<double>(running.size()) < residents.blocks) running.push_back(begin());
    auto const readers = std::ranges::count_if(running, [](Block const& block) { return block.reads > 0; });
    auto const alone = residents.under_way / LineShape::needed_bytes;  // of the whole rate
    auto const rate = readers == 0 ? 0 : std::min(alone, 1 / static_cast<double>(readers));
    auto next = 1e300;
    for (auto const& block : running) next = std::min(next, block.reads > 0 ? block.reads / rate : block.selects);
    time += next;
    for (auto& block : running) {
      if (block.reads <= 0) block.selects -= next;
      else if (block.reads -= next * rate; block.reads < 1e-9) block.reads = 0;
    }
    std::erase_if(running, [](Block const& block) { return block.reads <= 0 && block.selects < 1e-9; });
  }
  return time;
}

}  // namespace

TEST_CASE("the split of lines follows continuous waves of blocks and the bytes that they have under way", "[cuda]") {
  using cuda::LineShape;
  auto worst = 1.0, farthest = 1.0;
  for (auto const& residents : {cuda::LineResidents{.processors = 132, .blocks = 4},
                                {.processors = 132, .blocks = 3},
                                {.processors = 132, .blocks = 4, .under_way = 8192},
                                {.processors = 16, .blocks = 4}})
    for (std::int64_t line_chunks = 1; line_chunks < 70; line_chunks += line_chunks < 10 ? 1 : 7)
      for (std::int64_t const rows : {1, 5, 64, 320, 4096}) {
        auto const shape = LineShape::of(line_chunks, rows, residents);
        INFO(rows << " lines of " << line_chunks << " chunks: " << shape.chunks_of_block);
        REQUIRE(shape.splits == (line_chunks + shape.chunks_of_block - 1) / shape.chunks_of_block);
        auto least = 1e300;
        for (std::int64_t chunks = 1; chunks <= std::min<std::int64_t>(LineShape::most_chunks, line_chunks); ++chunks) {
          REQUIRE(LineShape::time(line_chunks, rows, residents, shape.chunks_of_block) <=
                  LineShape::time(line_chunks, rows, residents, chunks) * (1 + 2 * LineShape::equal));
          auto const simulated = simulate(line_chunks, rows, residents, chunks);
          farthest = std::max({farthest, simulated / LineShape::time(line_chunks, rows, residents, chunks),
                               LineShape::time(line_chunks, rows, residents, chunks) / simulated});
          least = std::min(least, simulated);
        }
        worst = std::max(worst, simulate(line_chunks, rows, residents, shape.chunks_of_block) / least);
      }
  CHECK(worst < 1.4);     // the chosen shape, over the best one
  CHECK(farthest < 1.5);  // the estimate, from the simulation
  // 64 lines of 128,256 in 16 bits, in one wave.
  CHECK(LineShape::of(16, 64, {.processors = 132, .blocks = 4}).chunks_of_block == 4);
  CHECK(LineShape::of(8, 320, {.processors = 132, .blocks = 4}).chunks_of_block == 8);
  CHECK(LineShape::of(62, 1, {.processors = 132, .blocks = 4}).chunks_of_block == 1);
  CHECK(LineShape::of(62, 4096, {.processors = 132, .blocks = 4}).chunks_of_block == 8);
  // As many blocks as of seven chunks and one.
  CHECK(LineShape::of(8, 100, {.processors = 132, .blocks = 4}).chunks_of_block == 4);
  // Rings read while they select.
  cuda::LineResidents const direct{.processors = 132, .blocks = 3}, ring{.processors = 132, .blocks = 3, .ahead = true};
  CHECK(LineShape::time(8, 4096, ring, 1) < LineShape::time(8, 4096, direct, 1));
}
