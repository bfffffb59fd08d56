// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tokens as a trie in preorder.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/character_kinds.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// A trie of tokens in preorder: the nodes below a node follow it.
class TrieNodes {
 public:
  /// \param tokens  sorted by their bytes
  SLUICE_LAZY void build(std::vector<Token> tokens, TokenBytes const& bytes) {
    tokens_ = std::move(tokens);
    std::vector<std::int32_t> open{0};  // from the root to the last node
    nodes_.push_back({});
    std::string_view before;
    auto const close = [&](std::size_t until) {
      while (open.size() > until + 1) {
        nodes_[at(open.back())].end = static_cast<std::int32_t>(nodes_.size());
        open.pop_back();
      }
    };
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      auto const text = bytes.bytes(tokens_[i]);
      require(text.size() <= 65535, "token", tokens_[i], "has more than 65535 bytes");
      auto const differ = std::ranges::mismatch(before, text);
      close(static_cast<std::size_t>(differ.in2 - text.begin()));
      for (auto d = open.size() - 1; d < text.size(); ++d) {
        open.push_back(static_cast<std::int32_t>(nodes_.size()));
        nodes_.push_back(
            {0, static_cast<std::int32_t>(i), static_cast<std::uint16_t>(d + 1), static_cast<std::uint8_t>(text[d])});
      }
      depth_ = (std::max)(depth_, static_cast<std::int32_t>(text.size()));
      before = text;
    }
    close(0);
    nodes_[0].end = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({0, static_cast<std::int32_t>(tokens_.size())});
    find_kinds(bytes);
  }

  std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()) - 1; }
  std::uint8_t byte(std::int32_t node) const { return nodes_[at(node)].byte; }
  std::int32_t depth(std::int32_t node) const { return nodes_[at(node)].depth; }
  std::int32_t end(std::int32_t node) const { return nodes_[at(node)].end; }
  std::int32_t depth() const { return depth_; }
  /// The kinds of all characters below a node that is between two characters; CharacterKinds::broken: they are not whole
  /// characters, or the node is not; CharacterKinds::deep: a token is longer than NodeTokens::most_depth.
  std::uint32_t kinds(std::int32_t node) const { return nodes_[at(node)].kinds; }
  /// The most characters that follow, up to 255; for a node below which nothing is broken.
  std::int32_t characters(std::int32_t node) const { return nodes_[at(node)].characters; }
  SLUICE_LAZY std::span<Token const> tokens(std::int32_t node) const { return between(node, node + 1); }
  /// The tokens at and below a node.
  SLUICE_LAZY std::span<Token const> below(std::int32_t node) const { return between(node, end(node)); }
  SLUICE_LAZY std::int32_t child(std::int32_t node, std::uint8_t byte) const {
    for (auto i = node + 1; i < end(node) && this->byte(i) <= byte; i = end(i))
      if (this->byte(i) == byte) return i;
    return -1;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::span<Token const> between(std::int32_t first, std::int32_t last) const {
    auto const begin = nodes_[at(first)].tokens;
    return std::span(tokens_).subspan(at(begin), at(nodes_[at(last)].tokens - begin));
  }
  struct Node {
    std::int32_t end = 0, tokens = 0;
    std::uint16_t depth = 0;
    std::uint8_t byte = 0, characters = 0;
    std::uint32_t kinds = 0;
  };

  SLUICE_LAZY void find_kinds(TokenBytes const& bytes) {
    struct Edge {
      std::int32_t begin = 0;  // the node at which this one's last character begins
      std::uint32_t kind = 0;  // of a node between two characters: of the last
    };
    std::vector<Edge> steps(nodes_.size() - 1);
    std::vector<std::int32_t> path(at(depth_) + 1);
    std::vector<std::uint8_t> whole(path.size(), 1);  // [depth]: between two characters
    for (std::int32_t node = 1; node < size(); ++node) {
      auto const depth = at(nodes_[at(node)].depth);
      path[depth] = node, whole[depth] = 0;
      auto const text = bytes.bytes(below(node)[0]).substr(0, depth);
      auto begin = depth - 1;
      while (whole[begin] == 0) --begin;
      auto& step = steps[at(node)];
      step.begin = path[begin];
      if (auto const found = CharacterKinds::first_of(text.substr(begin)); found.bytes == depth - begin)
        step.kind = std::uint32_t{1} << found.kind, whole[depth] = 1;
    }
    for (auto node = size() - 1; node > 0; --node) {
      auto const& step = steps[at(node)];
      auto& own = nodes_[at(node)];
      auto& above = nodes_[at(step.begin)];
      if (own.depth > NodeTokens::most_depth) above.kinds |= CharacterKinds::deep;
      if (step.kind != 0) {
        above.kinds |= step.kind | own.kinds;
        above.characters =
            (std::max)(above.characters, static_cast<std::uint8_t>((std::min)(254, int{own.characters}) + 1));
      } else {
        own.kinds = CharacterKinds::broken;
        if (!tokens(node).empty()) above.kinds |= CharacterKinds::broken;
      }
    }
  }
  std::vector<Token> tokens_;  // sorted by their bytes
  std::vector<Node> nodes_;    // [size + 1]
  std::int32_t depth_ = 0;
};

}  // namespace sluice::inline v0::detail
