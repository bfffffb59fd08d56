// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens in the slots of a model: how many in all, and which slots share a prefix.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// The tokens of all slots as a tree (as a radix tree, but by forks): a prefix that a fork and its parent share is one path.
/// Follows the rows of every step. Amortised O(1) a token, whatever the slots hold; no allocation once warm.
class TokenTree {
 public:
  /// The slot holds nothing: it has been started or released.
  SLUICE_LAZY void clear(Slot slot) {
    if (auto& end = at(slot); end != none) drop(end), end = none;
  }

  /// Forks, cuts and appends, as a model does. If a row continues a slot that is not in the tree, only its own tokens are known.
  SLUICE_LAZY void apply(std::span<Row const> rows) {
    for (auto const& row : rows) {
      if (row.from == row.to) continue;
      clear(row.to);
      auto const end = ending(at(row.from), row.length);
      if (end != none) ++nodes_[index(end)].users;
      at(row.to) = end;
    }
    for (auto const& row : rows) {
      if (row.from == row.to) cut(row.to, row.length);
      append(row.to, row.tokens.first(row.kept()));
    }
  }

  /// Tokens in all slots; a shared prefix counts once.
  std::int64_t used() const { return used_; }
  /// Tokens in one slot.
  SLUICE_LAZY std::int32_t length(Slot slot) const {
    auto const i = static_cast<std::size_t>(slot);
    return i < ends_.size() ? depth(ends_[i]) : 0;
  }

  /// Whether `inner` holds a prefix of what `outer` holds, and one was forked from the other.
  SLUICE_LAZY bool within(Slot inner, Slot outer) {
    auto node = at(outer);
    while (node != none && node != at(inner)) node = nodes_[index(node)].parent;
    return node == at(inner);
  }

  /// How many of `tokens` the slot begins with. Call fresh() first for other tokens. Nodes that have been compared since are not
  /// compared again, so asking all slots compares each shared prefix once.
  SLUICE_LAZY std::int32_t common(Slot slot, std::span<Token const> tokens) {
    path_.clear();
    auto node = at(slot);
    for (; node != none && nodes_[index(node)].seen != stamp_; node = nodes_[index(node)].parent) path_.push_back(node);
    auto matched = node == none ? 0 : nodes_[index(node)].matched;
    for (; !path_.empty(); path_.pop_back()) {
      auto& one = nodes_[index(path_.back())];
      if (matched == one.start) {
        auto const rest = tokens.subspan(static_cast<std::size_t>(matched));
        auto const most = (std::min)(one.tokens.size(), rest.size());
        auto const end = one.tokens.begin() + static_cast<std::ptrdiff_t>(most);
        matched +=
            static_cast<std::int32_t>(std::mismatch(one.tokens.begin(), end, rest.begin()).first - one.tokens.begin());
      }
      one.seen = stamp_, one.matched = matched;
    }
    return matched;
  }
  /// Forgets what common() has compared.
  void fresh() { ++stamp_; }

  /// Tokens in some slots; a shared prefix counts once. Calls fresh().
  SLUICE_LAZY std::int64_t together(std::span<Slot const> slot_numbers) {
    fresh();
    std::int64_t sum = 0;
    for (auto const slot : slot_numbers)
      for (auto node = at(slot); node != none && nodes_[index(node)].seen != stamp_;
           node = nodes_[index(node)].parent) {
        auto& one = nodes_[index(node)];
        one.seen = stamp_, sum += std::ssize(one.tokens);
      }
    fresh();
    return sum;
  }

 private:
  static constexpr std::int32_t none = -1;
  /// A run of tokens. The tokens of a slot end at the end of a node.
  struct Node {
    std::int32_t parent = none, start = 0, users = 0;  // users: slots that end here, and child nodes
    std::int32_t matched = 0;
    std::uint64_t seen = 0;  // stamp of the last common()
    std::vector<Token> tokens{};
  };

  static std::size_t index(std::int32_t node) { return static_cast<std::size_t>(node); }
  SLUICE_LAZY std::int32_t& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (ends_.size() <= i) ends_.resize(i + 1, none);
    return ends_[i];
  }
  SLUICE_LAZY std::int32_t depth(std::int32_t node) const {
    return node == none ? 0 : nodes_[index(node)].start + static_cast<std::int32_t>(nodes_[index(node)].tokens.size());
  }

  SLUICE_LAZY std::int32_t make(std::int32_t parent, std::int32_t start) {
    if (free_.empty()) nodes_.emplace_back(), free_.push_back(static_cast<std::int32_t>(nodes_.size()) - 1);
    auto const node = free_.back();
    free_.pop_back();
    auto& one = nodes_[index(node)];
    one.parent = parent, one.start = start, one.users = 1, one.seen = 0, one.tokens.clear();
    return node;
  }

  /// Removes a user; frees nodes without users, towards the root.
  SLUICE_LAZY void drop(std::int32_t node) {
    while (node != none && --nodes_[index(node)].users == 0) {
      auto& one = nodes_[index(node)];
      used_ -= std::ssize(one.tokens);
      free_.push_back(node);
      node = one.parent;
    }
  }

  /// The node, between `node` and the root, that ends after `length` tokens. Splits a node if none ends there.
  SLUICE_LAZY std::int32_t ending(std::int32_t node, std::int32_t length) {
    while (node != none && nodes_[index(node)].start >= length) node = nodes_[index(node)].parent;
    if (node == none || depth(node) <= length) return node;
    auto const first = make(nodes_[index(node)].parent, nodes_[index(node)].start);
    auto& rest = nodes_[index(node)];
    auto const middle = rest.tokens.begin() + (length - rest.start);
    nodes_[index(first)].tokens.assign(rest.tokens.begin(), middle);
    rest.tokens.erase(rest.tokens.begin(), middle);
    rest.parent = first, rest.start = length, rest.seen = 0;
    return first;
  }

  SLUICE_LAZY void cut(Slot slot, std::int32_t length) {
    auto& end = at(slot);
    if (depth(end) <= length) return;
    while (end != none && nodes_[index(end)].start >= length) {
      auto const parent = nodes_[index(end)].parent;
      if (parent != none) ++nodes_[index(parent)].users;
      drop(end);
      end = parent;
    }
    if (depth(end) <= length) return;
    if (auto& one = nodes_[index(end)]; one.users == 1) {
      used_ -= depth(end) - length;
      one.tokens.resize(static_cast<std::size_t>(length - one.start)), one.seen = 0;
      return;
    }
    auto const kept = ending(end, length);
    ++nodes_[index(kept)].users;
    drop(end);
    end = kept;
  }

  SLUICE_LAZY void append(Slot slot, std::span<Token const> tokens) {
    auto& end = at(slot);
    if (end == none || nodes_[index(end)].users > 1)
      end = make(end, depth(end));  // the slot's use of the parent becomes the child's
    auto& one = nodes_[index(end)];
    one.tokens.insert(one.tokens.end(), tokens.begin(), tokens.end()), one.seen = 0;
    used_ += std::ssize(tokens);
  }

  Buffer<Node> nodes_;
  std::vector<std::int32_t> free_, path_;
  std::vector<std::int32_t> ends_;  // [slot]: the last node of what it holds
  std::int64_t used_ = 0;
  std::uint64_t stamp_ = 1;
};

}  // namespace sluice::inline v0::detail
