// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structs that begin with their size, of callers who may have been compiled with an earlier header, or with a later one.
#pragma once

#include <sluice/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::c {

/// \param first  the size with the members that nobody can do without
/// \throws std::invalid_argument  if the size that a struct says cannot be right
template <class T>
void check_size(T const& given, std::string_view name, std::size_t first) {
  auto const size = given.size;
  if (size < first || size % alignof(T) != 0)
    require(false, std::string(name) + ".size", size,
            "must be sizeof(" + std::string(name) + ") of the header that the program was compiled with, which is " +
                std::to_string(sizeof(T)) + " here and was never below " + std::to_string(first));
}

/// What the caller filled; members that its struct does not reach are zero.
/// \throws std::invalid_argument  if the size cannot be right, or members that this library does not know are set
template <class T>
T taken(T const& given, std::string_view name, std::size_t first) {
  check_size(given, name, first);
  auto const size = given.size;
  auto const* const bytes = reinterpret_cast<char const*>(&given);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char byte) { return byte != 0; }))
    require(false, std::string(name) + ".size", size,
            "has members that this library does not know, and they are not zero: it knows " +
                std::to_string(sizeof(T)) + " bytes");
  T known{};
  std::memcpy(&known, bytes, (std::min)(size, sizeof(T)));
  known.size = sizeof(T);
  return known;
}

/// Writes `made` to a struct of the caller, as much as that has; its size stays, and so do members that this library does not know.
/// \throws std::invalid_argument  if the size cannot be right
template <class T>
void give(T made, T& to, std::string_view name, std::size_t first) {
  check_size(to, name, first);
  made.size = to.size;
  std::memcpy(&to, &made, (std::min)(made.size, sizeof(T)));
}

}  // namespace sluice::c
