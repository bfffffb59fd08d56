// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a line of the answer is the expected one.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/model/detail/plain_lines.hpp>
#include <sluice/model/detail/slot_contract.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

/// Refuses an answer that is wrong whatever it is compared with: lines of another width than the vocabulary, numbers that are none.
/// Names the row.
/// \param numbers  all of them are looked at
/// \param where    what precedes the row
template <ReadableAnswer A>
void judge_answer(SlotContract& contract, A const& answer, std::span<Row const> rows, bool numbers,
                  std::string const& where) {
  constexpr auto scores = requires { answer.kind; };
  auto const wide = static_cast<std::ptrdiff_t>(answer.columns);
  if (scores && answer.rows > 0 && wide != contract.terms().vocabulary)
    contract.refuse("clause 9", where + SlotContract::name(0, rows[0]) + ": its line has " + std::to_string(wide) +
                                    " scores, and the vocabulary " + std::to_string(contract.terms().vocabulary) +
                                    " tokens");
  std::ptrdiff_t line = 0;
  for (std::size_t i = 0; numbers && i < rows.size(); ++i)
    for (std::int32_t k = 0; k < rows[i].lines && line < answer.rows; ++k, ++line) {
      auto const one = answer[line];
      for (std::ptrdiff_t column = 0; column < wide; ++column) {
        auto const x = static_cast<float>(one[static_cast<std::size_t>(column)]);
        if (std::isfinite(x) || (scores && x < 0)) continue;  // -infinity: impossible
        auto const fed = rows[i].tokens[rows[i].tokens.size() - static_cast<std::size_t>(rows[i].lines - k)];
        contract.refuse("the answer", where + SlotContract::name(i, rows[i]) + ": after token " + std::to_string(fed) +
                                          ", " + (scores ? "the score of token " : "number ") + std::to_string(column) +
                                          " is " +
                                          (std::isnan(x) ? "NaN"
                                           : x > 0       ? "infinity"
                                                         : "-infinity"));
      }
    }
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
