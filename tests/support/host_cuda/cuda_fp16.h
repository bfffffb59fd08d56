// SPDX-License-Identifier: Apache-2.0
/// \file
/// See cuda_runtime.h.
#pragma once

#include <cstdint>

/// Tests on the host only name it.
struct __half {
  std::uint16_t bits;
};
