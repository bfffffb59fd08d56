// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops over independent rows, in threads if the caller compiles with OpenMP.
#pragma once

#include <sluice/language.hpp>

#include <sluice/output/detail/simd/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// The number of parts for a loop over `rows`: one without OpenMP, or if the work (numbers read) is too small to wake
/// threads.
inline std::size_t parallel_parts([[maybe_unused]] std::ptrdiff_t rows, [[maybe_unused]] std::ptrdiff_t work) {
#if defined(_OPENMP)
  constexpr std::ptrdiff_t worth = 1 << 17;
  if (work >= worth && omp_in_parallel() == 0)
    return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(rows, 1, omp_get_max_threads()));
#endif
  return 1;
}

/// Calls body(part, first, last) for `parts` parts of 0 .. rows - 1. Rethrows an exception of any part.
template <class Body>
void parallel_for(std::size_t parts, std::ptrdiff_t rows, Body const& body) {
  if (parts <= 1) {
    body(std::size_t{0}, std::ptrdiff_t{0}, rows);
    return;
  }
#if defined(_OPENMP)
  auto const count = static_cast<int>(parts);
  std::exception_ptr problem;
#pragma omp parallel for num_threads(count) schedule(static, 1)
  for (int part = 0; part < count; ++part) {
    try {
      body(static_cast<std::size_t>(part), rows * part / count, rows * (part + 1) / count);
    } catch (...) {
#pragma omp critical(sluice_parallel_for)
      problem = std::current_exception();
    }
  }
  if (problem != nullptr) std::rethrow_exception(problem);
#endif
}

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
