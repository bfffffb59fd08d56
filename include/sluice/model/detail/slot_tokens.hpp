// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that the slots of a model hold, for wrappers of models.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Follows the rows of every step. A fork copies the tokens that it keeps; everything else costs O(tokens fed).
/// Allocates nothing once every slot has held its longest sequence.
class SlotTokens {
 public:
  /// What the slot holds; empty if it was never named. Valid until the next apply().
  SLUICE_LAZY std::span<Token const> operator[](Slot slot) const {
    auto const i = static_cast<std::size_t>(slot);
    return i < tokens_.size() ? std::span<Token const>(tokens_[i]) : std::span<Token const>();
  }
  std::int32_t length(Slot slot) const { return static_cast<std::int32_t>((*this)[slot].size()); }

  /// The slot was started or released.
  SLUICE_LAZY void clear(Slot slot) { at(slot).clear(); }

  /// Applies a step's rows: all forks, then all cuts and appends.
  SLUICE_LAZY void apply(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        at((std::max)(row.from, row.to));  // grow first, so that references stay valid
        copy(at(row.from), static_cast<std::size_t>(row.length), at(row.to));
      }
    for (auto const& row : rows) {
      auto& tokens = at(row.to);
      tokens.erase(tokens.begin() + row.length, tokens.end());
      auto const kept = row.tokens.first(row.kept());
      tokens.insert(tokens.end(), kept.begin(), kept.end());
    }
  }

 private:
  SLUICE_LAZY std::vector<Token>& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= tokens_.size()) tokens_.resize(i + 1);
    return tokens_[i];
  }
  SLUICE_LAZY static void copy(std::vector<Token> const& from, std::size_t length, std::vector<Token>& to) {
    if (to.capacity() < length)
      to.reserve((std::max)(length, 2 * to.capacity()));  // assign would grow by one each step
    to.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length));
  }

  std::vector<std::vector<Token>> tokens_;
};

}  // namespace sluice::inline v0::detail
