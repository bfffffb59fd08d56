// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts the program's heap allocations: allocations.cpp replaces the global operators. The build links it for tests
/// that include this header, and keeps such tests in separate programs.
#pragma once

#include <cstddef>

namespace sluice::test {

/// The number of calls of operator new so far, anywhere in this (single-threaded) program.
std::size_t allocations();

}  // namespace sluice::test
