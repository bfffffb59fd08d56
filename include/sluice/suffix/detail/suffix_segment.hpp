// SPDX-License-Identifier: Apache-2.0
/// \file
/// A sorted part of a SuffixCache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Texts, and the places in them sorted by the tokens before each, read backwards: a suffix array of the reversed texts. Two places
/// whose last m tokens are the same are then near each other, and so are those that also share m + 1. A place is the index of the
/// token that was decoded after them. Nothing but `used` changes after it is made.
struct SuffixSegment {
  static constexpr std::size_t every = 32;  ///< one key for so many places
  using Key = std::array<Token, 4>;         ///< the last tokens before a place, the last one first; -1: there is none

  std::span<Token const> tokens{};         ///< -1 before each text, and after the last one
  std::span<std::uint32_t const> order{};  ///< places, sorted
  std::span<std::uint32_t const> texts{};  ///< ascending: index of the -1 before each text
  std::vector<Key> keys{};                 ///< of order[0], order[every], ...
  /// [texts]: SuffixCache's clock when the text was inserted, or a guess was last taken from it
  std::unique_ptr<std::atomic<std::uint32_t>[]> used {};

  std::shared_ptr<void const> keeper{};  ///< of mapped bytes
  std::vector<Token> own_tokens{};       // what the spans show if nothing is mapped
  std::vector<std::uint32_t> own_order{}, own_texts{};

  /// Shows what it owns.
  void show() { tokens = own_tokens, order = own_order, texts = own_texts; }

  template <class = void>
  Key key(std::uint32_t place) const {
    Key made;
    made.fill(-1);
    for (std::size_t i = 0; i < made.size() && tokens[place - 1 - i] >= 0; ++i) made[i] = tokens[place - 1 - i];
    return made;
  }

  /// How many of the last tokens before a place are those of a context, at most `depth`.
  template <class = void>
  std::int32_t common(std::uint32_t place, std::span<Token const> context, std::int32_t depth) const {
    auto const most = static_cast<std::int32_t>((std::min)(context.size(), static_cast<std::size_t>(depth)));
    if (most == 0) return 0;
    auto const* const before = tokens.data() + place - 1;  // a -1 begins the text, and is in no context
    auto const* const last = context.data() + context.size() - 1;
    std::int32_t i = 0;
    while (i < most && before[-i] == last[-i]) ++i;
    return i;
  }
  /// Whether a place is sorted before a context.
  template <class = void>
  bool before(std::uint32_t place, std::span<Token const> context, std::int32_t depth) const {
    auto const same = common(place, context, depth);
    if (same == depth || static_cast<std::size_t>(same) == context.size()) return false;  // equal, or longer
    return tokens[place - 1 - static_cast<std::uint32_t>(same)] <
           context[context.size() - 1 - static_cast<std::size_t>(same)];
  }
  /// Whether one of this segment's places is sorted before a place of another.
  template <class = void>
  bool before(std::uint32_t place, SuffixSegment const& other, std::uint32_t other_place, std::int32_t depth) const {
    auto const *a = tokens.data() + place - 1, *b = other.tokens.data() + other_place - 1;
    for (std::int32_t i = 0; i < depth; ++i, --a, --b) {
      if (*a != *b) return *a < *b;
      if (*a < 0) break;
    }
    return false;
  }

  /// The number of places that are sorted before a context. O(log places) comparisons, of which all but six are with keys.
  template <class = void>
  std::size_t lower_bound(std::span<Token const> context, std::int32_t depth) const {
    Key wanted;
    wanted.fill(-1);
    for (std::size_t i = 0; i < wanted.size() && i < context.size(); ++i) wanted[i] = context[context.size() - 1 - i];
    auto const shown = static_cast<std::size_t>((std::min)(depth, static_cast<std::int32_t>(wanted.size())));
    std::size_t first = 0, last = keys.size();  // keys
    while (first < last) {
      auto const middle = first + (last - first) / 2;
      auto const& key = keys[middle];
      std::size_t i = 0;
      while (i < shown && key[i] == wanted[i]) ++i;
      if (i < shown ? key[i] < wanted[i] : before(order[middle * every], context, depth)) first = middle + 1;
      else last = middle;
    }
    auto low = first == 0 ? 0 : (first - 1) * every + 1, high = (std::min)(first * every, order.size());
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (before(order[middle], context, depth)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /// Notes that a guess came from the text with this place. O(log texts).
  template <class = void>
  void touch(std::uint32_t place, std::uint32_t clock) const {
    auto const after = std::upper_bound(texts.begin(), texts.end(), place) - texts.begin();
    used[static_cast<std::size_t>(after - 1)].store(clock, std::memory_order_relaxed);
  }

  /// The bytes that it takes, those of a mapped file included.
  template <class = void>
  std::size_t bytes() const {
    return tokens.size_bytes() + order.size_bytes() + texts.size_bytes() + keys.size() * sizeof(Key) +
           texts.size() * sizeof(std::uint32_t);
  }
};

}  // namespace sluice::inline v0::detail
