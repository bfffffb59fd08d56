// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels that take further passes over lines, on emulated devices. emulated_launches.hpp
/// includes it.
#pragma once

#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/select_block.cuh>
#include <sluice/cuda/select/detail/select_keys.cuh>
#include <sluice/cuda/select/detail/select_launch.cuh>

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

template <class Format>
void launch_selection(SelectLaunch<Format> const& launch, cudaStream_t, Start start) {
  test::HostCuda::get().add_kernel(start == Start::early, [launch] {
    using Memory = SelectMemory<test::few_threads>;
    test::run_blocks<test::few_threads, Memory>(launch.line.rows, [&](auto& block, Memory& memory, int row) {
      SelectBlock<Format, std::remove_reference_t<decltype(block)>>(block, memory, launch, row).run();
    });
  });
}

}  // namespace sluice::inline v0::cuda::detail
