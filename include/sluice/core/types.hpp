// SPDX-License-Identifier: Apache-2.0
/// \file
/// The words in which a search and a model speak to each other: tokens, slots, rows.
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
/// then every row appends. Rows ascend in `to`; a `to` that is not its own row's `from` is read by no row of the step,
/// so forks may be copied in any order.
struct Row {
  Slot from;                      ///< continue this slot,
  Slot to;                        ///< in this one: == from, or a slot that no row of the step reads
  std::int32_t length;            ///< after its first `length` tokens (fewer than it holds = roll back)
  std::span<Token const> tokens;  ///< with these; at least one; valid during the call
  std::int32_t lines = 1;         ///< answers wanted, after each of the last `lines` tokens; in [1, tokens.size()]
  /// [tokens.size()]: a tree of tokens in preorder (Abilities::trees): how deep each lies. The first is at depth 0; any
  /// other is at most one deeper than the one before it, and follows the last before it that is one less deep. Null: each
  /// follows the one before it. When the step is over the slot holds the first path alone; see kept().
  std::int32_t const* depths = nullptr;

  std::int32_t depth(std::size_t i) const { return depths == nullptr ? static_cast<std::int32_t>(i) : depths[i]; }
  /// How many of the tokens stay in the slot: those before the first that does not follow the one before it.
  std::size_t kept() const {
    if (depths == nullptr) return tokens.size();
    std::size_t i = 0;
    while (i < tokens.size() && depths[i] == static_cast<std::int32_t>(i)) ++i;
    return i;
  }
};

/// What a model's tokens are. Constant over the life of the model.
struct Vocabulary {
  std::int32_t size = 0;       ///< V; tokens are 0 .. V - 1
  Token bos = 0;               ///< fed first where a request brings no prompt of its own
  std::vector<Token> eos{};    ///< any of these ends a sentence, each listed once; none: sentences have a fixed length
  std::vector<Token> never{};  ///< never generated (padding, bos; may be the same); may still stand in a prompt

  bool contains(Token token) const { return token >= 0 && token < size; }
  /// Whether a token ends a sentence. O(eos).
  bool ends(Token token) const { return std::find(eos.begin(), eos.end(), token) != eos.end(); }
  /// Throws std::invalid_argument for a vocabulary that makes no sense.
  void check() const {
    require(size >= 1, "vocabulary.size", size, "must be at least 1");
    require(contains(bos), "vocabulary.bos", bos, "is outside the vocabulary");
    for (auto const token : eos) {
      require(contains(token), "vocabulary.eos", token, "is outside the vocabulary");
      require(std::count(eos.begin(), eos.end(), token) == 1, "vocabulary.eos", token, "is listed more than once");
    }
    for (auto const token : never) require(contains(token), "vocabulary.never", token, "is outside the vocabulary");
  }
};

namespace detail {
/// static_cast, silent where both types are one: what is 64 bits on some machines is another type on others.
template <class To, class From>
constexpr To cast(From from) {
  return static_cast<To>(from);
}
}  // namespace detail

/// How much a model can hold. A model tells by an optional member `limits()`.
struct Limits {
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();
  std::int32_t slot_count = unlimited;  ///< slots at once; slot numbers stay below
  std::int32_t length = unlimited;      ///< tokens in one slot, prompt included
  std::int64_t tokens =
      (std::numeric_limits<
          std::int64_t>::max)();  ///< tokens in all slots together; what a fork and its parent both begin
                                  ///< with counts once. For caches that their slots share: a sentence waits
                                  ///< until there is room, at worst starts again
};

/// What a model claims to be able to do, by an optional `static constexpr Abilities abilities`. Nothing by default:
/// then every row of a step has the same length and brings one token.
struct Abilities {
  bool ragged = false;     ///< rows of one step may differ in `length` and in number of tokens
  bool blocks = false;     ///< a row may bring several tokens and ask for several lines
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
