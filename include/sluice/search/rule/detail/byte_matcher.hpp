// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds strings in a stream of bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// The automaton of Aho and Corasick (1975) over bytes, as one table. A state is the longest prefix of any string that
/// is a suffix of the bytes so far. One table lookup per byte. The table has one 4-byte number for each pair of a state
/// and a distinct byte of the strings.
class ByteMatcher {
 public:
  /// The start of the state's table row, times two; odd where a string ends.
  using State = std::int32_t;
  static constexpr State root = 0;

  template <class = void>
  ByteMatcher() : ByteMatcher(std::span<std::string const>{}) {}

  /// \throws std::invalid_argument  naming the string, if one is empty; or if the strings are too long for a State
  template <class = void>
  explicit ByteMatcher(std::span<std::string const> strings) {
    for (auto const& string : strings)
      for (auto const byte : string)
        if (auto& c = class_of_[index(byte)]; c == 0) c = classes_++;
    nodes_.emplace_back(), table_.assign(static_cast<std::size_t>(classes_), none);
    for (std::size_t i = 0; i < strings.size(); ++i) insert(strings[i], static_cast<std::int32_t>(i));
    require(table_.size() < std::size_t{1} << 30, "stop strings", nodes_.size(), "bytes are too many");
    link();
  }

  State next(State state, char byte) const {
    return table_[static_cast<std::size_t>((state >> 1) + class_of_[index(byte)])];
  }
  /// Whether any string ends here.
  static bool ends(State state) { return (state & 1) != 0; }
  /// The longest string that ends here (the first of equal ones); -1: none.
  std::int32_t string(State state) const { return node(state).string; }
  /// The number of bytes matched.
  std::int32_t depth(State state) const { return node(state).depth; }

 private:
  static constexpr std::int32_t none = -1;
  struct Node {
    std::int32_t depth = 0, string = -1;
  };
  static std::size_t index(char byte) { return static_cast<unsigned char>(byte); }
  Node const& node(State state) const { return nodes_[static_cast<std::size_t>((state >> 1) / classes_)]; }

  // During construction, the table holds node numbers.
  std::int32_t& at(std::int32_t number, std::int32_t c) {
    return table_[static_cast<std::size_t>(number) * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(c)];
  }

  template <class = void>
  void insert(std::string_view string, std::int32_t number) {
    require(!string.empty(), "stop string", number, "is empty");
    std::int32_t node = 0;
    for (auto const byte : string) {
      auto const c = class_of_[index(byte)];
      if (at(node, c) == none) {
        at(node, c) = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({.depth = nodes_[static_cast<std::size_t>(node)].depth + 1});
        table_.resize(table_.size() + static_cast<std::size_t>(classes_), none);
      }
      node = at(node, c);
    }
    if (auto& ended = nodes_[static_cast<std::size_t>(node)].string; ended < 0) ended = number;
  }

  /// Fills missing entries from the next shorter prefix, in order of depth; then turns node numbers into states.
  template <class = void>
  void link() {
    std::vector<std::int32_t> order{0}, fallback(nodes_.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const from = order[i];
      auto const back = fallback[static_cast<std::size_t>(from)];
      if (auto& ended = nodes_[static_cast<std::size_t>(from)].string; ended < 0)
        ended = nodes_[static_cast<std::size_t>(back)].string;
      for (std::int32_t c = 0; c < classes_; ++c) {
        auto const shorter = from == 0 ? 0 : at(back, c);
        auto& to = at(from, c);
        if (to == none) to = shorter;
        else fallback[static_cast<std::size_t>(to)] = shorter, order.push_back(to);
      }
    }
    for (auto& to : table_) to = 2 * classes_ * to + (nodes_[static_cast<std::size_t>(to)].string >= 0 ? 1 : 0);
  }

  std::array<std::int32_t, 256> class_of_{};  // 0: bytes in no string
  std::int32_t classes_ = 1;
  std::vector<Node> nodes_;
  std::vector<State> table_;  // [node][class]
};

}  // namespace sluice::inline v0::detail
