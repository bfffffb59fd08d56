// SPDX-License-Identifier: Apache-2.0
/// \file
/// A compiled grammar: one automaton a rule, which call each other.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Nodes of all rules. A node goes on with a byte, or with a text of another rule ("calls" it), or its rule's text may end
/// there. Nothing is left out by not reading a byte: where a rule's text may be empty, whoever calls it can also do so
/// without. Every node can get to an end. Bytes that no edge distinguishes are one class; classes are runs of bytes.
///
/// No rule begins, by calls alone, with itself.
template <class = void>
class LazyAutomaton {
 public:
  struct ByteEdge {
    std::uint8_t first, last;  // bytes
    std::int32_t to;
  };
  struct CallEdge {
    std::int32_t rule, to;
  };
  struct Node {
    std::int32_t bytes = 0, calls = 0;  // where its edges begin
    bool end = false;                   // the rule's text may end here
    bool last = false;                  // and does
  };

  std::int32_t nodes() const { return static_cast<std::int32_t>(all.size()) - 1; }
  bool end(std::int32_t node) const { return all[at(node)].end; }
  bool last(std::int32_t node) const { return all[at(node)].last; }
  std::span<ByteEdge const> bytes(std::int32_t node) const {
    return std::span(byte_edges).subspan(at(all[at(node)].bytes), at(all[at(node) + 1].bytes - all[at(node)].bytes));
  }
  std::span<CallEdge const> calls(std::int32_t node) const {
    return std::span(call_edges).subspan(at(all[at(node)].calls), at(all[at(node) + 1].calls - all[at(node)].calls));
  }

  std::vector<Node> all;  // [nodes + 1]
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<std::int32_t> start;  // [rule]
  std::vector<std::int32_t> rank;   // [rule]: less than those that it can begin with by calls alone
  std::int32_t root = 0;            // a rule
  std::array<std::uint8_t, 256> class_of{};
  std::vector<std::uint8_t> first_of;  // [class]: its first byte

  std::int32_t classes() const { return static_cast<std::int32_t>(first_of.size()); }

  /// All else is there: which bytes are distinguished.
  void classify() {
    std::array<bool, 257> begins{};
    begins[0] = true;
    for (auto const& edge : byte_edges) begins[edge.first] = true, begins[edge.last + std::size_t{1}] = true;
    first_of.clear();
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (begins[byte]) first_of.push_back(static_cast<std::uint8_t>(byte));
      class_of[byte] = static_cast<std::uint8_t>(first_of.size() - 1);
    }
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
};
using Automaton = LazyAutomaton<>;

}  // namespace sluice::inline v0::detail
