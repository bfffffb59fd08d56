// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table whose slots share one cache of cells, like llama.cpp's unified KV cache: a fork shares its parent's cells.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

/// Counts cells by giving each a number: slow but simple.
class Cells {
 public:
  void start(Slot slot) { held_[slot].clear(); }
  void release(Slot slot) { held_.erase(slot); }
  void apply(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) held_[row.to] = held_[row.from];
    for (auto const& row : rows) {
      auto& cells = held_[row.to];
      cells.resize(static_cast<std::size_t>(row.length));
      for (auto const token : row.tokens) cells.push_back({next_++, token});
    }
  }
  std::size_t used() const {
    std::set<std::uint64_t> all;
    for (auto const& [slot, cells] : held_)
      for (auto const& cell : cells) all.insert(cell.number);
    return all.size();
  }
  /// The number of cells used by some slots.
  std::size_t used(std::span<Slot const> slots) const {
    auto some = *this;
    std::erase_if(some.held_, [&](auto const& one) { return std::ranges::count(slots, one.first) == 0; });
    return some.used();
  }
  /// Whether `inner` holds the first cells of `outer`, or none.
  bool within(Slot inner, Slot outer) const {
    auto const common = length(inner);
    if (common == 0 || common > length(outer)) return common == 0;
    return held_.at(inner)[common - 1].number == held_.at(outer)[common - 1].number;
  }
  std::size_t length(Slot slot) const {
    auto const found = held_.find(slot);
    return found == held_.end() ? 0 : found->second.size();
  }
  std::size_t common(Slot slot, std::span<Token const> tokens) const {
    auto const found = held_.find(slot);
    std::size_t n = 0;
    if (found == held_.end()) return 0;
    while (n < tokens.size() && n < found->second.size() && found->second[n].token == tokens[n]) ++n;
    return n;
  }

 private:
  struct Cell {
    std::uint64_t number;
    Token token;
  };
  std::map<Slot, std::vector<Cell>> held_;
  std::uint64_t next_ = 0;
};

/// The source is empty: everything is in the prompt.
struct EmptySource {};

/// A table with one seed over a cache of a limited number of cells.
template <Abilities A>
class CellModel {
 public:
  using Source = EmptySource;
  static constexpr Abilities abilities = A;

  /// `told`: limits() reports the number of cells; otherwise only NoRoom reveals that too many were requested.
  CellModel(Table const& table, std::int64_t cells, bool told, std::int32_t slots = Limits::unlimited)
      : table_(table), cells_(cells), told_(told), slots_(slots) {}

  Vocabulary const& vocabulary() const { return table_.vocabulary(); }
  Limits limits() const {
    return told_ ? Limits{.slot_count = slots_, .tokens = cells_} : Limits{.slot_count = slots_};
  }
  void start(std::span<EmptySource const* const> sources, std::span<Slot const> slots) {
    std::vector<std::uint64_t const*> seeds(sources.size(), &seed_);
    table_.start(seeds, slots);
    for (auto const slot : slots) held_.start(slot);
  }
  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) held_.release(slot);
  }
  Scores<float> step(std::span<Row const> rows) {
    auto after = held_;
    after.apply(rows);
    if (static_cast<std::int64_t>(after.used()) > cells_) {
      ++refusals;
      throw NoRoom("cells: " + std::to_string(after.used()) + " of " + std::to_string(cells_));
    }
    held_ = after;
    most = std::max(most, held_.used());
    std::size_t several = 0;
    for (auto const& row : rows) fed += row.tokens.size(), several += row.tokens.size() > 1 ? row.tokens.size() : 0;
    most_in_blocks = std::max(most_in_blocks, several);
    return table_.step(rows);
  }
  std::size_t used() const { return held_.used(); }

  std::size_t refusals = 0;        ///< calls that ran out of room
  std::size_t most = 0;            ///< cells used at once
  std::size_t fed = 0;             ///< tokens
  std::size_t most_in_blocks = 0;  ///< tokens of a step's rows that have several

 private:
  TableModel<A> table_;
  std::int64_t cells_;
  bool told_;
  std::int32_t slots_;
  Cells held_;
  std::uint64_t seed_ = 17;
};

}  // namespace sluice::test
