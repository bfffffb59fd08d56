// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which mutant runs. scripts/mutate includes this before everything else in what it builds; nothing else does.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace sluice_mutation {

inline unsigned char reached[SLUICE_MUTANTS];  // mutants whose place was passed

/// SLUICE_MUTANT: the number of the one that runs; 0, or not set: none. SLUICE_MUTANT_REACHED: a file that is given the numbers of
/// those whose place was passed.
struct State {
  int running = 0;
  char const* file = nullptr;
  State() : file(std::getenv("SLUICE_MUTANT_REACHED")) {
    if (char const* const number = std::getenv("SLUICE_MUTANT")) running = std::atoi(number);
  }
  ~State() {
    if (file == nullptr) return;
    std::FILE* const out = std::fopen(file, "w");
    if (out == nullptr) return;
    for (int i = 0; i < SLUICE_MUTANTS; ++i)
      if (reached[i] != 0) std::fprintf(out, "%d\n", i);
    std::fclose(out);
  }
};
inline State state;

[[gnu::noinline]] inline bool note(int number) {
  __atomic_store_n(&reached[number], static_cast<unsigned char>(1), __ATOMIC_RELAXED);
  return false;
}
/// Whether this mutant runs. Not in constant expressions: what needs one there is an error, and is taken out.
inline bool on(int number) { return state.running == number || (state.file != nullptr && note(number)); }
/// The same where the compiler may have to know at once, as in constexpr functions: there it does not run.
constexpr bool later(int number) { return !std::is_constant_evaluated() && on(number); }

}  // namespace sluice_mutation
