// SPDX-License-Identifier: Apache-2.0
/// \file
/// Keeps what a model attaches to its lines until the sentence ends.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Keeps what was attached to the lines of one sentence, as a tree of the tokens that led to them. It follows the rows, so
/// searches need no code for it: a fork continues from a node, a roll-back returns to one. Nothing is dropped
/// before the sentence ends.
class AttachmentTree {
 public:
  /// Begins a sentence in the slots `base` ... `base + slot_count - 1`. `prompt`: tokens in its prompt.
  SLUICE_LAZY void begin(Slot base, std::int32_t slot_count, std::size_t prompt) {
    base_ = base, prompt_ = static_cast<std::int32_t>(prompt);
    ends_.assign(static_cast<std::size_t>(slot_count), none);
    nodes_.clear(), numbers_.clear();
  }

  /// Takes the sentence's rows of a step. Their lines begin at line `line` of `attached`.
  SLUICE_LAZY void apply(std::span<Row const> rows, Attachments const& attached, std::ptrdiff_t line) {
    from_.clear();
    for (auto const& row : rows) from_.push_back(before(row));  // all parents first: feeding changes ends_
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const& row = rows[i];
      auto const unasked = std::ssize(row.tokens) - row.lines;
      path_.assign(1, from_[i]);
      auto end = from_[i];
      auto const kept = static_cast<std::ptrdiff_t>(row.kept());
      for (std::ptrdiff_t t = 0; t < std::ssize(row.tokens); ++t) {
        auto const depth = row.depth(static_cast<std::size_t>(t));
        auto const position = row.length + depth;
        auto node = path_[index(depth)];
        path_.resize(index(depth) + 1);
        if (position + 1 >= prompt_) {
          node = position + 1 == prompt_ ? root() : child(node, row.tokens[static_cast<std::size_t>(t)], true);
          if (t >= unasked) keep(node, attached, line + t - unasked);
        }
        path_.push_back(node);
        if (t < kept) end = node;
      }
      line += row.lines;
      ends_[static_cast<std::size_t>(row.to - base_)] = end;
    }
  }

  /// Gives each token of a hypothesis what was attached to the line it was chosen from.
  SLUICE_LAZY void complete(std::vector<Hypothesis>& hypotheses) {
    if (nodes_.empty()) return;
    for (auto& hypothesis : hypotheses) {
      auto node = root();
      hypothesis.attached.resize(hypothesis.tokens.size());
      for (std::size_t i = 0; i < hypothesis.tokens.size() && node != none; ++i) {
        auto const& one = nodes_[index(node)];
        auto const first = numbers_.begin() + one.first;
        hypothesis.attached[i].assign(first, first + one.count);
        node = child(node, hypothesis.tokens[i], false);
      }
    }
  }

 private:
  static constexpr std::int32_t none = -1;
  struct Node {
    std::int32_t parent = none, child = none, sibling = none;
    std::int32_t depth = 0;  // tokens after the prompt
    Token token = 0;
    std::ptrdiff_t first = 0, count = 0;  // where the line's numbers are in numbers_
  };
  static std::size_t index(std::int32_t node) { return static_cast<std::size_t>(node); }

  /// The node after the prompt.
  SLUICE_LAZY std::int32_t root() {
    if (nodes_.empty()) nodes_.push_back({});
    return 0;
  }

  /// The node that the row continues; none within the prompt.
  SLUICE_LAZY std::int32_t before(Row const& row) const {
    auto const depth = row.length - prompt_;
    auto const slot = row.from - base_;  // outside: forked from another sentence's prompt
    if (depth < 0 || slot < 0 || slot >= std::ssize(ends_)) return none;
    auto node = ends_[static_cast<std::size_t>(slot)];
    while (node != none && nodes_[index(node)].depth > depth) node = nodes_[index(node)].parent;
    return node;
  }

  SLUICE_LAZY std::int32_t child(std::int32_t node, Token token, bool make) {
    if (node == none) return none;
    auto next = nodes_[index(node)].child;
    while (next != none && nodes_[index(next)].token != token) next = nodes_[index(next)].sibling;
    if (next != none || !make) return next;
    next = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back(
        {.parent = node, .sibling = nodes_[index(node)].child, .depth = nodes_[index(node)].depth + 1, .token = token});
    nodes_[index(node)].child = next;
    return next;
  }

  SLUICE_LAZY void keep(std::int32_t node, Attachments const& attached, std::ptrdiff_t line) {
    if (node == none || nodes_[index(node)].count > 0) return;
    auto numbers = attached.values[line];
    if (!attached.widths.empty())
      numbers = numbers.first(static_cast<std::size_t>(attached.widths[static_cast<std::size_t>(line)]));
    nodes_[index(node)].first = std::ssize(numbers_), nodes_[index(node)].count = std::ssize(numbers);
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }

  Slot base_ = 0;
  std::int32_t prompt_ = 0;
  std::vector<std::int32_t> ends_;  // [slot]: the node of its last token
  std::vector<std::int32_t> from_;  // [row]
  std::vector<std::int32_t> path_;  // [depth]: in a row, the node that a token at this depth continues
  Buffer<Node> nodes_;
  std::vector<float> numbers_;
};

}  // namespace sluice::inline v0::detail
