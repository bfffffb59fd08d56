// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether a model gives the same answer in the middle of decoding as for the same tokens alone.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/check/check_options.hpp>
#include <sluice/model/check/line_judge.hpp>
#include <sluice/model/check/plain_lines.hpp>
#include <sluice/model/check/slot_contract.hpp>
#include <sluice/model/check/slot_trials.hpp>
#include <sluice/model/check/trial_slots.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Tracks what each slot holds and how it got there, and compares before and after a step.
class SlotComparison {
 public:
  static constexpr std::int32_t spare = 2;  ///< slots that comparisons need

  /// \param slots   how many the model has
  /// \param number  what the numbers of a line are
  SlotComparison(PlainModel& model, SlotContract& contract, CheckOptions const& options, std::int32_t slot_count,
                 char const* number)
      : model_(model),
        contract_(contract),
        judge_(contract, options.tolerance, number),
        options_(options),
        slots_(slot_count) {}

  /// \param keep  keeps the source alive, if the caller need not
  void started(Slot slot, void const* source, std::shared_ptr<void const> keep = {}, bool encoded = false) {
    origins_[slot] = {.source = source, .keep = std::move(keep), .encoded = encoded};
    highest_ = (std::max)(highest_, slot);
  }
  void released(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) origins_.erase(slot);
  }
  void stepped(std::span<Row const> rows) {
    for (auto& [slot, origin] : origins_) ++origin.sat_out_now;
    for (auto const& row : rows) {
      auto const held = contract_.held().at(row.from).size();
      auto& from = origins_.at(row.from);
      from.cut = from.cut || (row.from == row.to && static_cast<std::size_t>(row.length) < held);
      if (row.from == row.to) continue;
      from.forked = true;
      auto child = from;
      child.from = row.from, child.forked = false;
      child.cut = child.cut || static_cast<std::size_t>(row.length) < held;
      origins_[row.to] = child;
      highest_ = (std::max)(highest_, row.to);
    }
    for (auto const& row : rows) {
      auto& to = origins_.at(row.to);
      to.block = to.block || row.tokens.size() > 1;
      to.sat_out_now = 0;
    }
    for (auto& [slot, origin] : origins_) origin.sat_out = (std::max)(origin.sat_out, origin.sat_out_now);
  }

  /// Whether some rows of the step are to be compared. Does the part of the comparison that must come before the step.
  bool before(std::span<Row const> rows) {
    chosen_.clear();
    if (options_.every == 0 || contract_.steps() % static_cast<std::size_t>(options_.every) != 0) return false;
    auto const key = derive(options_.seed, contract_.steps());
    auto top = highest_;
    for (auto const& row : rows) top = (std::max)(top, row.to);
    auto const first = slots_ == Limits::unlimited ? top + 1 : slots_ - spare;
    TrialSlots trial(model_, judge_, first);
    for (std::int32_t j = 0; j < options_.rows; ++j) {
      auto const i = derive(key, static_cast<std::uint64_t>(j)) % rows.size();
      auto const known = origins_.find(rows[i].from);
      if (known == origins_.end() || known->second.source == nullptr) continue;
      if (std::ranges::any_of(chosen_, [&](Chosen const& one) { return one.row == i; })) continue;
      compare(trial, rows[i], i, known->second, derive(key, static_cast<std::uint64_t>(j) + 1000));
    }
    trial.release();
    return !chosen_.empty();
  }

  /// Calls lines(first, count), which copies those lines of the answer, for the rows that are being compared.
  template <class F>
  void after(std::span<Row const> rows, F&& lines) {
    std::ptrdiff_t line = 0;
    for (std::size_t i = 0; i < rows.size(); line += rows[i++].lines)
      for (auto const& one : chosen_)
        if (one.row == i)
          expect(lines(line, rows[i].lines), one.expected, rows[i], rows[i].to,
                 one.encoded
                     ? "start: what was encoded ahead is another sentence, or clause 11: a line depends on its batch"
                     : "clause 11: a line depends on its batch",
                 " in a step of " + std::to_string(rows.size()) + " rows, compared with alone");
  }

  LineJudge& judge() { return judge_; }

 private:
  struct Origin {
    void const* source = nullptr;
    std::shared_ptr<void const> keep{};
    bool encoded = false, forked = false, cut = false, block = false;
    Slot from = -1;
    std::int32_t sat_out = 0, sat_out_now = 0;
  };
  struct Chosen {
    std::size_t row;
    PlainLines expected;
    bool encoded;  // encoded ahead, and nothing fed since
  };

  void compare(TrialSlots& trial, Row const& row, std::size_t i, Origin const& origin, std::uint64_t key) {
    auto const& held = contract_.held().at(row.from);
    Text text{origin.source, {held.begin(), held.begin() + row.length}};
    auto const kept = row.tokens.first(row.kept());
    text.tokens.insert(text.tokens.end(), kept.begin(), kept.end());
    try_out(trial, text, key);

    auto expected = row.depths == nullptr ? PlainLines{} : paths(trial, row, text);
    trial.start(text.source, 1);
    if (row.depths == nullptr) expected = trial.feed(1, 0, text.tokens, row.lines);
    if (row.length > 0) {  // what the slot holds, without the rest of the batch
      auto alone = row;
      alone.to = trial.numbers[0];
      expect(trial.run(std::span(&alone, 1)), expected, row, row.from,
             "a slot does not hold what was fed to it (clauses 4, 5, 10 and 11)",
             ", forked and continued alone, compared with its tokens fed anew; the slot " + history(origin));
      trial.release(0);
    }
    trial.release(1);
    chosen_.push_back({i, std::move(expected), origin.encoded && row.length == 0});
  }

  /// The lines of a tree's paths, each fed as a chain.
  static PlainLines paths(TrialSlots& trial, Row const& row, Text const& text) {
    PlainLines all;
    auto path = text.tokens;
    for (std::size_t i = 0; i < row.tokens.size(); ++i) {
      path.resize(static_cast<std::size_t>(row.length) + static_cast<std::size_t>(row.depths[i]));
      path.push_back(row.tokens[i]);
      if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
      trial.start(text.source, 1);
      auto const line = trial.feed(1, 0, path, 1);
      all.columns = line.columns, ++all.rows;
      all.numbers.insert(all.numbers.end(), line.numbers.begin(), line.numbers.end());
    }
    return all;
  }

  void try_out(TrialSlots& trial, Text text, std::uint64_t key) {
    auto const& terms = contract_.terms();
    if (terms.limits.length < 3) return;  // the trials add two tokens
    auto const most = (std::min)(text.tokens.size(), static_cast<std::size_t>(terms.limits.length) - 2);
    text.tokens.resize(1 + derive(key, 0) % most);
    auto const size = static_cast<std::uint64_t>(terms.vocabulary);
    auto y = static_cast<Token>(derive(key, 1) % size);
    if (y == text.tokens.back()) y = static_cast<Token>((static_cast<std::uint64_t>(y) + 1) % size);
    SlotTrials(trial, judge_, terms.abilities, text, beside(text, y), y).run();
  }

  /// A different text: of another source if there is one, else with other tokens.
  Text beside(Text const& text, Token y) const {
    Text other{text.source, {y}};
    for (auto const& [slot, tokens] : contract_.held()) {
      auto const origin = origins_.find(slot);
      if (tokens.empty() || origin == origins_.end() || origin->second.source == nullptr) continue;
      if (origin->second.source != text.source) return {origin->second.source, tokens};
      if (!std::ranges::equal(tokens, text.tokens)) other.tokens = tokens;
    }
    return other;
  }

  void expect(PlainLines const& lines, PlainLines const& expected, Row const& row, Slot slot, std::string const& clause,
              std::string const& how) {
    for (std::ptrdiff_t i = 0; i < expected.rows; ++i)
      judge_.expect(lines[i], expected[i], clause,
                    "slot " + std::to_string(slot) + " after " +
                        std::to_string(row.length + 1 +
                                       row.depth(row.tokens.size() - static_cast<std::size_t>(expected.rows - i))) +
                        " tokens" + (row.depths == nullptr ? "" : " of a tree") + how);
  }

  static std::string history(Origin const& origin) {
    std::string text;
    auto const add = [&](bool did, std::string const& what) {
      if (did) text.append(text.empty() ? "" : ", ").append(what);
    };
    add(origin.encoded, "was encoded ahead");
    add(origin.from >= 0, "came of a fork of slot " + std::to_string(origin.from));
    add(origin.forked, "was forked from");
    add(origin.cut, "was rolled back");
    add(origin.block, "was fed blocks");
    add(origin.sat_out > 0, "sat out " + std::to_string(origin.sat_out) + " steps");
    return text.empty() ? "was fed token by token in every step" : text;
  }

  PlainModel& model_;
  SlotContract& contract_;
  LineJudge judge_;
  CheckOptions options_;
  std::int32_t slots_;
  std::map<Slot, Origin> origins_;
  std::vector<Chosen> chosen_;
  Slot highest_ = -1;
};

}  // namespace sluice::inline v0::detail
