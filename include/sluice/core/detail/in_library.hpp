// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which searches a program need not compile, as the compiled library (SLUICE_COMPILED) holds them.
#pragma once

#include <sluice/language.hpp>

#include <memory>

namespace sluice::inline v0::detail {

struct AnySearches;

/// The searches of a decoder: decode/detail/searches_of.hpp.
template <class S>
std::unique_ptr<AnySearches> make_searches(S search);

}  // namespace sluice::inline v0::detail

/// After a function template: its instance for `void` is in the library. In its namespace, and for functions that are not inline.
#ifdef SLUICE_COMPILED
#define SLUICE_FUNCTION_IN_LIBRARY(...) extern template __VA_ARGS__;
#else
#define SLUICE_FUNCTION_IN_LIBRARY(...)
#endif

/// After a search: it is in the library. Outside of namespaces.
#ifdef SLUICE_COMPILED
#define SLUICE_IN_LIBRARY(...)                                                                                         \
  namespace sluice::inline v0::detail {                                                                                \
  extern template std::unique_ptr<AnySearches> make_searches(__VA_ARGS__);                                             \
  }
#else
#define SLUICE_IN_LIBRARY(...)
#endif

/// Functions that differ with SLUICE_COMPILED have names of their own for the linker, so that it takes neither for the other.
#ifdef SLUICE_COMPILED
#define SLUICE_ABI_TAG [[gnu::abi_tag("compiled")]]
#else
#define SLUICE_ABI_TAG
#endif
