// SPDX-License-Identifier: Apache-2.0
/// \file
/// The outputs of a search over frames as a tree.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// What depends on an output's labels alone.
template <class R>
struct LabelData {
  typename R::State rule;
  std::int32_t text = -1;   // in TextScores; -1: none
  std::int64_t needed = 0;  // when it was needed last
};

/// A tree of labels in an arena: equal outputs are the same node, whichever alignments wrote them. A node holds what
/// depends on its labels only. Nodes that are no longer needed are dropped by collect().
template <class Data>
class LabelTree {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0, none = -1;

  void clear(Data data) {
    entries_.clear(), entries_.push_back({none, -1, 0, none, none, std::move(data)});
    limit_ = least;
  }

  /// The child of a node; none: it has not been added.
  SLUICE_LAZY Node find(Node parent, Token label) const {
    auto node = at(parent).child;
    while (node != none && at(node).label != label) node = at(node).sibling;
    return node;
  }
  /// Adds a child that is not there yet.
  Node add(Node parent, Token label, Data data) {
    auto const node = static_cast<Node>(entries_.size());
    entries_.push_back({parent, label, at(parent).depth + 1, none, at(parent).child, std::move(data)});
    entries_[static_cast<std::size_t>(parent)].child = node;
    return node;
  }

  Node parent(Node node) const { return at(node).parent; }
  Token label(Node node) const { return at(node).label; }
  std::int32_t depth(Node node) const { return at(node).depth; }  ///< labels
  Data const& data(Node node) const { return at(node).data; }
  Data& data(Node node) { return entries_[static_cast<std::size_t>(node)].data; }

  /// Writes the labels of a node's output.
  SLUICE_LAZY void spell(Node node, std::vector<Token>& labels) const {
    auto n = static_cast<std::size_t>(depth(node));
    labels.resize(n);
    for (; node != root; node = parent(node)) labels[--n] = label(node);
  }
  /// The longest common beginning of all `nodes`, which it overwrites; the root if there are none. A parent has a lower
  /// number than its children.
  SLUICE_LAZY Node common(std::vector<Node>& nodes) const {
    if (nodes.empty()) return root;
    for (;;) {
      auto const [lowest, highest] = std::minmax_element(nodes.begin(), nodes.end());
      if (*lowest == *highest) return *lowest;
      auto const last = *highest;
      std::replace(nodes.begin(), nodes.end(), last, parent(last));
    }
  }

  /// Whether it is time for collect().
  bool full() const { return entries_.size() > limit_; }
  /// Drops all nodes but those of `kept` and their ancestors, and renumbers `kept`; order stays. O(nodes).
  SLUICE_LAZY void collect(std::span<Node> kept) {
    moved_.assign(entries_.size(), none);
    moved_[root] = root;
    for (auto const node : kept) moved_[static_cast<std::size_t>(node)] = root;  // to be kept
    for (auto i = entries_.size(); i-- > 1;)
      if (moved_[i] != none) moved_[static_cast<std::size_t>(entries_[i].parent)] = root;
    entries_[root].child = none;
    std::size_t count = 1;
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      if (moved_[i] == none) continue;
      moved_[i] = static_cast<Node>(count);
      auto& entry = entries_[i];
      entry.parent = moved_[static_cast<std::size_t>(entry.parent)], entry.child = none;
      auto& parent = entries_[static_cast<std::size_t>(entry.parent)];
      entry.sibling = parent.child, parent.child = moved_[i];
      if (count != i) entries_[count] = std::move(entry);
      ++count;
    }
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(count), entries_.end());
    for (auto& node : kept) node = moved_[static_cast<std::size_t>(node)];
    limit_ = (std::max)(least, 2 * count);
  }

 private:
  static constexpr std::size_t least = 4096;
  struct Entry {
    Node parent;
    Token label;
    std::int32_t depth;
    Node child, sibling;
    Data data;
  };
  Entry const& at(Node node) const { return entries_[static_cast<std::size_t>(node)]; }
  std::vector<Entry> entries_;
  std::vector<Node> moved_;  // scratch
  std::size_t limit_ = least;
};

}  // namespace sluice::inline v0::detail
