// SPDX-License-Identifier: Apache-2.0
/// \file
/// Errors: checks of arguments, NoRoom, messages of exceptions.
#pragma once

#include <sluice/language.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::inline v0 {

/// Throws std::invalid_argument "sluice: NAME = VALUE: RULE" unless `condition` holds.
template <class Value>
void require(bool condition, std::string_view name, Value const& value, std::string_view rule) {
  if (condition) return;
  std::string text = "sluice: ";
  text.append(name).append(" = ");
  if constexpr (requires { std::string_view(value); }) text.append(std::string_view(value));
  else text.append(std::to_string(value));
  throw std::invalid_argument(text.append(": ").append(rule));
}

/// A model's `step` (or `start`) throws this if it has no room now, but would have if its slots held less. It is no failure: the
/// sentences of that step are preempted, and start again later, fewer at a time. A sentence that has no room even alone ends
/// with Failure::no_room.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The message of an exception.
template <class = void>
std::string describe(std::exception_ptr const& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (std::exception const& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace sluice::inline v0
