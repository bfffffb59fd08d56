// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of the output layers on emulated devices, for the host code that launches them. Use host_cuda/ in place
/// of CUDA's headers.
#pragma once

#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/line/detail/line_block.cuh>
#include <sluice/cuda/line/detail/line_cluster.cuh>
#include <sluice/cuda/line/detail/line_launch.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/detail/line_ring_block.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines.cuh>
#include <sluice/cuda/merge/detail/merge_behind_lines_launch.cuh>
#include <sluice/cuda/merge/detail/merge_block.cuh>
#include <sluice/cuda/merge/merge_launch.cuh>
#include <sluice/cuda/projection/detail/matrix_product.cuh>
#include <sluice/cuda/projection/detail/projection_launch.cuh>
#include <sluice/cuda/projection/detail/union_block.cuh>
#include <sluice/cuda/projection/detail/union_words.cuh>
#include <sluice/cuda/select/detail/line_order_launch.cuh>

#include <support/emulated_device.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice::test {

/// One device for each block size; every launch has another order of threads.
template <int threads, int producers = 0>
EmulatedDevice<threads, producers>& emulated_device() {
  static EmulatedDevice<threads, producers> device;
  return device;
}

/// Runs Program(Block&, Memory&, number) on a number of blocks.
template <int threads, class Memory, int producers = 0, class Program>
void run_blocks(int blocks, Program const& program, DeviceFaults faults = {}) {
  static std::uint64_t seed = 0;
  ++seed;
  auto& device = emulated_device<threads, producers>();
  device.uneven = true;
  device.template run<Memory>(blocks, 1 + static_cast<int>(seed % 3), seed, faults, program);
  if (device.failure() != "") throw std::runtime_error(device.failure());
}

/// Whether whole lines are answered by plain host code, for tests of the surrounding code: fibers are slow.
inline bool plain_lines = false;

struct PlainBlock {
  template <class Value>
  Value read(Value const* from) const {
    return *from;
  }
  cuda::detail::Words read16(void const* from) const { return *static_cast<cuda::detail::Words const*>(from); }
};

template <class Format>
void answer_plainly(cuda::detail::LineLaunch<Format> const& launch, std::int32_t row) {
  constexpr std::uint32_t wide = Format::wide;
  PlainBlock block;
  cuda::detail::LineReader<Format> const reader(launch, row);
  auto const& query = launch.query(row);
  std::vector<float> line;
  std::vector<cuda::detail::Key> keys;
  for (std::uint32_t group = 0; group * wide < static_cast<std::uint32_t>(launch.size); ++group) {
    float x[wide];
    reader.scores(block, reader.load_any(block, group), group, reader.all_edits(), x);
    line.insert(line.end(), x, x + wide);
    reader.rank(block, group, reader.all_edits(), x);
    for (std::uint32_t c = 0; c < wide; ++c) keys.push_back(cuda::detail::make_key(x[c], group * wide + c));
  }
  auto valid = true;
  for (auto const x : line) valid = valid && x < cuda::detail::plus_infinity;
  auto const top = *std::max_element(line.begin(), line.end());
  double log_sum = 0;
  if (query.normalise != 0 && top > cuda::detail::minus_infinity) {
    for (auto const x : line) log_sum += std::exp(static_cast<double>(x) - static_cast<double>(top));
    log_sum = static_cast<double>(top) + std::log(log_sum);
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  auto& result = launch.results[row];
  result = {0, valid ? 1 : 0, valid ? static_cast<float>(log_sum) : 0};
  for (std::int32_t i = 0; valid && i < std::min(query.best, launch.k) && i < launch.size; ++i) {
    auto const key = keys[static_cast<std::size_t>(i)];
    if (key == cuda::detail::no_key) break;
    auto const place = static_cast<Token>(cuda::detail::place_of(key));
    launch.best[std::int64_t{row} * launch.k + result.count++] = {
        launch.tokens != nullptr ? launch.tokens[place] : place,
        static_cast<float>(static_cast<double>(cuda::detail::score_of(key)) - log_sum)};
  }
  for (std::int32_t i = query.probes; i < query.probes + query.probe_count; ++i)
    launch.probe_values[i] = static_cast<float>(
        static_cast<double>(reader.ranked(block, static_cast<std::uint32_t>(launch.probes[i]))) - log_sum);
}

struct NoMemory {};
inline constexpr int few_threads = 64;

}  // namespace sluice::test

namespace sluice::inline v0::cuda::detail {

template <class Format>
void launch_lines(LineLaunch<Format> const& launch, cudaStream_t stream, Start start) {
  ++test::HostCuda::get().use.line_launches;
  test::HostCuda::get().add_kernel(stream, start == Start::early, [launch] {
    using Memory = LineMemory<line_threads>;
    if (test::plain_lines && launch.tile_splits == 0 && launch.totals == nullptr) {
      for (std::int32_t row = 0; row < launch.rows; ++row) test::answer_plainly(launch, row);
      return;
    }
    if (launch.ring > 0) {
      ++test::HostCuda::get().use.ring_launches;
      using Shared = RingBlockMemory<line_threads>;
      auto const blocks = std::min(launch.ring, launch.parts_here());
      test::run_blocks<line_threads, Shared, line_ring_producers>(blocks, [&](auto& block, Shared& memory, int number) {
        if (launch.k > 1) run_parts<true>(block, memory, launch, number, blocks);
        else run_parts<false>(block, memory, launch, number, blocks);
      });
      return;
    }
    if (launch.clusters != 0) {
      ++test::HostCuda::get().use.cluster_launches;
      auto& device = test::emulated_device<line_threads>();
      device.of_cluster = launch.splits;
      using Shared = ClusterMemory<line_threads>;
      test::run_blocks<line_threads, Shared>(launch.rows * launch.splits, [&](auto& block, Shared& memory, int number) {
        using Block = std::remove_reference_t<decltype(block)>;
        auto const row = number / launch.splits, split = number % launch.splits;
        if (launch.k > 1)
          LineBlock<Format, true, false, Block, DirectLoads, false, true>(block, memory, launch, row, split).run();
        else LineBlock<Format, false, false, Block, DirectLoads, false, true>(block, memory, launch, row, split).run();
      });
      device.of_cluster = 1;
      return;
    }
    auto const splits = launch.splits_here();
    test::run_blocks<line_threads, Memory>(launch.rows * splits, [&](auto& block, Memory& memory, int number) {
      using Block = std::remove_reference_t<decltype(block)>;
      auto const row = number / splits, split = launch.first_split + number % splits;
      launch.with_variant([&]<bool many, bool masked> {
        LineBlock<Format, many, masked, Block>(block, memory, launch, row, split).run();
      });
    });
  });
}

/// Documented in host_cuda.
template <class>
std::int32_t line_clusters() {
  return test::HostCuda::get().code_version >= 90 ? 8 : 0;
}
template <class>
int line_ring_blocks() {
  return test::HostCuda::get().ring_blocks;
}

template <class Format>
void launch_merging_lines(LineLaunch<Format> const& launch, MergeBehindLaunch const& behind, cudaStream_t,
                          Start start) {
  ++test::HostCuda::get().use.line_launches;
  test::HostCuda::get().add_kernel(start == Start::early, [launch, behind] {
    using Memory = MergeBehindMemory<line_threads, SmallMerge>;
    test::run_blocks<line_threads, Memory>(launch.rows * launch.splits, [&](auto& block, Memory& memory, int number) {
      using Block = std::remove_reference_t<decltype(block)>;
      auto const row = number / launch.splits;
      MergingBlock<Format, SmallMerge, Block>(block, memory, launch, behind, row, number % launch.splits).run();
    });
  });
}

template <class Memory>
void launch_merge(MergeLaunch const& launch, cudaStream_t, Start start) {
  ++test::HostCuda::get().use.merge_launches;
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    constexpr auto threads = std::is_same_v<Memory, SmallMerge> ? 32 : 256;
    test::run_blocks<threads, Memory>(launch.group_count, [&](auto& block, Memory& memory, int number) {
      MergeBlock<Memory, std::remove_reference_t<decltype(block)>>(block, memory, launch, number).run();
    });
  });
}

template <class Format>
void launch_keys(OrderLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    constexpr int parts = 3;
    test::run_blocks<test::few_threads, test::NoMemory>(
        launch.line.rows * parts, [&](auto& block, test::NoMemory&, int number) {
          write_keys(block, launch, number / parts, static_cast<std::uint32_t>(number % parts), parts);
        });
  });
}

template <class Format>
void launch_lists(OrderLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    using Memory = NarrowMemory<test::few_threads>;
    test::run_blocks<test::few_threads, Memory>(
        launch.line.rows, [&](auto& block, Memory& memory, int row) { write_list(block, memory, launch, row); });
  });
}

template <class Launch>
void launch_union(Launch const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    using Block = typename test::EmulatedDevice<test::few_threads>::Block;
    using Cover = UnionWords<Block>;
    using Union = UnionBlock<Block>;
    test::run_blocks<test::few_threads, typename Cover::Memory>(
        launch.unions * Cover::slices(launch),
        [&](Block& block, typename Cover::Memory& memory, int number) { Cover(block, memory, launch, number).run(); });
    test::run_blocks<test::few_threads, typename Union::Memory>(
        Union::settling(launch),
        [&](Block& block, typename Union::Memory& memory, int number) { Union(block, memory, launch).settle(number); });
    test::run_blocks<test::few_threads, typename Union::Memory>(
        1, [&](Block& block, typename Union::Memory& memory, int) { Union(block, memory, launch).list(); });
  });
}

template <class Launch>
void launch_gather(Launch const& launch, cudaStream_t) {
  test::HostCuda::get().add([launch] {
    test::run_blocks<test::few_threads, test::NoMemory>(
        3, [&](auto& block, test::NoMemory&, int number) { gather_rows(block, launch, number, 3); });
  });
}

template <class Format>
void launch_skinny(SkinnyLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    test::run_blocks<test::few_threads, test::NoMemory>(3, [&](auto& block, test::NoMemory&, int number) {
      if constexpr (sizeof(typename Format::Bits) == 2) {
        if (launch.on_matrix_units()) {
          MatrixProduct<Format, std::remove_reference_t<decltype(block)>>(block, launch).run(number, 3);
          return;
        }
      }
      if (launch.lines <= 1) skinny_product<Format, 1>(block, launch, number, 3);
      else if (launch.lines <= 4) skinny_product<Format, 4>(block, launch, number, 3);
      else if (launch.lines <= 8) skinny_product<Format, 8>(block, launch, number, 3);
      else skinny_product<Format, most_skinny_lines>(block, launch, number, 3);
    });
  });
}

template <class Launch>
void launch_mask(Launch const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    for (std::int32_t line = 0; line < launch.lines; ++line)
      for (std::int32_t column = 0; column < launch.columns; ++column) mask_logit(launch, line, column);
  });
}

template <class Launch>
void launch_fill(Launch const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    test::run_blocks<test::few_threads, test::NoMemory>(launch.lines, [&](auto& block, test::NoMemory&, int line) {
      for (int group = block.thread(); group < launch.groups(); group += test::few_threads)
        fill_group(block, launch, line, group);
    });
  });
}

template <class Launch>
void launch_places(Launch const& launch, cudaStream_t) {
  test::HostCuda::get().add([launch] {
    for (std::int32_t i = 0; i < launch.all(); ++i) place_one(launch, i);
  });
}

}  // namespace sluice::inline v0::cuda::detail

#include <support/emulated_selection.hpp>
