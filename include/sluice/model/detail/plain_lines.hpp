// SPDX-License-Identifier: Apache-2.0
/// \file
/// Models and answers of any type, as the checker's comparisons see them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::inline v0::detail {

/// An answer whose numbers can be read: [rows, columns], one line a row.
template <class A>
concept ReadableAnswer = requires(A const& answer, std::ptrdiff_t i) {
  { answer.rows } -> std::convertible_to<std::ptrdiff_t>;
  { answer.columns } -> std::convertible_to<std::ptrdiff_t>;
  static_cast<float>(answer[i][std::size_t{0}]);
};

/// Copies of lines.
struct PlainLines {
  std::ptrdiff_t rows = 0, columns = 0;
  std::vector<double> numbers{};  // [rows, columns]

  std::span<double const> operator[](std::ptrdiff_t i) const {
    return std::span(numbers).subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(columns));
  }
  template <ReadableAnswer A>
  void append(A const& answer, std::ptrdiff_t first, std::ptrdiff_t count) {
    rows += count, columns = answer.columns;
    for (auto i = first; i < first + count; ++i)
      for (auto const& x : answer[i])
        if constexpr (std::floating_point<std::remove_cvref_t<decltype(x)>>) numbers.push_back(static_cast<double>(x));
        else numbers.push_back(static_cast<double>(static_cast<float>(x)));
  }
  /// Keeps the last `count` lines.
  void keep(std::ptrdiff_t count) {
    if (rows <= count) return;
    numbers.erase(numbers.begin(), numbers.end() - count * columns);
    rows = count;
  }
};

/// A model with the types of its sources and answers erased.
struct PlainModel {
  PlainModel() = default;
  PlainModel(PlainModel const&) = delete;
  PlainModel& operator=(PlainModel const&) = delete;
  virtual ~PlainModel() = default;
  virtual void start(void const* source, Slot slot) = 0;
  /// Appends the whole answer.
  virtual void step(std::span<Row const> rows, PlainLines& lines) = 0;
  virtual void release(Slot slot) = 0;
};

}  // namespace sluice::inline v0::detail
