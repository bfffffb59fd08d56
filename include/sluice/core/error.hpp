// SPDX-License-Identifier: Apache-2.0
/// \file
/// Errors: checks of arguments, NoRoom, messages of exceptions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/in_library.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice::inline v0 {

namespace detail {

SLUICE_LAZY [[noreturn]] void refuse_argument(std::string_view name, std::string_view value, std::string_view rule) {
  std::string text = "sluice: ";
  throw std::invalid_argument(text.append(name).append(" = ").append(value).append(": ").append(rule));
}
SLUICE_FUNCTION_IN_LIBRARY(void refuse_argument<void>(std::string_view, std::string_view, std::string_view))

}  // namespace detail

/// Throws std::invalid_argument "sluice: NAME = VALUE: RULE" unless `condition` holds.
template <class Value>
void require(bool condition, std::string_view name, Value const& value, std::string_view rule) {
  if (condition) return;
  if constexpr (requires { std::string_view(value); }) detail::refuse_argument(name, value, rule);
  else detail::refuse_argument(name, std::to_string(value), rule);
}

/// A model's `step` (or `start`) throws this if it has no room now, but would have if its slots held less. It is no failure: the
/// sentences of that step are preempted, and start again later, fewer at a time. A sentence that has no room even alone ends
/// with Failure::no_room.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The message of an exception.
SLUICE_LAZY std::string describe(std::exception_ptr const& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (std::exception const& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}
SLUICE_FUNCTION_IN_LIBRARY(std::string describe<void>(std::exception_ptr const&))

}  // namespace sluice::inline v0
