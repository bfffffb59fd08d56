// SPDX-License-Identifier: Apache-2.0
// What an emulated device notices of mbarriers and bulk copies.
#include <sluice/cuda/device/detail/barrier.cuh>
#include <sluice/cuda/device/detail/score_format.cuh>

#include <support/catch.hpp>
#include <support/emulated_device.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using cuda::detail::Barrier;

namespace {

using Device = EmulatedDevice<64>;
using Block = Device::Block;

struct Memory {
  alignas(16) unsigned char stage[2][64];
  std::uint64_t filled[2], emptied[2];
};

std::vector<cuda::detail::Words> const lines(16, cuda::detail::Words{{1, 2, 3, 4}});

/// What it says of a program of one block whose mbarriers are there.
template <class Program>
std::string said(Program const& program, DeviceFaults faults = {}, std::uint64_t seeds = 1) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Device device;
    device.uneven = true;
    device.readable = std::as_bytes(std::span(lines));
    device.run<Memory>(1, 1, seed, faults, [&](Block& block, Memory& memory, int) {
      if (block.thread() == 0) {
        for (int i = 0; i < 2; ++i)
          block.init_mbarrier(&memory.filled[i], 1), block.init_mbarrier(&memory.emptied[i], Block::warps);
        block.publish_mbarriers();
      }
      block.sync(Barrier::ring);
      program(block, memory);
    });
    if (device.failure() != "") return device.failure();
  }
  return "";
}

/// The first thread fills a stage.
void fill(Block& block, Memory& memory, int stage, unsigned bytes = 64) {
  if (block.thread() != 0) return;
  block.arrive_expecting(&memory.filled[stage], bytes);
  block.copy_bulk(memory.stage[stage], lines.data() + 4 * stage, bytes, &memory.filled[stage]);
}

/// All read a stage and say so.
void use(Block& block, Memory& memory, int stage, unsigned parity) {
  block.wait(Barrier::filled, &memory.filled[stage], parity);
  auto const words = block.read_stage(memory.stage[stage] + 16 * (block.thread() % 4));
  if (words.word[2] != 3) block.copy_bulk(nullptr, nullptr, 0, nullptr);  // fails
  block.sync_warp(Barrier::lifted);
  if (block.lane() == 0) block.arrive(Barrier::emptied, &memory.emptied[stage]);
}

/// Ten stages, one after the other, in two places.
void ten(Block& block, Memory& memory) {
  fill(block, memory, 0), fill(block, memory, 1);
  for (int i = 0; i < 10; ++i) {
    auto const parity = static_cast<unsigned>(i / 2 % 2);
    use(block, memory, i % 2, parity);
    if (block.thread() != 0 || i >= 8) continue;
    block.wait(Barrier::emptied, &memory.emptied[i % 2], parity);
    block.order_copies();
    fill(block, memory, i % 2);
  }
}

}  // namespace

TEST_CASE("an emulated device brings copies, and misses every part of their protocol", "[cuda]") {
  CHECK(said(ten, {}, 50) == "");
  CHECK(said(ten, {.skipped = Barrier::ring}, 50) != "");
  CHECK(said(ten, {.skipped = Barrier::filled}, 50) != "");
  CHECK(said(ten, {.skipped = Barrier::lifted}, 50) != "");
  CHECK(said(ten, {.skipped = Barrier::emptied}, 50) != "");
  CHECK(said(ten, {.no_init_fence = true}) == "a copy may not see its mbarrier yet");
  CHECK(said(ten, {.no_arrival = true}) == "somebody waits for what never comes");
  CHECK(said(ten, {.no_bytes = true}, 50) != "");
  CHECK(said(ten, {.no_proxy_fence = true}) == "a stage is filled again without a proxy fence behind its readers");
}

TEST_CASE("an emulated device refuses copies that a device would not survive", "[cuda]") {
  auto const copy = [](std::ptrdiff_t to, std::ptrdiff_t from, unsigned bytes) {
    return said([=](Block& block, Memory& memory) {
      if (block.thread() == 0) {
        block.arrive_expecting(&memory.filled[0], bytes);
        // As numbers: some are no places in an array.
        auto const there = reinterpret_cast<std::uintptr_t>(memory.stage) + static_cast<std::uintptr_t>(to);
        auto const here = reinterpret_cast<std::uintptr_t>(lines.data()) + static_cast<std::uintptr_t>(from);
        block.copy_bulk(reinterpret_cast<void*>(there), reinterpret_cast<void const*>(here), bytes, &memory.filled[0]);
      }
      block.wait(Barrier::filled, &memory.filled[0], 0);
    });
  };
  auto const size = static_cast<std::ptrdiff_t>(lines.size() * sizeof(cuda::detail::Words));
  CHECK(copy(0, 16, 32) == "");
  CHECK(copy(0, size - 64, 64) == "");
  CHECK(copy(0, 0, 0) == "a copy of nothing");
  CHECK(copy(8, 0, 16) == "a bulk copy is not aligned");
  CHECK(copy(0, 4, 16) == "a bulk copy is not aligned");
  CHECK(copy(0, 0, 24) == "a bulk copy is not aligned");
  CHECK(copy(0, -16, 16) == "a bulk copy reads outside the lines");
  CHECK(copy(0, size - 48, 64) == "a bulk copy reads outside the lines");
  CHECK(copy(256, 0, 16) == "a bulk copy writes outside the block's memory");

  CHECK(said([](Block& block, Memory& memory) { fill(block, memory, 0); }) ==
        "a block ends while copies to its memory are under way");
  CHECK(said([](Block& block, Memory& memory) { fill(block, memory, 0), fill(block, memory, 0); }) != "");
  CHECK(said([](Block& block, Memory& memory) { block.wait(Barrier::filled, &memory.filled[0], 0); }) ==
        "somebody waits for what never comes");
  CHECK(said([](Block& block, Memory& memory) { block.read_stage(memory.stage[0]); }) ==
        "a stage is read that nobody fills");
  CHECK(said([](Block& block, Memory& memory) {
          fill(block, memory, 0);
          block.sync(Barrier::ring);
          block.read_stage(memory.stage[0]);
        }) == "a stage is read that nobody waited for");
}
