// SPDX-License-Identifier: Apache-2.0
/// \file
/// Two unused slots of a model, to try things out in.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/model/detail/line_judge.hpp>
#include <sluice/model/detail/plain_lines.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A source, and tokens to feed to it.
struct Text {
  void const* source = nullptr;
  std::vector<Token> tokens{};
};

/// Two free slots of a model; the destructor frees them again.
class TrialSlots {
 public:
  TrialSlots(PlainModel& model, LineJudge& judge, Slot first)
      : numbers{first, first + 1}, model_(model), judge_(judge) {}
  TrialSlots(TrialSlots const&) = delete;
  TrialSlots& operator=(TrialSlots const&) = delete;
  ~TrialSlots() { release(); }

  std::array<Slot, 2> const numbers;

  /// Starts the source in the first or the second slot, which may hold something else.
  void start(void const* source, std::size_t slot) {
    release(slot);
    model_.start(source, numbers[slot]);
    held_[slot] = true;
  }
  void release(std::size_t slot) {
    if (std::exchange(held_[slot], false)) model_.release(numbers[slot]);
  }
  void release() { release(0), release(1); }
  /// Runs the rows. The result is valid until the next run.
  PlainLines const& run(std::span<Row const> rows) {
    lines_.rows = 0, lines_.numbers.clear();
    std::ptrdiff_t asked = 0;
    for (auto const& row : rows) asked += row.lines;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (auto const& row : rows) held_[i] = held_[i] || row.to == numbers[i];
    model_.step(rows, lines_);
    judge_.answered(lines_.rows, asked);
    return lines_;
  }
  /// Feeds tokens one by one after the first `length` tokens; returns the last `keep` of their lines.
  PlainLines feed(std::size_t slot, std::size_t length, std::span<Token const> tokens, std::ptrdiff_t keep = 1) {
    PlainLines all;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      Row const row{numbers[slot], numbers[slot], static_cast<std::int32_t>(length + i), tokens.subspan(i, 1)};
      all.append(run(std::span(&row, 1)), 0, 1);
      all.keep(keep);
    }
    return all;
  }

 private:
  PlainModel& model_;
  LineJudge& judge_;
  std::array<bool, 2> held_{};
  PlainLines lines_;
};

}  // namespace sluice::inline v0::detail
