// SPDX-License-Identifier: Apache-2.0
/// \file
/// A correct model with one mistake, of a kind that is easy to make.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace sluice::test {

enum class Mistake : std::uint8_t {
  none,
  fork_shares,          ///< a fork refers to the contents of its parent
  fork_moves,           ///< the parent is left empty
  one_pass,             ///< each row forks and appends before the next row does
  nothing_cut,          ///< Row::length is ignored
  start_keeps_tokens,   ///< start only records the source
  start_clears_others,  ///< start clears all slots first
  cuts_idle_slots,      ///< a step cuts slots that no row names
  slot_counts,          ///< the slot's number is part of the state
  neighbours_count,     ///< lines shift with the number of rows
  many_rows_count,      ///< the same from three rows on
  block_is_a_bag,       ///< a block's tokens are sorted
  one_line_a_row,       ///< further lines of a block are forgotten
  second_fork_counts,   ///< a fork of a fork uses another source
  encode_differs,       ///< a source encoded ahead differs
  vocabulary_grows,
  limits_change,
};

/// A table over slots that a std::map keeps. If roll-backs are not claimed it must not need them: `length` counts only
/// if it is less than the slot holds.
class SuspectModel {
 public:
  using Source = std::uint64_t;
  using Encoded = std::vector<Source>;

  explicit SuspectModel(Mistake mistake, Abilities claimed = {}, std::int32_t size = 16)
      : table_{.size = size}, mistake_(mistake), claimed_(claimed) {}

  Abilities abilities() const { return claimed_; }
  Vocabulary vocabulary() const {
    auto const more = mistake_ == Mistake::vocabulary_grows && steps_ > 20 ? 1 : 0;
    return {.size = table_.size + more, .bos = bos, .eos = {eos}, .never = {pad, bos}};
  }
  Limits limits() const { return {.slot_count = mistake_ == Mistake::limits_change && steps_ > 20 ? 99 : 100}; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    if (mistake_ == Mistake::start_clears_others)
      for (auto& [slot, held] : held_) held.tokens->clear();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto& held = held_[slots[i]];
      held.source = *sources[i], held.forks = 0;
      if (mistake_ != Mistake::start_keeps_tokens || held.tokens == nullptr)
        held.tokens = std::make_shared<std::vector<Token>>();
    }
  }
  Encoded encode(std::span<Source const* const> sources) const {
    Encoded all;
    for (auto const* source : sources) all.push_back(*source + (mistake_ == Mistake::encode_differs ? 1 : 0));
    return all;
  }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto const* const source = &encoded[static_cast<std::size_t>(items[i])];
      start(std::span<Source const* const>(&source, 1), slots.subspan(i, 1));
    }
  }

  Scores<float> step(std::span<Row const> rows) {
    ++steps_;
    scores_.clear();
    if (mistake_ == Mistake::cuts_idle_slots)
      for (auto& [slot, held] : held_)
        if (std::ranges::find(rows, slot, &Row::to) == rows.end() && !held.tokens->empty()) held.tokens->pop_back();
    if (mistake_ == Mistake::one_pass) {
      for (auto const& row : rows) fork(row), append(row, rows.size());
    } else {
      for (auto const& row : rows) fork(row);
      for (auto const& row : rows) append(row, rows.size());
    }
    return scores(scores_.data(), std::ssize(scores_) / table_.size, table_.size);
  }

 private:
  struct Held {
    Source source = 0;
    int forks = 0;
    std::shared_ptr<std::vector<Token>> tokens;
  };

  void fork(Row const& row) {
    if (row.from == row.to) return;
    auto& from = held_[row.from];
    auto& to = held_[row.to];
    to.source = from.source, to.forks = from.forks + 1;
    if (mistake_ == Mistake::second_fork_counts && to.forks == 2) ++to.source;
    if (mistake_ == Mistake::fork_shares) to.tokens = from.tokens;
    else to.tokens = std::make_shared<std::vector<Token>>(*from.tokens);
    if (mistake_ == Mistake::fork_moves) from.tokens->clear();
  }

  void append(Row const& row, std::size_t rows) {
    auto& held = held_[row.to];
    auto& tokens = *held.tokens;
    auto const length = static_cast<std::size_t>(row.length);
    if (claimed_.roll_back && mistake_ != Mistake::nothing_cut && tokens.size() > length) tokens.resize(length);
    std::vector<Token> fed(row.tokens.begin(), row.tokens.end());
    if (mistake_ == Mistake::block_is_a_bag) std::ranges::sort(fed, std::greater<>());
    for (std::size_t i = 0; i < fed.size(); ++i) {
      tokens.push_back(fed[i]);
      if (i + static_cast<std::size_t>(row.lines) < fed.size()) continue;
      if (mistake_ == Mistake::one_line_a_row && i + 1 < fed.size()) continue;
      answer(row.to, held, rows);
    }
  }

  void answer(Slot slot, Held const& held, std::size_t rows) {
    line_.resize(static_cast<std::size_t>(table_.size));
    auto const seed = held.source + (mistake_ == Mistake::slot_counts ? static_cast<std::uint64_t>(slot) << 32 : 0);
    table_.logits(seed, *held.tokens, line_);
    if ((mistake_ == Mistake::neighbours_count && rows > 1) || (mistake_ == Mistake::many_rows_count && rows > 2))
      line_[12] += 0.03;
    for (auto const x : line_) scores_.push_back(static_cast<float>(x));
  }

  Table table_;
  Mistake mistake_;
  Abilities claimed_;
  std::map<Slot, Held> held_;
  std::vector<double> line_;
  std::vector<float> scores_;
  std::size_t steps_ = 0;
};

}  // namespace sluice::test
