// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds strings in a stream of bytes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/processor/detail/pattern_automaton.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// The automaton of Aho and Corasick (1975) over bytes. A state is the longest prefix of any string that is a suffix of
/// the bytes so far. One table lookup per byte for strings of some hundred bytes together; for longer ones, whose table
/// would be large, a search among the bytes that go on with one. 64 KiB and 13 bytes for each byte of the strings at most.
class ByteMatcher {
  using Automaton = PatternAutomaton<std::string>;

 public:
  /// A number, times two; odd where a string ends.
  using State = std::int32_t;
  static constexpr State root = 0;

  SLUICE_LAZY ByteMatcher() : ByteMatcher(std::span<std::string const>{}) {}

  /// \throws std::invalid_argument  naming the string, if one is empty; or if the strings are too long for a State
  SLUICE_LAZY explicit ByteMatcher(std::span<std::string const> strings) : automaton_(checked(strings)) {
    for (auto const& string : strings)
      for (auto const byte : string)
        if (auto& c = class_of_[index(byte)]; c == 0) c = classes_++;
    auto const rows = static_cast<std::size_t>(automaton_.states()), columns = static_cast<std::size_t>(classes_);
    if (rows > most / columns) return;
    table_.resize(rows * columns);
    for (std::size_t byte = 0; byte < class_of_.size(); ++byte)
      for (std::size_t row = 0; row < rows; ++row)
        table_[row * columns + static_cast<std::size_t>(class_of_[byte])] =
            marked(automaton_.next(static_cast<State>(row), static_cast<char>(byte)));
  }

  SLUICE_LAZY State next(State state, char byte) const {
    if (!table_.empty())
      return table_[static_cast<std::size_t>(state >> 1) * static_cast<std::size_t>(classes_) +
                    static_cast<std::size_t>(class_of_[index(byte)])];
    return marked(automaton_.next(state >> 1, byte));
  }
  /// Whether any string ends here.
  static bool ends(State state) { return (state & 1) != 0; }
  /// The longest string that ends here (the first of equal ones); -1: none.
  SLUICE_LAZY std::int32_t string(State state) const {
    if (!ends(state)) return -1;
    for (auto at = state >> 1;; at = automaton_.fallback(at))
      if (auto const found = automaton_.patterns(at); !found.empty()) return found.front();
  }
  /// The number of bytes matched.
  SLUICE_LAZY std::int32_t depth(State state) const { return automaton_.depth(state >> 1); }
  /// Of memory, without this object itself.
  SLUICE_LAZY std::size_t bytes() const { return automaton_.bytes() + table_.capacity() * sizeof(State); }

 private:
  SLUICE_LAZY static std::span<std::string const> checked(std::span<std::string const> strings) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < strings.size(); ++i) {
      require(!strings[i].empty(), "stop string", i, "is empty");
      bytes += strings[i].size();
    }
    require(bytes < std::size_t{1} << 30, "stop strings", bytes, "bytes are too many");
    return strings;
  }
  SLUICE_LAZY State marked(Automaton::State state) const { return 2 * state + (automaton_.ends(state) ? 1 : 0); }

  static constexpr std::size_t most = 16384;  // numbers in the table: as many as a processor's first cache holds
  static std::size_t index(char byte) { return static_cast<unsigned char>(byte); }

  Automaton automaton_;
  std::array<std::int32_t, 256> class_of_{};  // 0: bytes in no string
  std::int32_t classes_ = 1;
  std::vector<State> table_;  // [state][class]; none if it would be large
};

}  // namespace sluice::inline v0::detail
