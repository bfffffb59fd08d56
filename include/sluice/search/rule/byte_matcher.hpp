// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds strings in a stream of bytes.
#pragma once

#include <sluice/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// The automaton of Aho and Corasick (1975) over bytes, as one table: a state is the longest beginning of any string that
/// the bytes so far end in. One look a byte. States times different bytes in the strings numbers of 4 bytes.
template <class = void>
class LazyByteMatcher {
 public:
  using State = std::int32_t;
  static constexpr State root = 0;

  LazyByteMatcher() : LazyByteMatcher(std::span<std::string const>{}) {}

  /// \throws std::invalid_argument  naming the string, if one is empty
  explicit LazyByteMatcher(std::span<std::string const> strings) {
    class_of_.fill(0);
    for (auto const& string : strings)
      for (auto const byte : string)
        if (auto& c = class_of_[index(byte)]; c == 0) c = classes_++;
    grow();
    for (std::size_t i = 0; i < strings.size(); ++i) insert(strings[i], static_cast<std::int32_t>(i));
    link();
  }

  State next(State state, char byte) const { return at(state, class_of_[index(byte)]); }
  /// Bytes matched.
  std::int32_t depth(State state) const { return nodes_[static_cast<std::size_t>(state)].depth; }
  /// The longest string that ends here (of equal ones the first); -1: none.
  std::int32_t ends(State state) const { return nodes_[static_cast<std::size_t>(state)].string; }

 private:
  static constexpr State none = -1;
  struct Node {
    std::int32_t depth = 0, string = -1;
  };
  static std::size_t index(char byte) { return static_cast<unsigned char>(byte); }
  State at(State state, std::int32_t c) const {
    return table_[static_cast<std::size_t>(state) * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(c)];
  }
  State& at(State state, std::int32_t c) {
    return table_[static_cast<std::size_t>(state) * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(c)];
  }
  void grow() { nodes_.emplace_back(), table_.resize(nodes_.size() * static_cast<std::size_t>(classes_), none); }

  void insert(std::string_view string, std::int32_t number) {
    require(!string.empty(), "stop string", number, "is empty");
    auto state = root;
    for (auto const byte : string) {
      auto const c = class_of_[index(byte)];
      if (at(state, c) == none) {
        at(state, c) = static_cast<State>(nodes_.size());
        grow();
        nodes_.back().depth = depth(state) + 1;
      }
      state = at(state, c);
    }
    if (auto& node = nodes_[static_cast<std::size_t>(state)]; node.string < 0) node.string = number;
  }

  /// Fills what is missing with where the next shorter beginning leads, in order of depth.
  void link() {
    std::vector<State> order{root}, fallback(nodes_.size(), root);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const from = order[i];
      auto const back = fallback[static_cast<std::size_t>(from)];
      if (auto& node = nodes_[static_cast<std::size_t>(from)]; node.string < 0) node.string = ends(back);
      for (std::int32_t c = 0; c < classes_; ++c) {
        auto const shorter = from == root ? root : at(back, c);
        auto& to = at(from, c);
        if (to == none) to = shorter;
        else fallback[static_cast<std::size_t>(to)] = shorter, order.push_back(to);
      }
    }
  }

  std::array<std::int32_t, 256> class_of_{};  // 0: in no string
  std::int32_t classes_ = 1;
  std::vector<Node> nodes_;
  std::vector<State> table_;  // [state][class]
};
using ByteMatcher = LazyByteMatcher<>;

}  // namespace sluice::inline v0::detail
