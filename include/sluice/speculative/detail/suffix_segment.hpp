// SPDX-License-Identifier: Apache-2.0
/// \file
/// A sorted part of a SuffixCache.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/large_vector.hpp>

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
  std::vector<Key> tops{};                 ///< of keys[0], keys[every], ...
  /// [texts]: SuffixCache's clock when the text was inserted, or a guess was last taken from it
  std::unique_ptr<std::atomic<std::uint32_t>[]> used {};

  std::shared_ptr<void const> keeper{};  ///< of mapped bytes
  LargeVector<Token> own_tokens{};       // what the spans show if nothing is mapped
  LargeVector<std::uint32_t> own_order{};
  std::vector<std::uint32_t> own_texts{};

  static void fetch([[maybe_unused]] void const* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#endif
  }

  /// Adds the key of a place that is the next of the order, if it needs one.
  SLUICE_LAZY void add_key(std::size_t number, Key const& key) {
    if (number % every == 0) keys.push_back(key);
    if (number % (every * every) == 0) tops.push_back(key);
  }
  /// Shows what it owns.
  void show() { tokens = own_tokens, order = own_order, texts = own_texts; }

  SLUICE_LAZY Key key(std::uint32_t place) const {
    Key made;
    made.fill(-1);
    for (std::size_t i = 0; i < made.size() && tokens[place - 1 - i] >= 0; ++i) made[i] = tokens[place - 1 - i];
    return made;
  }

  /// How many of the last tokens before a place are those of a context, at most `depth`.
  SLUICE_LAZY std::int32_t common(std::uint32_t place, std::span<Token const> context, std::int32_t depth) const {
    auto const most = static_cast<std::int32_t>((std::min)(context.size(), static_cast<std::size_t>(depth)));
    if (most == 0) return 0;
    auto const* const before = tokens.data() + place - 1;  // a -1 begins the text, and is in no context
    auto const* const last = context.data() + context.size() - 1;
    std::int32_t i = 0;
    while (i < most && before[-i] == last[-i]) ++i;
    return i;
  }
  /// Whether a place is sorted before a context, or is equal to it in all `depth` tokens: the youngest of those are next to it.
  SLUICE_LAZY bool before(std::uint32_t place, std::span<Token const> context, std::int32_t depth) const {
    auto const same = common(place, context, depth);
    if (same == depth) return true;
    if (static_cast<std::size_t>(same) == context.size()) return false;  // longer
    return tokens[place - 1 - static_cast<std::uint32_t>(same)] <
           context[context.size() - 1 - static_cast<std::size_t>(same)];
  }
  /// Whether one of this segment's places is sorted before a place of another.
  SLUICE_LAZY bool before(std::uint32_t place, SuffixSegment const& other, std::uint32_t other_place,
                          std::int32_t depth) const {
    auto const *a = tokens.data() + place - 1, *b = other.tokens.data() + other_place - 1;
    for (std::int32_t i = 0; i < depth; ++i, --a, --b) {
      if (*a != *b) return *a < *b;
      if (*a < 0) break;
    }
    return false;
  }

  /// Places first to last - 1.
  struct Block {
    std::size_t first, last;
  };
  /// Where the number of places that are sorted before a context lies: one of first to last. O(log places) comparisons with keys. Has
  /// the processor fetch the block.
  SLUICE_LAZY Block block(std::span<Token const> context, std::int32_t depth) const {
    Key wanted;
    wanted.fill(-1);
    for (std::size_t i = 0; i < wanted.size() && i < context.size(); ++i) wanted[i] = context[context.size() - 1 - i];
    auto const shown = static_cast<std::size_t>((std::min)(depth, static_cast<std::int32_t>(wanted.size())));
    auto const first_after = [&](std::vector<Key> const& all, std::size_t stride, std::size_t first, std::size_t last) {
      while (first < last) {
        auto const middle = first + (last - first) / 2;
        auto const& key = all[middle];
        std::size_t i = 0;
        while (i < shown && key[i] == wanted[i]) ++i;
        if (i < shown ? key[i] < wanted[i] : before(order[middle * stride], context, depth)) first = middle + 1;
        else last = middle;
      }
      return first;
    };
    auto const top = first_after(tops, every * every, 0, tops.size());
    auto const first_key = top == 0 ? 0 : (top - 1) * every + 1, last_key = (std::min)(top * every, keys.size());
    for (auto i = first_key; i < last_key; i += 64 / sizeof(Key)) fetch(keys.data() + i);
    auto const key = first_after(keys, every, first_key, last_key);
    Block const found{key == 0 ? 0 : (key - 1) * every + 1, (std::min)(key * every, order.size())};
    for (auto i = found.first; i < found.last; i += 16) fetch(order.data() + i);
    return found;
  }
  /// Has the processor fetch the tokens before and after some places: many waits for memory at once are not many waits.
  SLUICE_LAZY void fetch_tokens(Block which) const {
    for (auto i = which.first; i < which.last; ++i) fetch(tokens.data() + order[i]);
  }
  /// The same for the end of the `most` tokens from a place on.
  SLUICE_LAZY void fetch_end(std::uint32_t place, std::size_t most) const {
    fetch(tokens.data() + (std::min)(place + most, tokens.size()) - 1);
  }
  /// The number of places that are sorted before a context, which lies in its block.
  SLUICE_LAZY std::size_t lower_bound(Block within, std::span<Token const> context, std::int32_t depth) const {
    while (within.first < within.last) {
      auto const middle = within.first + (within.last - within.first) / 2;
      if (before(order[middle], context, depth)) within.first = middle + 1;
      else within.last = middle;
    }
    return within.first;
  }

  /// Notes that a guess came from the text with this place. O(log texts).
  SLUICE_LAZY void touch(std::uint32_t place, std::uint32_t clock) const {
    auto const after = std::upper_bound(texts.begin(), texts.end(), place) - texts.begin();
    used[static_cast<std::size_t>(after - 1)].store(clock, std::memory_order_relaxed);
  }

  /// The bytes that it takes, those of a mapped file included.
  SLUICE_LAZY std::size_t bytes() const {
    return tokens.size_bytes() + order.size_bytes() + texts.size_bytes() + (keys.size() + tops.size()) * sizeof(Key) +
           texts.size() * sizeof(std::uint32_t);
  }
};

}  // namespace sluice::inline v0::detail
