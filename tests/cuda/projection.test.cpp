// SPDX-License-Identifier: Apache-2.0
// The projections on a device; skipped where there is none. Without one: unit/cuda_projection.
#include <support/device_memory.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <tuple>

namespace sluice::test {

using ProjectionTypes = std::tuple<float, __half, __nv_bfloat16>;
inline constexpr std::uint64_t projection_rounds = 10;

}  // namespace sluice::test

#include <support/projection_cases.hpp>
