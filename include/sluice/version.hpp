// SPDX-License-Identifier: Apache-2.0
/// \file
/// The version of the library. It is written here and nowhere else; CMake reads these lines.
#pragma once

#include <sluice/language.hpp>

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

/// One number to compare in `#if`, where a later version is larger: 100 for 0.1.0, 10203 for 1.2.3.
#define SLUICE_VERSION (SLUICE_VERSION_MAJOR * 10000 + SLUICE_VERSION_MINOR * 100 + SLUICE_VERSION_PATCH)

namespace sluice::inline v0 {

/// A version of the library.
struct Version {
  int major;
  int minor;
  int patch;
};

/// The version of the headers that are included.
inline constexpr Version version{SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR, SLUICE_VERSION_PATCH};

}  // namespace sluice::inline v0
