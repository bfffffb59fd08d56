// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the blocks of packed products load weights and inputs.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace packed {

/// Whether blocks of so many rows prefetch weights. Hardware prefetching stops at page boundaries, and a panel is little longer
/// than a page. But a Zen 4 reads weights faster without prefetch instructions, and few rows take as long as that
/// (docs/benchmarks/output.md). Only known to code that is compiled for it, by -march=native or znver4; GCC 12 takes it for a Zen 3. A
/// Zen 5 was not measured.
#if defined(__AVX512F__) && (defined(__znver3__) || defined(__znver4__) || defined(__znver5__))
constexpr bool prefetches(int rows) { return rows > 4; }
#else
constexpr bool prefetches(int) { return true; }
#endif

/// Whether instructions multiply whole vectors, so that it pays to keep inputs in registers.
#if defined(__x86_64__)
inline constexpr bool loads_once = true;
#else
inline constexpr bool loads_once = false;
#endif

/// A vector of weights or inputs. `several` products need it: then it is loaded once. GCC would read it from the cache for each, as
/// an operand in memory costs no instruction, and a processor that loads one vector a cycle would wait for that.
template <bool several, class T>
[[gnu::always_inline]] inline T once(T x) {
  if constexpr (several && loads_once) return simd::rounded(x);
  else return x;
}

}  // namespace packed
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
