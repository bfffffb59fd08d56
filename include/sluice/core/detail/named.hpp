// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a class has a member of a name, whatever its signature: what the library looks for by name must not vanish for a
/// parameter that is slightly wrong.
#pragma once

#include <sluice/language.hpp>

#include <type_traits>

namespace sluice::inline v0::detail {

/// A class whose members are there under conditions (a wrapper that passes on what it wraps) says what it wraps, by
/// `using Wrapped = ...`, and is judged by its concepts alone.
template <class T>
concept Conditional = requires {
  typename T::Wrapped;
};

}  // namespace sluice::inline v0::detail

/// Defines in sluice::detail names_x<T>(): T has a member called x, of whatever kind, overloaded or not (a name that is found both
/// in T and in another base is ambiguous; of a final class only what is not overloaded is found); and stray_x<T>(): the same,
/// where that is for the library to judge.
#define SLUICE_NAMES(x)                                                                                                \
  namespace sluice::inline v0::detail {                                                                                \
  struct Decoy_##x {                                                                                                   \
    int x; /* NOLINT(bugprone-macro-parentheses) */                                                                    \
  };                                                                                                                   \
  template <class T>                                                                                                   \
  struct Both_##x : T, Decoy_##x {};                                                                                   \
  template <class T>                                                                                                   \
  constexpr bool names_##x() {                                                                                         \
    if constexpr (!std::is_class_v<T>) return false;                                                                   \
    else if constexpr (std::is_final_v<T>) return requires {                                                           \
        &T::x;                                                                                                         \
      };                                                                                                               \
    else return !requires {                                                                                            \
        &Both_##x<T>::x;                                                                                               \
      };                                                                                                               \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  constexpr bool stray_##x() {                                                                                         \
    if constexpr (Conditional<T>) return false;                                                                        \
    else return names_##x<T>();                                                                                        \
  }                                                                                                                    \
  }  // namespace sluice::inline v0::detail

SLUICE_NAMES(check)
