// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tells whether a class has a member of a name, whatever its signature: an optional member with a slightly wrong parameter must
/// not be ignored.
#pragma once

#include <sluice/language.hpp>

#include <type_traits>

namespace sluice::inline v0::detail {

/// A class with conditional members (a wrapper that forwards to what it wraps) has `using Wrapped = ...`. Only its concepts are
/// checked.
template <class T>
concept Conditional = requires {
  typename T::Wrapped;
};

}  // namespace sluice::inline v0::detail

/// Defines in sluice::detail names_x<T>(): T has a member called x, of any kind, overloaded or not (a name that is found both
/// in T and in another base is ambiguous; in a final class only members that are not overloaded are found). Also defines
/// stray_x<T>(): the same, but false for classes with conditional members.
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
SLUICE_NAMES(adapt)
