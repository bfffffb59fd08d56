// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tokens of plain characters, which strings allow almost everywhere.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

struct PlainBytes {
  std::uint8_t first, last;
};
/// A plain character is any one in UTF-8 but quotes, backslashes, control characters and U+2028 and U+2029, which a `.` in
/// a pattern excludes: its bytes match one of these.
inline constexpr std::array<std::array<PlainBytes, 4>, 15> plain_characters{{
    {{{0x20, 0x21}}},
    {{{0x23, 0x5B}}},
    {{{0x5D, 0x7E}}},
    {{{0xC2, 0xDF}, {0x80, 0xBF}}},
    {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {{{0xE1, 0xE1}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xE2, 0xE2}, {0x80, 0x80}, {0x80, 0xA7}}},
    {{{0xE2, 0xE2}, {0x80, 0x80}, {0xAA, 0xBF}}},
    {{{0xE2, 0xE2}, {0x81, 0xBF}, {0x80, 0xBF}}},
    {{{0xE3, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
    {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
}};

/// The tokens that consist of plain characters, by their number, and a trie of the others. What is here depends on the
/// vocabulary alone.
class PlainText {
 public:
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();

  /// \param tokens  sorted by their bytes, as in the trie
  SLUICE_LAZY void build(std::vector<Token> const& tokens, TokenBytes const& bytes, TrieNodes const& trie,
                         std::int32_t vocabulary) {
    std::map<std::int32_t, std::vector<Token>> by_length;
    std::vector<Token> rest;
    characters_.assign(tokens.size(), not_plain);
    std::array<std::vector<Token>, slices.size()> longer;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      auto const token = tokens[t];
      auto const characters = count(bytes.bytes(token));
      if (characters < 0) {
        rest.push_back(token);
        continue;
      }
      by_length[characters].push_back(token);
      characters_[t] = static_cast<std::uint8_t>((std::min)(characters, not_plain - 1));
      for (std::size_t i = 0; i < slices.size(); ++i)
        if (characters > slices[i]) longer[i].push_back(token);
    }
    TokenSet set(vocabulary);
    for (auto const& [length, some] : by_length) {
      set.insert(std::span<Token const>(some));
      up_to_.emplace_back(length, set);
    }
    rest_.build(std::move(rest), bytes);
    rest_of_.assign(static_cast<std::size_t>(trie.size()), none);
    match(trie, bytes);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      longer_[i].build(std::move(longer[i]), bytes);
      auto& whole = whole_[i];
      whole.assign(static_cast<std::size_t>(longer_[i].size()), 0);
      std::vector<std::int32_t> path(static_cast<std::size_t>(longer_[i].depth()) + 1);
      for (std::int32_t node = 1; node < longer_[i].size(); ++node) {
        auto const depth = static_cast<std::size_t>(longer_[i].depth(node));
        path[depth] = trie.child(path[depth - 1], longer_[i].byte(node));
        whole[static_cast<std::size_t>(node)] = path[depth];
      }
    }
  }

  /// The number of characters of a plain text; -1: it is none.
  SLUICE_LAZY static std::int32_t count(std::string_view text) {
    std::int32_t characters = 0;
    for (std::size_t i = 0; i < text.size(); ++characters) {
      std::size_t length = 0;
      for (auto const& one : plain_characters) {
        std::size_t n = 0;
        while (n < 4 && one[n].last != 0 && i + n < text.size() && one[n].first <= byte(text[i + n]) &&
               byte(text[i + n]) <= one[n].last)
          ++n;
        if (n == 4 || one[n].last == 0) length = n;
      }
      if (length == 0) return -1;
      i += length;
    }
    return characters;
  }

  /// The tokens of at most this many characters.
  SLUICE_LAZY void insert_into(TokenSet& set, std::int32_t characters) const {
    TokenSet const* best = nullptr;
    for (auto const& [length, tokens] : up_to_)
      if (length <= characters) best = &tokens;
    if (best != nullptr) set.insert(*best);
  }
  /// Whether no token has more characters.
  bool longest(std::int32_t characters) const { return up_to_.empty() || characters >= up_to_.back().first; }
  /// Of the tokens below a node of the whole trie, the plain ones of at most this many characters.
  SLUICE_LAZY void insert_below(TokenSet& set, TrieNodes const& trie, std::int32_t node, std::int32_t most) const {
    auto const tokens = trie.below(node);
    auto const* const characters = characters_.data() + (tokens.data() - trie.below(0).data());
    if (most >= not_plain - 1) most = not_plain - 1;
    std::array<Token, 256> some;  // NOLINT(cppcoreguidelines-pro-type-member-init): set before it is read
    for (std::size_t begin = 0; begin < tokens.size(); begin += some.size()) {
      std::size_t n = 0;
      for (auto i = begin; i < (std::min)(tokens.size(), begin + some.size()); ++i)
        some[n] = tokens[i], n += characters[i] <= most ? 1 : 0;
      set.insert(std::span<Token const>(some.data(), n));
    }
  }

  /// Numbers of characters for which there is a trie of the longer plain tokens.
  static constexpr std::array<std::int32_t, 3> slices{8, 12, 16};
  /// The number of the longest slice of at most so many characters; -1: none.
  static std::int32_t slice(std::int32_t characters) {
    std::int32_t out = -1;
    for (auto const one : slices)
      if (one <= characters) ++out;
    return out;
  }
  /// The node of the whole trie for a node of longer(); other nodes as they are.
  SLUICE_LAZY std::int32_t whole(TrieNodes const& trie, std::int32_t node) const {
    for (std::size_t i = 0; i < slices.size(); ++i)
      if (&trie == &longer_[i]) return whole_[i][static_cast<std::size_t>(node)];
    return node;
  }
  TrieNodes const& longer(std::int32_t slice) const { return longer_[static_cast<std::size_t>(slice)]; }
  /// The other tokens.
  TrieNodes const& rest() const { return rest_; }
  static constexpr std::int32_t none = -1, apart = -2;
  /// The node of rest() for a node of the whole trie between two characters; none: there is none below; apart: the node is
  /// not between two characters.
  std::int32_t rest_of(std::int32_t node) const { return rest_of_[static_cast<std::size_t>(node)]; }

 private:
  static std::uint8_t byte(char c) { return static_cast<std::uint8_t>(c); }

  SLUICE_LAZY void match(TrieNodes const& trie, TokenBytes const& bytes) {
    rest_of_[0] = 0;
    std::vector<std::int32_t> path(static_cast<std::size_t>(trie.depth()) + 1);
    std::vector<std::uint8_t> between(path.size());  // whether plain characters end at this depth
    between[0] = 1;
    for (std::int32_t node = 1; node < trie.size(); ++node) {
      auto const depth = static_cast<std::size_t>(trie.depth(node));
      auto const above = path[depth - 1];
      path[depth] = above < 0 ? none : rest_.child(above, trie.byte(node));
      auto const text = bytes.bytes(trie.below(node)[0]).substr(0, depth);
      auto ends = false;
      for (std::size_t length = 1; length <= 4 && length <= depth; ++length)
        ends = ends || (between[depth - length] != 0 && count(text.substr(depth - length)) == 1);
      between[depth] = ends ? 1 : 0;
      rest_of_[static_cast<std::size_t>(node)] = ends ? path[depth] : apart;
    }
  }

  std::vector<std::pair<std::int32_t, TokenSet>> up_to_;  // number of characters, tokens
  static constexpr std::int32_t not_plain = 255;
  std::vector<std::uint8_t> characters_;  // [sorted tokens]: their number, as far as it counts
  std::array<TrieNodes, slices.size()> longer_;
  std::array<std::vector<std::int32_t>, slices.size()> whole_;  // [node of longer_]: of the whole trie
  TrieNodes rest_;
  std::vector<std::int32_t> rest_of_;  // [node of the whole trie]
};

}  // namespace sluice::inline v0::detail
