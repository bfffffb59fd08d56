// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts the program's heap allocations: allocations.cpp replaces the global operators. The build links it where a test
/// includes this, and keeps such tests in programs of their own.
#pragma once

#include <cstddef>

namespace sluice::test {

/// Calls of operator new so far, by anybody in this (single-threaded) program.
std::size_t allocations();

}  // namespace sluice::test
