// SPDX-License-Identifier: Apache-2.0
/// \file
/// Slots of a model whose state after each token is small.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// For each slot, the states after 0, 1, ... tokens. A fork copies those that it keeps.
template <class State>
class SlotStates {
 public:
  void start(std::span<Slot const> slot_numbers, State const& state) {
    for (auto const slot : slot_numbers) at(slot).assign(1, state);
  }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) at(slot).clear();
  }
  /// Applies a step's rows with next(state, token), and calls f(state) for every line asked for, in their order.
  template <class Next, class F>
  void advance(std::span<Row const> rows, Next const& next, F&& f) {
    for (auto const& row : rows) {
      if (row.from == row.to) continue;
      at((std::max)(row.from, row.to));  // grow first, so that references stay valid
      auto const& from = at(row.from);
      at(row.to).assign(from.begin(), from.begin() + row.length + 1);
    }
    for (auto const& row : rows) {
      auto& states = at(row.to);
      auto const held = static_cast<std::size_t>(row.length) + 1;
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        states.resize(held + static_cast<std::size_t>(row.depth(i)));
        auto const state = next(states.back(), row.tokens[i]);
        states.push_back(state);
        if (i + static_cast<std::size_t>(row.lines) >= row.tokens.size()) f(state);
      }
      if (row.depths == nullptr) continue;
      states.resize(held);
      for (auto const token : row.tokens.first(row.kept())) {
        auto const state = next(states.back(), token);
        states.push_back(state);
      }
    }
  }

 private:
  std::vector<State>& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= states_.size()) states_.resize(i + 1);
    return states_[i];
  }

  std::vector<std::vector<State>> states_;
};

}  // namespace sluice::inline v0::detail
