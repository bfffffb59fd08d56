// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels that take a second pass over lines, and those that omit keys, on emulated devices. emulated_launches.hpp
/// includes it.
#pragma once

#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/narrow.cuh>
#include <sluice/cuda/select/detail/narrow_launch.cuh>
#include <sluice/cuda/select/detail/select_block.cuh>
#include <sluice/cuda/select/detail/select_keys.cuh>
#include <sluice/cuda/select/detail/select_launch.cuh>
#include <sluice/cuda/select/detail/select_narrow.cuh>

#include <support/emulated_launches.hpp>

#include <cstdint>
#include <type_traits>

namespace sluice::inline v0::cuda::detail {

template <class Format>
void launch_select_keys(SelectLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    if (launch.parts > 0) {
      using Memory = ThresholdMemory<test::few_threads>;
      test::run_blocks<test::few_threads, Memory>(launch.line.rows * launch.parts,
                                                  [&](auto& block, Memory& memory, int number) {
                                                    auto const part = static_cast<std::uint32_t>(number % launch.parts);
                                                    write_best_key(block, memory, launch, number / launch.parts, part);
                                                  });
      return;
    }
    constexpr int parts = 3;
    test::run_blocks<test::few_threads, test::NoMemory>(
        launch.line.rows * parts, [&](auto& block, test::NoMemory&, int number) {
          write_select_keys(block, launch, number / parts, static_cast<std::uint32_t>(number % parts), parts);
        });
  });
}

template <class Launch>
void launch_narrowing(Launch const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    using Memory = NarrowMemory<test::few_threads>;
    test::run_blocks<test::few_threads, Memory>(
        launch.line.rows, [&](auto& block, Memory& memory, int row) { narrow_line(block, memory, launch, row); });
  });
}

template <class Format>
void launch_draws(SelectLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    test::run_blocks<test::few_threads, test::NoMemory>(
        launch.line.rows, [&](auto& block, test::NoMemory&, int row) { write_draws(block, launch, row); });
  });
}

template <class Format>
void launch_selection(SelectLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    using Memory = CutMemory<test::few_threads>;
    test::run_blocks<test::few_threads, Memory>(launch.line.rows, [&](auto& block, Memory& memory, int row) {
      SelectBlock<Format, std::remove_reference_t<decltype(block)>>(block, memory, launch, row).run();
    });
  });
}

}  // namespace sluice::inline v0::cuda::detail
