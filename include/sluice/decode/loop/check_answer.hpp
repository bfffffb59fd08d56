// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks that a model's answer has the shape that was asked for.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace sluice::inline v0::detail {

/// Throws std::logic_error if the shape is not [lines, vocabulary]: an expander would read out of bounds. Checks `rows`,
/// and `columns` if the answer holds scores. Other kinds of answer are for their expander to check.
template <class A>
void check_answer(A const& answer, std::size_t lines, std::int32_t vocabulary) {
  if constexpr (requires { answer.rows; })
    if (answer.rows != static_cast<std::ptrdiff_t>(lines))
      throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and gave " +
                             std::to_string(answer.rows));
  if constexpr (requires { answer.kind; })
    if (answer.columns != vocabulary)
      throw std::logic_error("sluice: the model's lines have " + std::to_string(answer.columns) +
                             " scores, its vocabulary " + std::to_string(vocabulary));
}

/// The same for attachments.
template <class = void>
void check_attachments(Attachments const& attached, std::size_t lines) {
  auto const& [values, widths] = attached;
  if (values.rows != 0 && values.rows != static_cast<std::ptrdiff_t>(lines))
    throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and attaches " +
                           std::to_string(values.rows));
  if (values.rows != 0 && !widths.empty() && widths.size() != lines)
    throw std::logic_error("sluice: the model was asked for " + std::to_string(lines) + " lines and attaches " +
                           std::to_string(widths.size()) + " widths");
  for (auto const width : widths)
    if (values.rows != 0 && (width < 0 || width > values.columns))
      throw std::logic_error("sluice: the model attaches a width of " + std::to_string(width) + " among " +
                             std::to_string(values.columns) + " columns");
}

}  // namespace sluice::inline v0::detail
