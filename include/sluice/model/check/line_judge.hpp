// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a line of the answer is the expected one.
#pragma once

#include <sluice/language.hpp>

#include <sluice/model/check/slot_contract.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace sluice::inline v0::detail {

/// Where two lines differ most.
struct Difference {
  std::ptrdiff_t column = -1;  // -1: no column differs by more than the tolerance
  double by = 0;
};

/// Compares each number x of a line with the expected number e (the lines have equal lengths): |x - e| <= tolerance *
/// (1 + |e|). NaN matches NaN, an infinity matches itself.
inline Difference difference(std::span<double const> line, std::span<double const> expected, double tolerance) {
  Difference worst;
  for (std::size_t i = 0; i < line.size(); ++i) {
    auto const x = line[i], e = expected[i];
    if (x == e || (std::isnan(x) && std::isnan(e))) continue;
    auto const by = std::abs(x - e);
    if (std::isfinite(e) && by <= tolerance * (1 + std::abs(e))) continue;
    if (worst.column < 0 || !(by <= worst.by)) worst = {static_cast<std::ptrdiff_t>(i), by};
  }
  return worst;
}

/// Refuses lines that differ by more than a tolerance.
class LineJudge {
 public:
  /// \param number  what the numbers of a line are
  LineJudge(SlotContract& contract, double tolerance, char const* number)
      : contract_(contract), tolerance_(tolerance), number_(number) {}

  void answered(std::ptrdiff_t lines, std::ptrdiff_t asked) {
    if (lines != asked)
      contract_.refuse("clause 9",
                       "the model was asked for " + std::to_string(asked) + " lines and gave " + std::to_string(lines));
  }
  /// \param clause  the clause that is broken if they differ
  /// \param where   the slot, and how the line was produced
  void expect(std::span<double const> line, std::span<double const> expected, std::string const& clause,
              std::string const& where) {
    if (line.size() != expected.size())
      contract_.refuse(clause, where + ": the line has " + std::to_string(line.size()) + " numbers, not " +
                                   std::to_string(expected.size()));
    auto const found = difference(line, expected, tolerance_);
    if (found.column < 0) return;
    std::array<char, 32> by{};
    std::snprintf(by.data(), by.size(), "%.3g", found.by);
    contract_.refuse(clause, where + ": " + number_ + " " + std::to_string(found.column) + " differs by " + by.data());
  }

 private:
  SlotContract& contract_;
  double tolerance_;
  std::string number_;
};

}  // namespace sluice::inline v0::detail
