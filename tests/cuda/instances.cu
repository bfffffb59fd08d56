// SPDX-License-Identifier: Apache-2.0
// The kernels for the tests that a host compiler compiles.
#include <sluice/cuda/instances.cuh>
