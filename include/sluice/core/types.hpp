// SPDX-License-Identifier: Apache-2.0
/// \file
/// The types that searches and models share: tokens, slots, rows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// A token's id, in [0, Vocabulary::size).
using Token = std::int32_t;

/// A place in which a model keeps one decoder state (one hypothesis: its tokens, its cache), numbered from 0.
using Slot = std::int32_t;

/// One line of work in a call of Model::step: continue slot `from` in slot `to` with `tokens`.
///
/// All rows of a step are one transaction: first every fork (`from != to`) copies, then every row is cut to `length`,
/// then every row appends. Rows ascend in `to`. No row of the step reads the `to` of a fork, so forks may be copied in any
/// order.
struct Row {
  Slot from;                      ///< continue this slot,
  Slot to;                        ///< in this one: == from, or a slot that no row of the step reads
  std::int32_t length;            ///< after its first `length` tokens (fewer than it holds = roll back)
  std::span<Token const> tokens;  ///< with these; at least one; valid during the call
  std::int32_t lines = 1;         ///< answers wanted, after each of the last `lines` tokens; in [1, tokens.size()]
  /// [tokens.size()]: the depths of a tree of tokens in preorder (Abilities::trees). The first has depth 0. Any other is at most
  /// one deeper than the token before it; its parent is the last token before it that is one less deep. Null: each token
  /// follows the one before it. After the step the slot holds only the first path; see kept().
  std::int32_t const* depths = nullptr;

  std::int32_t depth(std::size_t i) const { return depths == nullptr ? static_cast<std::int32_t>(i) : depths[i]; }
  /// How many of the tokens the slot holds after the step: those before the first that does not follow the one before it.
  SLUICE_LAZY std::size_t kept() const {
    if (depths == nullptr) return tokens.size();
    std::size_t i = 0;
    while (i < tokens.size() && depths[i] == static_cast<std::int32_t>(i)) ++i;
    return i;
  }
};

/// The vocabulary of a model. Constant over the life of the model.
struct Vocabulary {
  std::int32_t size = 0;       ///< V; tokens are 0 .. V - 1
  Token bos = 0;               ///< fed first if a request has no prompt
  std::vector<Token> eos{};    ///< each of these ends a sentence; no duplicates; empty: sentences have a fixed length
  std::vector<Token> never{};  ///< never generated (padding, bos; may be the same); may still stand in a prompt

  bool contains(Token token) const { return token >= 0 && token < size; }
  /// Whether a token ends a sentence. O(eos).
  bool ends(Token token) const { return std::find(eos.begin(), eos.end(), token) != eos.end(); }
  /// Throws std::invalid_argument for an invalid vocabulary.
  SLUICE_LAZY void check() const;
};

template <class Void>
void Vocabulary::check() const {
  require(size >= 1, "vocabulary.size", size, "must be at least 1");
  require(contains(bos), "vocabulary.bos", bos, "is outside the vocabulary");
  for (auto const token : eos) {
    require(contains(token), "vocabulary.eos", token, "is outside the vocabulary");
    require(std::count(eos.begin(), eos.end(), token) == 1, "vocabulary.eos", token, "is listed more than once");
  }
  for (auto const token : never) require(contains(token), "vocabulary.never", token, "is outside the vocabulary");
}
SLUICE_FUNCTION_IN_LIBRARY(void Vocabulary::check<void>() const)

namespace detail {
/// static_cast without a warning if both types are the same: which 64-bit types are the same depends on the machine.
template <class To, class From>
constexpr To cast(From from) {
  return static_cast<To>(from);
}
}  // namespace detail

/// How much a model can hold, and how high its scores go. A model says so by an optional member `limits()`.
struct Limits {
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();
  std::int32_t slot_count = unlimited;  ///< slots at once; slot numbers stay below
  std::int32_t length = unlimited;      ///< tokens in one slot, prompt included
  /// Tokens in all slots together; a prefix that a fork and its parent share counts once. For KV caches that slots share: a
  /// sentence waits until there is room, or is preempted.
  std::int64_t tokens = (std::numeric_limits<std::int64_t>::max)();
  /// The most that a log-probability of its answers may be; above 0 only for sums (Fused): outputs may then score more than their
  /// beginnings, and searches that prove their result by the opposite are refused.
  double log_prob = 0;
};

/// What a model claims to support, by an optional `static constexpr Abilities abilities`. Nothing by default: then every row of
/// a step has the same length and one token.
struct Abilities {
  bool ragged = false;     ///< rows of one step may differ in `length` and in number of tokens
  bool blocks = false;     ///< a row may have several tokens and ask for several lines
  bool roll_back = false;  ///< Row::length may be less than `from` holds
  bool trees = false;      ///< Row::depths: the tokens of a block may branch

  /// Whether these abilities include all of `needed`.
  constexpr bool include(Abilities needed) const {
    return (ragged || !needed.ragged) && (blocks || !needed.blocks) && (roll_back || !needed.roll_back) &&
           (trees || !needed.trees);
  }
  friend constexpr bool operator==(Abilities, Abilities) = default;
};

}  // namespace sluice::inline v0
