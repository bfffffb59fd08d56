// SPDX-License-Identifier: Apache-2.0
/// \file
/// The number of rounds of a test.
#pragma once

namespace sluice::test {

#if defined(SLUICE_EMULATED) || defined(__SANITIZE_ADDRESS__)
inline constexpr int slowed = 4;
#elif defined(__has_feature)
inline constexpr int slowed = __has_feature(address_sanitizer) ? 4 : 1;
#else
inline constexpr int slowed = 1;
#endif

/// `n`, or a quarter of it under the address sanitizer, which is slow: other builds compare the results, and what the
/// sanitizer detects occurs in any round. Likewise if an emulator runs it (scripts/cross-check), which is slower still.
template <class T>
constexpr T times(T n) {
  return (n + static_cast<T>(slowed - 1)) / static_cast<T>(slowed);
}

}  // namespace sluice::test
