// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tries out what a model must do with slots, in two slots that are not in use.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/model/detail/line_judge.hpp>
#include <sluice/model/detail/plain_lines.hpp>
#include <sluice/model/detail/trial_slots.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Tries every clause with one text, beside another text that must not matter. Costs about five times the text's
/// tokens, in steps of one or two rows. Each trial relies only on what the earlier trials have shown, so the error
/// names the clause that fails.
class SlotTrials {
 public:
  /// \param y  a token that is not the text's last
  SlotTrials(TrialSlots& trial, LineJudge& judge, Abilities able, Text const& text, Text const& other, Token y)

      : slots_(trial),
        judge_(judge),
        able_(able),
        text_(text),
        other_(other),
        n_(text.tokens.size()),
        x_(text.tokens.back()),
        y_(y) {}

  void run() {
    learn();
    restart();
    if (able_.blocks) block();
    if (able_.trees) tree();
    together();
    fork();
    if (able_.roll_back) roll_back();
    slots_.release();
  }

 private:
  using Line = std::vector<double>;
  static Line last(PlainLines const& lines) {
    auto const line = lines[lines.rows - 1];
    return {line.begin(), line.end()};
  }
  Line feed(std::size_t slot, std::size_t length, std::span<Token const> tokens) {
    return last(slots_.feed(slot, length, tokens));
  }
  Line feed(std::size_t slot, std::size_t length, Token token) { return feed(slot, length, {&token, 1}); }
  std::string in(std::size_t slot) const { return "slot " + std::to_string(slots_.numbers[slot]); }
  std::string after(std::size_t slot, std::size_t length) const {
    return in(slot) + " after " + std::to_string(length) + " tokens";
  }

  /// Records the lines to compare with: after the text, after x, and after y behind x.
  void learn() {
    slots_.start(text_.source, 0), slots_.start(text_.source, 1);
    text_line_ = feed(1, 0, text_.tokens);
    judge_.expect(feed(0, 0, text_.tokens), text_line_, "clause 11: a line depends on its slot",
                  after(0, n_) + ", compared with " + in(1));
    x_line_ = feed(0, n_, x_), xy_line_ = feed(0, n_ + 1, y_);
    judge_.expect(feed(1, n_, x_), x_line_, "clause 10: a step changed a slot that no row names",
                  after(1, n_ + 1) + ", which sat out " + std::to_string(n_ + 2) + " steps");
  }

  /// Starts again after another text: the lines after y, and after x behind y.
  void restart() {
    slots_.start(other_.source, 0);
    static_cast<void>(feed(0, 0, y_));
    slots_.start(text_.source, 0);
    judge_.expect(feed(0, 0, text_.tokens), text_line_, "release then start left something behind",
                  after(0, n_) + ", compared with " + in(1));
    judge_.expect(feed(1, n_ + 1, y_), xy_line_, "a start or a release changed another slot",
                  after(1, n_ + 2) + ", while " + in(0) + " was released and started");
    y_line_ = feed(0, n_, y_), yx_line_ = feed(0, n_ + 1, x_);
  }

  void block() {
    auto tokens = text_.tokens;
    tokens.push_back(x_), tokens.push_back(y_);
    slots_.start(text_.source, 0);
    Row const row{slots_.numbers[0], slots_.numbers[0], 0, tokens, 3};
    auto const& lines = slots_.run(std::span(&row, 1));
    std::array const expected{&text_line_, &x_line_, &xy_line_};
    for (std::size_t i = 0; i < 3; ++i)
      judge_.expect(lines[static_cast<std::ptrdiff_t>(i)], *expected[i],
                    "clause 11: a block gives other lines than its tokens one by one",
                    after(0, n_ + i) + ", in a block of " + std::to_string(n_ + 2));
  }

  /// A tree: x behind the text, and beside it y with x behind that. The first path stays.
  void tree() {
    auto tokens = text_.tokens;
    for (auto const token : {x_, y_, x_}) tokens.push_back(token);
    std::vector<std::int32_t> depths;
    for (std::size_t i = 0; i < tokens.size(); ++i) depths.push_back(static_cast<std::int32_t>(i <= n_ ? i : i - 1));
    slots_.start(text_.source, 0);
    Row const row{slots_.numbers[0], slots_.numbers[0], 0, tokens, 4, depths.data()};
    auto const& lines = slots_.run(std::span(&row, 1));
    std::array const expected{&text_line_, &x_line_, &y_line_, &yx_line_};
    std::array const lengths{n_, n_ + 1, n_ + 1, n_ + 2};
    for (std::size_t i = 0; i < 4; ++i)
      judge_.expect(lines[static_cast<std::ptrdiff_t>(i)], *expected[i],
                    "clause 12: a tree gives other lines than its paths one by one",
                    after(0, lengths[i]) + (i < 2 ? ", on the first path" : ", on the second path"));
    judge_.expect(feed(0, n_ + 1, y_), xy_line_, "clause 12: a slot does not hold the first path of its tree",
                  after(0, n_ + 2));
  }

  /// The text in slot 0 beside another text in slot 1, which is shorter if the model allows ragged rows.
  void together() {
    slots_.start(text_.source, 0), slots_.start(other_.source, 1);
    auto const late = able_.ragged ? n_ / 2 : 0;
    Line line;
    for (std::size_t i = 0; i < n_; ++i) {
      std::vector<Row> rows{
          {slots_.numbers[0], slots_.numbers[0], static_cast<std::int32_t>(i), {&text_.tokens[i], 1}}};
      if (i >= late)
        rows.push_back({slots_.numbers[1],
                        slots_.numbers[1],
                        static_cast<std::int32_t>(i - late),
                        {&other_.tokens[i % other_.tokens.size()], 1}});
      auto const first = slots_.run(rows)[0];
      line.assign(first.begin(), first.end());
    }
    judge_.expect(line, text_line_, "clause 11: a line depends on its batch",
                  after(0, n_) + " in a step of two rows, compared with alone");
  }

  /// Forks slot 0 into slot 1, over what slot 1 holds; then each continues separately.
  void fork() {
    step_and_fork("clause 4: a fork");
    judge_.expect(feed(1, n_ + 1, x_), yx_line_, "clause 4: a fork shares memory with its parent",
                  after(1, n_ + 2) + ", forked from " + in(0));
    judge_.expect(feed(0, n_ + 1, y_), xy_line_, "clause 4: a fork shares memory with its parent",
                  after(0, n_ + 2) + ", forked into " + in(1));
  }
  void step_and_fork(std::string const& clause) {
    auto const length = static_cast<std::int32_t>(n_);
    std::array<Row, 2> const rows{{{slots_.numbers[0], slots_.numbers[0], length, {&x_, 1}},
                                   {slots_.numbers[0], slots_.numbers[1], length, {&y_, 1}}}};
    auto const& lines = slots_.run(rows);
    judge_.expect(lines[0], x_line_, clause + " changed its parent", after(0, n_ + 1));
    judge_.expect(lines[1], y_line_, clause + " does not hold what its parent held", after(1, n_ + 1));
  }

  /// Slot 0 holds two tokens behind the text.
  void roll_back() {
    step_and_fork("clause 5: after a roll-back a fork");
    auto const kept = n_ / 2;
    auto const rest = std::span<Token const>(text_.tokens).subspan(kept);
    for (std::size_t slot = 0; slot < 2; ++slot)
      judge_.expect(feed(slot, kept, rest), text_line_, "clause 5: a roll-back left something behind",
                    after(slot, n_) + ", of " + std::to_string(n_ + 1) + " " + std::to_string(kept) + " were kept");
  }

  TrialSlots& slots_;
  LineJudge& judge_;
  Abilities able_;
  Text const& text_;
  Text const& other_;
  std::size_t n_;
  Token x_, y_;
  Line text_line_, x_line_, y_line_, xy_line_, yx_line_;
};

}  // namespace sluice::inline v0::detail
