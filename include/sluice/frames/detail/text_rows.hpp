// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows of a language model that is a Model, for the new prefixes of a beam over frames.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A slot for each prefix in the beam, after its tokens; the slots before those have the frames. A beam that holds no more than `width`
/// prefixes before and after a frame needs 2 * width of them. A new prefix is one row, which forks its parent's slot; its line is asked
/// for all tokens.
class TextRows {
 public:
  /// \param first  the first slot of a text; \param slot_count  with those before it
  SLUICE_LAZY void begin(Slot first, std::int32_t slot_count, std::int32_t vocabulary) {
    free_.resize(static_cast<std::size_t>(slot_count - first));
    std::iota(free_.rbegin(), free_.rend(), first);
    dirty_.assign(static_cast<std::size_t>(slot_count), 0);
    tokens_.resize(static_cast<std::size_t>(vocabulary));
    std::iota(tokens_.begin(), tokens_.end(), 0);
    rows_.clear(), freed_.clear();
  }
  /// Plans a row. Returns its slot.
  /// \param text  whose line it is
  SLUICE_LAZY Slot open(Slot from, std::int32_t length, Token token, std::int32_t text) {
    auto const slot = free_.back();
    free_.pop_back();
    dirty_[static_cast<std::size_t>(slot)] = 0;
    rows_.push_back({from, slot, length, token, text});
    return slot;
  }
  /// The slot of a prefix that has left the beam; a row that is planned may still continue it.
  void drop(Slot slot) { freed_.push_back(slot); }
  bool waits() const { return !rows_.empty(); }
  std::int32_t size() const { return static_cast<std::int32_t>(rows_.size()); }

  SLUICE_LAZY void plan(Plan& plan) {
    for (auto const slot : free_) {
      if (dirty_[static_cast<std::size_t>(slot)] == 0) continue;
      dirty_[static_cast<std::size_t>(slot)] = 0;
      plan.release(slot);
    }
    std::sort(rows_.begin(), rows_.end(), [](Planned const& a, Planned const& b) { return a.to < b.to; });
    for (auto const& row : rows_) {
      plan.row(row.from, row.to, row.length, {&row.token, 1});
      plan.ask({.best = 0, .probes = tokens_, .stage = Stage::after_softmax, .label = 0});
    }
  }
  /// Calls f(text, i) for each row, whose line is the i-th of theirs; then they are done.
  template <class F>
  void done(F&& f) {
    for (std::size_t i = 0; i < rows_.size(); ++i) f(rows_[i].text, i);
    rows_.clear();
    free();
  }
  /// Frees the slots of dropped prefixes, which no row that is planned continues.
  SLUICE_LAZY void free() {
    for (auto const slot : freed_) free_.push_back(slot), dirty_[static_cast<std::size_t>(slot)] = 1;
    freed_.clear();
  }

 private:
  struct Planned {
    Slot from, to;
    std::int32_t length;
    Token token;
    std::int32_t text;
  };
  std::vector<Planned> rows_;
  std::vector<Slot> free_, freed_;   // freed_: when the rows that are planned have been run
  std::vector<std::uint8_t> dirty_;  // [slot]: holds something that nobody needs
  std::vector<Token> tokens_;        // [V]
};

}  // namespace sluice::inline v0::detail
