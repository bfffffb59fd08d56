// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regular expressions, read.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Parts come before what contains them.
struct RegexTree {
  enum class Kind : std::uint8_t { characters, sequence, choice, repeat, begin, end, look };
  struct Node {
    Kind kind = Kind::sequence;
    std::vector<CharacterRange> ranges{};    // characters: normalised
    std::vector<std::int32_t> parts{};       // a repeat and a look have one
    std::int32_t minimum = 0, maximum = -1;  // repeat; -1: any number
    bool negative = false;                   // look
  };
  std::vector<Node> nodes{};
  std::int32_t root = -1;

  SLUICE_LAZY std::int32_t add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<std::int32_t>(nodes.size()) - 1;
  }
  Node const& operator[](std::int32_t i) const { return nodes[static_cast<std::size_t>(i)]; }
  /// Takes anchors away at the edges of the whole. \returns  false: others are left, or looks, or the alternatives are
  /// anchored in different ways
  /// \param begins, ends  whether the text must begin and end with the match; given true: it must in any case
  SLUICE_LAZY bool take_anchors(bool& begins, bool& ends) {
    auto const in_any_case = begins;
    auto const choices = (*this)[root].kind == Kind::choice ? (*this)[root].parts : std::vector{root};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      auto& node = nodes[static_cast<std::size_t>(choices[i])];
      auto parts = node.kind == Kind::sequence ? node.parts : std::vector{choices[i]};
      auto const is = [&](std::int32_t part, Kind kind) { return (*this)[part].kind == kind; };
      auto own_begin = false, own_end = false;
      while (!parts.empty() && is(parts.front(), Kind::begin)) parts.erase(parts.begin()), own_begin = true;
      while (!parts.empty() && is(parts.back(), Kind::end)) parts.pop_back(), own_end = true;
      if (!in_any_case && i > 0 && (own_begin != begins || own_end != ends)) return false;
      if (!in_any_case) begins = own_begin, ends = own_end;
      if (own_begin || own_end) {
        if (node.kind == Kind::sequence) node.parts = std::move(parts);
        else node = {};
      }
    }
    auto look = false;
    std::vector<std::int32_t> open{root};
    while (!open.empty()) {
      auto const& node = (*this)[open.back()];
      open.pop_back();
      look = look || node.kind == Kind::begin || node.kind == Kind::end || node.kind == Kind::look;
      open.insert(open.end(), node.parts.begin(), node.parts.end());
    }
    return !look;
  }

  /// As an expression, without anchors. \param lower  writes one character
  template <class Lower>
  Expressions::Id write(Expressions& out, Lower const& lower) const {
    std::vector<Expressions::Id> ids(nodes.size(), -1), parts;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto const& node = nodes[i];
      parts.clear();
      for (auto const part : node.parts) parts.push_back(ids[static_cast<std::size_t>(part)]);
      switch (node.kind) {
        case Kind::characters: ids[i] = lower(node.ranges); break;
        case Kind::choice: ids[i] = out.choice(parts); break;
        case Kind::repeat: ids[i] = out.repeat(parts[0], node.minimum, node.maximum); break;
        case Kind::sequence: ids[i] = out.sequence(parts); break;
        default: ids[i] = out.empty(); break;
      }
    }
    return ids[static_cast<std::size_t>(root)];
  }
};

}  // namespace sluice::inline v0::detail
