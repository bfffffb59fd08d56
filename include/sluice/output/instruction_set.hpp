// SPDX-License-Identifier: Apache-2.0
/// \file
/// The instructions that packed products use on this machine.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/packed/bfloat16_dot.hpp>
#include <sluice/output/detail/packed/int8_dot.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/detail/tile/permission.hpp>
#include <sluice/output/precision.hpp>

#include <string_view>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// The instructions that multiply in a precision, as the including file is compiled (and as the kernel grants):
/// "amx_bf16", "amx_int8", "avx512_bf16", "avx512_vnni", "avx_vnni", "avx512", "avx2", "avx" or "baseline"; on AArch64
/// "neon_bf16", "neon_i8mm", "neon_dotprod" or "neon". Products of one or two rows in 8 bits do not use AMX, but the
/// instructions next in this list.
inline std::string_view instruction_set(Precision precision) {
  if (precision != Precision::float32 && detail::tile::granted())
    return precision == Precision::bfloat16 ? "amx_bf16" : "amx_int8";
#if defined(__aarch64__)
  if (precision == Precision::bfloat16 && detail::packed::Bfloat16Dot::parts == 1) return "neon_bf16";
  if (precision != Precision::int8 || detail::packed::Int8Dot::depth == 2) return "neon";
  return detail::packed::Int8Dot::depth == 8 ? "neon_i8mm" : "neon_dotprod";
#else
  if (precision == Precision::bfloat16 && detail::packed::Bfloat16Dot::parts == 1) return "avx512_bf16";
  if (precision == Precision::int8 && detail::packed::Int8Dot::depth == 4)
    return detail::packed::Int8Dot::lanes == 16 ? "avx512_vnni" : "avx_vnni";
#if defined(__AVX512F__)
  return "avx512";
#elif defined(__AVX2__)
  return "avx2";
#elif defined(__AVX__)
  return "avx";
#else
  return "baseline";
#endif
#endif
}

/// bfloat16 if there are instructions for it (matrix units, 16-bit dot products), else float32. Never int8, whose
/// rounding not every caller accepts.
inline Precision automatic_precision() {
  return detail::tile::granted() || detail::packed::Bfloat16Dot::parts == 1 ? Precision::bfloat16 : Precision::float32;
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
