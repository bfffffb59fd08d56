// SPDX-License-Identifier: Apache-2.0
/// \file
/// Assigns slots to hypotheses, for a search that returns to earlier ones.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// A tree of hypotheses in fewer slots than it has nodes. Nodes are numbered from the root (0) in the order in which
/// they are added. A hypothesis that was evicted and is needed again is fed again from the nearest node that a slot
/// still holds. Slot 0, the root's, is continued in place only where the model rolls back; otherwise it keeps the root.
class KeptStates {
 public:
  /// The next row: `tokens` after the first `length` of slot `from`, in slot `to`.
  struct Next {
    Slot from, to;
    std::int32_t length;
    std::span<Token const> tokens;
  };

  /// Resets to the root: slot 0 holds `held` tokens, and `last` is fed next.
  SLUICE_LAZY void reset(std::int32_t slot_count, bool roll_back, bool blocks, std::int32_t held, Token last) {
    held_ = held, roll_back_ = roll_back, blocks_ = blocks;
    nodes_.assign(1, {-1, 0, last});
    holds_.assign(static_cast<std::size_t>(slot_count), none), used_.assign(static_cast<std::size_t>(slot_count), 0);
    released_.clear();
    feed_.assign(1, last);
    fed_ = 0, clock_ = 0;
    from_ = to_ = 0, length_ = held;
    occupy(0, 0);
  }

  /// Adds a node that is to be run: `parent` plus one token.
  /// \param useful  (node): whether the search may continue from it again
  template <class Useful>
  void add(std::int32_t parent, Token token, Useful const& useful) {
    auto const node = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({parent, at(parent).depth + 1, token});
    auto const [slot, shared] = nearest(parent);
    let_go(static_cast<std::size_t>(slot), useful);
    from_ = slot, length_ = held_ + 1 + shared;
    feed_.resize(static_cast<std::size_t>(at(node).depth - shared));
    auto walk = node;
    for (auto i = feed_.size(); i-- > 0; walk = at(walk).parent) feed_[i] = at(walk).token;
    fed_ = 0;
    used_[static_cast<std::size_t>(from_)] = ++clock_;
    to_ = destination(useful);
    std::erase(released_, to_);
    occupy(to_, node);
  }

  /// Adds a node that is not run.
  SLUICE_LAZY void skip(std::int32_t parent, Token token) { nodes_.push_back({parent, at(parent).depth + 1, token}); }

  SLUICE_LAZY Next next() const {
    auto const rest = std::span<Token const>(feed_).subspan(fed_);
    return {fed_ == 0 ? from_ : to_, to_, length_ + static_cast<std::int32_t>(fed_), blocks_ ? rest : rest.first(1)};
  }
  /// Whether the next row is the last that the node needs.
  bool last() const { return blocks_ || fed_ + 1 == feed_.size(); }
  void go_on() { ++fed_; }
  /// Slots that hold nothing useful any more, since reset() or the last call of forget().
  std::span<Slot const> released() const { return released_; }
  SLUICE_LAZY void forget() { released_.clear(); }

 private:
  static constexpr std::int32_t none = -1;
  struct Node {
    std::int32_t parent, depth;
    Token token;
  };
  Node const& at(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }
  bool pinned(std::size_t slot) const { return slot == 0 && !roll_back_; }

  SLUICE_LAZY void occupy(Slot slot, std::int32_t node) {
    holds_[static_cast<std::size_t>(slot)] = node, used_[static_cast<std::size_t>(slot)] = ++clock_;
  }

  /// Releases slots that hold nothing useful, except the one to continue from.
  template <class Useful>
  void let_go(std::size_t kept, Useful const& useful) {
    for (std::size_t slot = 0; slot < holds_.size(); ++slot) {
      if (holds_[slot] == none || slot == kept || pinned(slot) || useful(holds_[slot])) continue;
      holds_[slot] = none;
      released_.push_back(static_cast<Slot>(slot));
    }
  }

  struct Nearest {
    Slot slot;
    std::int32_t shared;  // depth of the deepest node that is both in the slot and on the path to the parent
  };
  /// The slot that holds most of the path to a node.
  SLUICE_LAZY Nearest nearest(std::int32_t node) const {
    Nearest best{0, none};
    for (std::size_t slot = 0; slot < holds_.size(); ++slot) {
      if (holds_[slot] == none) continue;
      auto a = holds_[slot], b = node;
      while (a != b) (a > b ? a : b) = at(a > b ? a : b).parent;  // a parent has a lower number than its children
      if (!roll_back_ && a != holds_[slot]) continue;
      if (at(a).depth > best.shared || (at(a).depth == best.shared && holds_[slot] == a))
        best = {static_cast<Slot>(slot), at(a).depth};
    }
    return best;
  }

  template <class Useful>
  Slot destination(Useful const& useful) const {
    auto const from = static_cast<std::size_t>(from_);
    if (!pinned(from) && !useful(holds_[from])) return from_;
    std::size_t oldest = from;
    for (std::size_t slot = 0; slot < holds_.size(); ++slot) {
      if (holds_[slot] == none) return static_cast<Slot>(slot);
      if (slot != from && !pinned(slot) && (oldest == from || used_[slot] < used_[oldest])) oldest = slot;
    }
    return static_cast<Slot>(oldest);
  }

  Buffer<Node> nodes_;
  std::vector<std::int32_t> holds_;  // [slot]: the node
  std::vector<std::int64_t> used_;   // [slot]: last use
  std::vector<Slot> released_;
  std::vector<Token> feed_;
  std::size_t fed_ = 0;
  std::int64_t clock_ = 0;
  std::int32_t held_ = 0, length_ = 0;
  Slot from_ = 0, to_ = 0;
  bool roll_back_ = false, blocks_ = false;
};

}  // namespace sluice::inline v0::detail
