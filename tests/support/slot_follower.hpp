// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tracks the contents of one sentence's slots from plans, without a model.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/types.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace sluice::test {

/// The slots of one sentence.
class SlotFollower {
 public:
  explicit SlotFollower(std::vector<Token> first) { held_[0] = std::move(first); }

  /// The number of non-empty slots.
  std::size_t held() const { return held_.size(); }

  /// Executes a plan with one token per row, and checks that it is valid.
  /// \returns  [row]: the tokens before its line
  std::vector<std::vector<Token>> step(StepPlan const& plan) {
    for (auto const slot : plan.released) CHECK(held_.erase(slot) == 1);
    auto const before = held_;
    std::vector<std::vector<Token>> lines;
    Slot last = -1;
    for (auto const& row : plan.rows) {
      CHECK(row.to > last);
      last = row.to;
      CHECK((row.lines == 1 && row.tokens.size() == 1 && row.depths == nullptr));
      REQUIRE(before.contains(row.from));
      for (auto const& other : plan.rows) CHECK((other.from == other.to || other.to != row.from));
      auto tokens = before.at(row.from);
      REQUIRE(static_cast<std::size_t>(row.length) <= tokens.size());
      tokens.resize(static_cast<std::size_t>(row.length));
      tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
      held_[row.to] = tokens;
      lines.push_back(tokens);
    }
    return lines;
  }

 private:
  std::map<Slot, std::vector<Token>> held_;
};

}  // namespace sluice::test
