// SPDX-License-Identifier: Apache-2.0
/// \file
/// All kernels. Include it in one file of a program, compiled by nvcc; or its parts in a file each, which compile at the
/// same time. A host compiler can compile files that include the other headers of this folder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/instances/lines_bfloat16.cuh>
#include <sluice/cuda/instances/lines_float.cuh>
#include <sluice/cuda/instances/lines_half.cuh>
#include <sluice/cuda/instances/others.cuh>
