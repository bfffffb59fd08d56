// SPDX-License-Identifier: Apache-2.0
/// \file
/// What searches are made of: the tokens of a beam's hypotheses as a tree, tokens that may not be chosen, and what a running
/// search needs to know about a forced prefix.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// The tokens that a search must not choose at its next step, as edits: those never generated, and eos while the output
/// is too short.
class Bans {
 public:
  SLUICE_LAZY void reset(Vocabulary const& vocabulary) {
    edits_.clear();
    auto const& never = vocabulary.never;
    for (auto const token : never) edits_.push_back(Edit::forbid(token));
    never_ = edits_.size();
    for (auto const token : vocabulary.eos)
      if (std::find(never.begin(), never.end(), token) == never.end()) edits_.push_back(Edit::forbid(token));
  }
  SLUICE_LAZY std::span<Edit const> edits(bool eos_too) const {
    return eos_too ? std::span(edits_) : std::span(edits_).first(never_);
  }

 private:
  std::vector<Edit> edits_;
  std::size_t never_ = 0;
};

/// A forced prefix: it counts in lengths and in log-probabilities. The decoding loop feeds its tokens.
class Prefix {
 public:
  Prefix() = default;
  explicit Prefix(Sentence const& sentence)
      : size_(static_cast<std::int32_t>(sentence.prefix.size())), log_prob_(sentence.prefix_log_prob) {}

  std::int32_t size() const { return size_; }
  /// Valid from the first advance on.
  double log_prob() const { return log_prob_ == nullptr ? 0 : *log_prob_; }
  /// Whether the model considers it impossible: its log_prob() is -infinity.
  bool impossible() const { return !(log_prob() > -std::numeric_limits<double>::infinity()); }

  // An output after an impossible prefix is impossible too, but still requested: the search ranks it by what follows
  // the prefix.
  /// The initial log-probability of a search: log_prob(), or 0 where that is -infinity.
  double ranked() const { return impossible() ? 0 : log_prob(); }
  /// Restores the log_prob and score of outputs ranked this way; keeps their order.
  void complete(Result& result) const {
    if (!impossible()) return;
    for (auto& h : result.hypotheses) h.log_prob = h.score = log_prob();
  }

 private:
  std::int32_t size_ = 0;
  double const* log_prob_ = nullptr;
};

/// A tree of tokens in an arena. Hypotheses share prefixes, so a fork costs one node. Nodes stay until clear(). The
/// root is the end of the forced prefix; the prefix's tokens count in lengths but are not stored.
class History {
 public:
  using Node = std::int32_t;
  static constexpr Node root = -1;

  /// \param root_length  number of tokens before the first node
  SLUICE_LAZY void clear(std::int32_t root_length = 0) { entries_.clear(), root_length_ = root_length; }

  /// Appends a token to the hypothesis `parent`.
  SLUICE_LAZY Node add(Node parent, Token token, float log_prob) {
    entries_.push_back({parent, length(parent) + 1, token, log_prob});
    return static_cast<Node>(entries_.size()) - 1;
  }
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }  ///< nodes: 0 .. size() - 1
  std::int32_t length(Node node) const { return node == root ? root_length_ : at(node).length; }
  Token token(Node node) const { return at(node).token; }
  Node parent(Node node) const { return at(node).parent; }

  /// The longest common prefix of all `nodes`, which it overwrites; the root if there are none. A parent has a lower
  /// number than its children, so the node with the highest number cannot be an ancestor of the others.
  SLUICE_LAZY Node common(std::vector<Node>& nodes) const {
    if (nodes.empty()) return root;
    for (;;) {
      auto const highest = *std::max_element(nodes.begin(), nodes.end());
      auto const lowest = *std::min_element(nodes.begin(), nodes.end());
      if (highest == lowest) return lowest;
      std::replace(nodes.begin(), nodes.end(), highest, at(highest).parent);
    }
  }

  /// Writes the tokens of a hypothesis, starting at the root.
  SLUICE_LAZY void write(Node node, std::vector<Token>& tokens) const {
    auto n = depth(node);
    tokens.resize(n);
    for (; node != root; node = at(node).parent) tokens[--n] = at(node).token;
  }

  /// Writes tokens and log_probs of a hypothesis, starting at the root.
  SLUICE_LAZY void write(Node node, Hypothesis& out) const {
    auto n = depth(node);
    out.tokens.resize(n), out.log_probs.resize(n);
    for (; node != root; node = at(node).parent) {
      --n;
      out.tokens[n] = at(node).token, out.log_probs[n] = at(node).log_prob;
    }
  }

 private:
  struct Entry {
    Node parent;
    std::int32_t length;
    Token token;
    float log_prob;
  };
  Entry const& at(Node node) const { return entries_[static_cast<std::size_t>(node)]; }
  std::size_t depth(Node node) const { return static_cast<std::size_t>(length(node) - root_length_); }
  detail::Buffer<Entry> entries_;
  std::int32_t root_length_ = 0;
};

}  // namespace sluice::inline v0
