// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of DeviceBeam, and of a cache that follows it, on emulated devices; see emulated_launches.hpp.
#pragma once

#include <sluice/cuda/beam/detail/device_beam_launch.cuh>
#include <sluice/cuda/beam/detail/device_beam_rows.cuh>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/beam/detail/device_beam_warp.cuh>
#include <sluice/cuda/cache/detail/indirection_block.cuh>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>

#include <support/emulated_launches.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::test {

inline DeviceFaults beam_faults{};     ///< faults injected into BeamWarp
inline std::size_t beam_launches = 0;  ///< of the steps

}  // namespace sluice::test

namespace sluice::inline v0::cuda::detail {

template <int warps>
void launch_beam_begin(BeamTask const& task, std::int32_t count, cudaStream_t) {
  test::HostCuda::get().add([task, count] {
    test::run_blocks<32, test::NoMemory>(
        count, [&](auto& block, test::NoMemory&, int number) { begin_beam(block, task, number); });
  });
}

template <int warps>
void launch_beam_advance(BeamTask const& task, cudaStream_t, Start start) {
  ++test::beam_launches;
  test::HostCuda::get().add_kernel(start == Start::early, [task] {
    test::run_blocks<32, BeamWarpMemory>(
        task.sentences,
        [&](auto& block, BeamWarpMemory& memory, int number) {
          if (test::beam_faults.skipped != Barrier::count_) {  // with zeros, results go wrong but no access goes astray
            if (block.thread() == 0) memory = {};
            block.sync(Barrier::cleared);
          }
          BeamWarp<std::remove_reference_t<decltype(block)>>(block, memory, task, number).run();
        },
        test::beam_faults);
  });
}

template <int threads>
void launch_indirection(IndirectionLaunch const& launch, cudaStream_t) {
  test::HostCuda::get().add([launch] {
    using Memory = IndirectionMemory<test::few_threads>;
    test::run_blocks<test::few_threads, Memory>(
        launch.groups() * launch.tiles(),
        [&](auto& block, Memory& memory, int number) { IndirectionBlock(block, memory, launch, number).run(); });
  });
}

}  // namespace sluice::inline v0::cuda::detail
