// SPDX-License-Identifier: Apache-2.0
/// \file
/// The kernels of DeviceBeam.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/beam/detail/device_beam_launch.cuh>
#include <sluice/cuda/beam/detail/device_beam_rows.cuh>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/beam/detail/device_beam_warp.cuh>
#include <sluice/cuda/device/detail/launch.cuh>
#include <sluice/cuda/device/detail/start.cuh>
#include <sluice/cuda/device/detail/warp.cuh>
#include <sluice/cuda/device/error.cuh>

#include <cuda_runtime.h>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

template <int warps>
__global__ void __launch_bounds__(32 * warps)
    beam_begin_kernel(__grid_constant__ BeamTask const task, std::int32_t count) {
  DeviceWarp warp;
  auto const number = static_cast<std::int32_t>(blockIdx.x * warps + threadIdx.x / 32);
  if (number < count) begin_beam(warp, task, number);
}

template <int warps>
__global__ void __launch_bounds__(32 * warps) beam_advance_kernel(__grid_constant__ BeamTask const task) {
  __shared__ alignas(16) unsigned char memory[warps][sizeof(BeamWarpMemory)];
  DeviceWarp warp;
  auto const number = static_cast<std::int32_t>(blockIdx.x * warps + threadIdx.x / 32);
  await_earlier();
  if (number >= task.sentences) return;
  BeamWarp<DeviceWarp>(warp, *reinterpret_cast<BeamWarpMemory*>(memory[threadIdx.x / 32]), task, number).run();
}

template <int warps>
void launch_beam_begin(BeamTask const& task, std::int32_t count, cudaStream_t stream) {
  auto const blocks = (static_cast<unsigned>(count) + warps - 1) / warps;
  beam_begin_kernel<warps><<<blocks, 32 * warps, 0, stream>>>(task, count);
  check(cudaGetLastError(), "the kernel that begins a DeviceBeam");
}

template <int warps>
void launch_beam_advance(BeamTask const& task, cudaStream_t stream, Start start) {
  auto const blocks = (static_cast<unsigned>(task.sentences) + warps - 1) / warps;
  launch<beam_advance_kernel<warps>>(blocks, 32 * warps, stream, start, "the kernel that advances a DeviceBeam", task);
}

}  // namespace sluice::inline v0::cuda::detail
