// SPDX-License-Identifier: Apache-2.0
/// \file
/// The outputs of a search over frames as a tree.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0::detail {

/// What depends on an output's labels alone: the states of rule and language model.
template <class R, class L>
struct LabelData {
  typename R::State rule;
  typename L::State language;
};

/// A tree of labels in an arena: equal outputs are the same node, whichever alignments wrote them. A node holds what
/// depends on its labels only.
template <class Data>
class LabelTree {
 public:
  using Node = std::int32_t;
  static constexpr Node root = 0, none = -1;

  void clear(Data data) { entries_.clear(), entries_.push_back({none, -1, 0, none, none, std::move(data)}); }

  /// The child of a node; none: it has not been added.
  template <class = void>
  Node find(Node parent, Token label) const {
    auto node = at(parent).child;
    while (node != none && at(node).label != label) node = at(node).sibling;
    return node;
  }
  /// Adds a child that is not there yet.
  Node add(Node parent, Token label, Data data) {
    auto const node = static_cast<Node>(entries_.size());
    entries_.push_back({parent, label, at(parent).length + 1, none, at(parent).child, std::move(data)});
    entries_[static_cast<std::size_t>(parent)].child = node;
    return node;
  }

  Node parent(Node node) const { return at(node).parent; }
  Token label(Node node) const { return at(node).label; }
  std::int32_t length(Node node) const { return at(node).length; }
  Data const& data(Node node) const { return at(node).data; }

  /// Writes the labels of a node's output.
  template <class = void>
  void write(Node node, std::vector<Token>& labels) const {
    auto n = static_cast<std::size_t>(length(node));
    labels.resize(n);
    for (; node != root; node = parent(node)) labels[--n] = label(node);
  }
  /// The longest common beginning of all `nodes`, which it overwrites; the root if there are none. A parent has a lower
  /// number than its children.
  template <class = void>
  Node common(std::vector<Node>& nodes) const {
    if (nodes.empty()) return root;
    for (;;) {
      auto const [lowest, highest] = std::minmax_element(nodes.begin(), nodes.end());
      if (*lowest == *highest) return *lowest;
      auto const last = *highest;
      std::replace(nodes.begin(), nodes.end(), last, parent(last));
    }
  }

 private:
  struct Entry {
    Node parent;
    Token label;
    std::int32_t length;
    Node child, sibling;
    Data data;
  };
  Entry const& at(Node node) const { return entries_[static_cast<std::size_t>(node)]; }
  std::vector<Entry> entries_;
};

}  // namespace sluice::inline v0::detail
