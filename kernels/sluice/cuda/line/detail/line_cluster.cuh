// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shared memory through which the blocks of a line meet, if they are a cluster.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/device/detail/key.cuh>
#include <sluice/cuda/device/detail/partial_sum.cuh>
#include <sluice/cuda/line/detail/line_part.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/line/line_shape.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr int most_of_cluster = 16;  ///< blocks; more than 8 only on devices that say so

/// What a block has beyond its own memory. The others write to that of the cluster's first block.
template <int threads>
struct ClusterMemory : LineMemory<threads> {
  Key left[most_listed * most_of_cluster];                                         ///< [k, blocks]: their lists
  PartialSum all_sums[most_of_cluster * LineShape::most_chunks * (threads / 32)];  ///< of the line
};

/// Whether the blocks of each line of a launch can be a cluster: 2, 4, 8 or 16 of them.
template <class Format>
SLUICE_HOST_DEVICE bool suits_clusters(LineLaunch<Format> const& launch) {
  auto const blocks = launch.splits;
  return blocks > 1 && blocks <= most_of_cluster && (blocks & (blocks - 1)) == 0 && launch.tile_splits == 0 &&
         launch.ring == 0 && launch.masks == nullptr;
}

}  // namespace sluice::inline v0::cuda::detail
