// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether this process may use the matrix units of the processor (Intel AMX).
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

// Everything that the products need: a processor with matrix units also has these dot products, the fallback if the
// kernel refuses.
#if defined(__x86_64__) && defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_INT8__) &&                     \
    defined(__AMX_BF16__) && defined(__AVX512BW__) && defined(__AVX512VNNI__) && defined(__AVX512BF16__)
#define SLUICE_TILES 1
#include <sys/syscall.h>
#include <unistd.h>
#else
#define SLUICE_TILES 0
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {
namespace tile {

/// Whether the including file is compiled for matrix units.
inline constexpr bool compiled = SLUICE_TILES != 0;

/// Whether tiles may be used: the file is compiled for them, and Linux grants the tile state, which a process must
/// request (Documentation/arch/x86/xstate.rst; since 5.16). Asked once, for all threads; without the grant, a tile
/// instruction would kill the process.
inline bool granted() {
#if SLUICE_TILES
  static bool const answer = [] {
    constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ::syscall(SYS_arch_prctl, request, tile_data) == 0;
  }();
  return answer;
#else
  return false;
#endif
}

}  // namespace tile
}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
