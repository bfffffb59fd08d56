// SPDX-License-Identifier: Apache-2.0
// The library's kernels.
#include <sluice/cuda/instances.cuh>
