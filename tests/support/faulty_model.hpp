// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table with deliberate faults.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

/// The faults.
struct Faults {
  std::set<std::uint64_t> no_start{};  ///< start throws if any of these sources is in the group
  std::set<std::size_t> no_step{};     ///< these calls of step throw, counted from 0
  std::set<std::size_t> no_room{};     ///< and these calls throw NoRoom
  std::map<std::uint64_t, float>
      scores{};             ///< all lines of this source have this number in every position: NaN, -infinity
  std::size_t after = 0;    ///< but only once a slot holds more than this many tokens
  bool every_token = true;  ///< false: only for token 3
};

/// A TableModel with faults.
template <Abilities A = Abilities{.ragged = true, .blocks = true, .roll_back = true}>
class FaultyModel {
 public:
  using Source = std::uint64_t;
  static constexpr Abilities abilities = A;

  explicit FaultyModel(Table const& table, Faults faults = {}, TableOptions const& options = {})
      : model_(table, options), faults_(std::move(faults)) {}

  Vocabulary const& vocabulary() const { return model_.vocabulary(); }
  Limits limits() const { return model_.limits(); }
  Faults& faults() { return faults_; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (auto const* source : sources)
      if (faults_.no_start.contains(*source))
        throw std::runtime_error("source " + std::to_string(*source) + " is broken");
    model_.start(sources, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) seeds_[slots[i]] = *sources[i];
  }

  Scores<float> step(std::span<Row const> rows) {
    if (faults_.no_room.contains(calls_)) throw NoRoom("no room for step " + std::to_string(calls_++));
    if (faults_.no_step.contains(calls_++))
      throw std::runtime_error("step " + std::to_string(calls_ - 1) + " is broken");
    auto const answer = model_.step(rows);
    lines_.assign(answer.data, answer.data + answer.rows * answer.stride);
    for (auto const& row : rows)
      if (row.from != row.to) seeds_[row.to] = seeds_[row.from];
    std::size_t line = 0;
    auto const width = static_cast<std::size_t>(answer.columns);
    for (auto const& row : rows)
      for (std::int32_t i = row.lines; i > 0; --i, ++line) {
        auto const fault = faults_.scores.find(seeds_[row.to]);
        auto const held = static_cast<std::size_t>(row.length) + row.tokens.size() - static_cast<std::size_t>(i) + 1;
        if (fault == faults_.scores.end() || held <= faults_.after) continue;
        if (!faults_.every_token) lines_[line * width + 3] = fault->second;
        else std::fill_n(lines_.begin() + static_cast<std::ptrdiff_t>(line * width), width, fault->second);
      }
    return scores(lines_.data(), answer.rows, answer.columns, answer.kind);
  }

 private:
  TableModel<A> model_;
  Faults faults_;
  std::size_t calls_ = 0;
  std::map<Slot, std::uint64_t> seeds_;
  std::vector<float> lines_;
};

}  // namespace sluice::test
