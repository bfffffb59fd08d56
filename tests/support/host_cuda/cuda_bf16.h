// SPDX-License-Identifier: Apache-2.0
/// \file
/// See cuda_runtime.h.
#pragma once

#include <bit>
#include <cstdint>

struct __nv_bfloat16 {
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float x) {
    auto const all = std::bit_cast<std::uint32_t>(x);
    bits = static_cast<std::uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  std::uint16_t bits = 0;
};
