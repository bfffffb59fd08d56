// SPDX-License-Identifier: Apache-2.0
/// \file
/// A compiled grammar: one automaton per rule; automata call each other.
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

/// The nodes of all rules. A node continues with a byte or with a text of another rule (it "calls" the rule), or its
/// rule's text may end there. Calls are never empty: where a rule's text may be empty, its callers have an edge that
/// skips it. Every node can reach an end. Bytes that no edge distinguishes form one class; classes are contiguous
/// ranges of bytes.
///
/// There is no left recursion.
class Automaton {
 public:
  struct ByteEdge {
    std::uint8_t first, last;  // bytes
    std::int32_t to;
  };
  struct CallEdge {
    std::int32_t rule, to;
  };
  struct Node {
    std::int32_t bytes = 0, calls = 0;  // the start of its edges
    bool end = false;                   // the rule's text may end here
    bool last = false;                  // the rule's text always ends here
  };

  std::int32_t nodes() const { return static_cast<std::int32_t>(all.size()) - 1; }
  bool end(std::int32_t node) const { return all[at(node)].end; }
  bool last(std::int32_t node) const { return all[at(node)].last; }
  template <class = void>
  std::span<ByteEdge const> bytes(std::int32_t node) const {
    return std::span(byte_edges).subspan(at(all[at(node)].bytes), at(all[at(node) + 1].bytes - all[at(node)].bytes));
  }
  template <class = void>
  std::span<CallEdge const> calls(std::int32_t node) const {
    return std::span(call_edges).subspan(at(all[at(node)].calls), at(all[at(node) + 1].calls - all[at(node)].calls));
  }

  std::vector<Node> all;  // [nodes + 1]
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<std::int32_t> start;  // [rule]
  std::vector<std::int32_t> rank;   // [rule]: lower than those of the rules that it can begin with by calls alone
  std::int32_t root = 0;            // the root rule
  std::array<std::uint8_t, 256> class_of{};
  std::vector<std::uint8_t> first_of;  // [class]: its first byte

  std::int32_t classes() const { return static_cast<std::int32_t>(first_of.size()); }

  /// Computes the byte classes. All other members must be set.
  template <class = void>
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

}  // namespace sluice::inline v0::detail
