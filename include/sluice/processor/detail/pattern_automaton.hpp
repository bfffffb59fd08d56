// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds patterns in a stream of symbols.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The automaton of Aho and Corasick (1975) over patterns of any symbols. A state is the longest prefix of any pattern that
/// is a suffix of the symbols so far. Only what the patterns have is stored, 12 bytes and a symbol for each of their
/// symbols at most: no row has an entry for each symbol that may come.
///
/// States are numbered by depth, and those of one depth in the order of their symbols. So the children of a state are
/// neighbours, a state's fallback has a lower number, and a depth is found by search.
///
/// Built in O(L log n) for n patterns of L symbols together. next() follows at most as many fallbacks as the state is
/// deep; over a whole text one for each symbol at most.
/// \tparam Pattern  with begin(), size() and operator[]: a string, or a vector of tokens
template <class Pattern>
class PatternAutomaton {
 public:
  using State = std::int32_t;
  using Symbol = typename Pattern::value_type;
  static constexpr State root = 0, none = -1;

  /// \param patterns  none empty; fewer than 2^31 symbols together
  explicit PatternAutomaton(std::span<Pattern const> patterns) : sorted_(patterns.size()) {
    std::iota(sorted_.begin(), sorted_.end(), std::int32_t{0});
    std::ranges::sort(sorted_, [&](std::int32_t a, std::int32_t b) {
      auto const &one = patterns[at(a)], &other = patterns[at(b)];
      auto const [i, j] = std::ranges::mismatch(one, other);
      if (i != one.end() && j != other.end()) return *i < *j;
      return one.size() != other.size() ? one.size() < other.size() : a < b;
    });
    grow(patterns);
    link();
  }

  State next(State state, Symbol symbol) const {
    for (;; state = fallback(state)) {
      if (auto const to = child(state, symbol); to != none) return to;
      if (state == root) return root;
    }
  }
  std::int32_t states() const { return static_cast<std::int32_t>(symbols_.size()); }  ///< 0 .. states() - 1
  State fallback(State state) const { return fallback_[at(state)]; }                  ///< the next longest prefix
  /// Symbols matched. O(log of the longest pattern).
  std::int32_t depth(State state) const {
    return static_cast<std::int32_t>(std::ranges::upper_bound(levels_, state) - levels_.begin()) - 1;
  }
  /// Whether any pattern ends here.
  bool ends(State state) const { return ends_[at(state)]; }
  /// Patterns that end here with all depth() symbols, ascending. O(log n).
  std::span<std::int32_t const> patterns(State state) const {
    auto const found = std::ranges::lower_bound(whole_, state, {}, &Whole::state);
    if (found == whole_.end() || found->state != state) return {};
    return std::span(sorted_).subspan(at(found->first), at(found->last - found->first));
  }
  /// The symbols that extend the match, ascending; the first leads to the state first_child().
  std::span<Symbol const> children(State state) const {
    return std::span(symbols_).subspan(at(first_child(state)), at(first_child(state + 1) - first_child(state)));
  }
  State first_child(State state) const { return children_[at(state)]; }
  /// Of memory, without this object itself.
  std::size_t bytes() const {
    return sorted_.capacity() * sizeof(std::int32_t) + whole_.capacity() * sizeof(Whole) +
           (levels_.capacity() + children_.capacity() + fallback_.capacity()) * sizeof(State) +
           symbols_.capacity() * sizeof(Symbol) + ends_.capacity() / 8;
  }

 private:
  /// A state that is a pattern, or several equal ones.
  struct Whole {
    State state;
    std::int32_t first, last;  // in sorted_
  };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  State child(State state, Symbol symbol) const {
    auto const symbols = children(state);
    auto const found = std::ranges::lower_bound(symbols, symbol);
    return found != symbols.end() && *found == symbol ? first_child(state) + static_cast<State>(found - symbols.begin())
                                                      : none;
  }

  /// How many states there are: each pattern adds what it does not share with the one before it.
  std::size_t count(std::span<Pattern const> patterns) const {
    std::size_t count = 1;
    for (std::size_t i = 0; i < sorted_.size(); ++i) {
      auto const& one = patterns[at(sorted_[i])];
      auto const& before = patterns[at(sorted_[i == 0 ? 0 : i - 1])];
      auto const shared = i == 0 ? 0 : std::ranges::mismatch(one, before).in1 - one.begin();
      count += one.size() - static_cast<std::size_t>(shared);
    }
    return count;
  }

  /// All states of one depth after the other; each is a range of patterns, in order, that begin alike.
  void grow(std::span<Pattern const> patterns) {
    auto const states = count(patterns);
    symbols_.reserve(states), children_.reserve(states + 1), fallback_.resize(states), ends_.resize(states);
    using Range = std::pair<std::int32_t, std::int32_t>;
    std::vector<Range> level{{0, static_cast<std::int32_t>(sorted_.size())}}, next;
    symbols_.push_back({}), levels_.push_back(root);
    for (std::size_t depth = 0; !level.empty(); ++depth) {
      auto state = levels_.back();
      for (auto [i, end] : level) {
        auto const pattern = [&](std::int32_t p) -> Pattern const& { return patterns[at(sorted_[at(p)])]; };
        children_.push_back(states_so_far());
        auto const first = i;
        while (i < end && pattern(i).size() == depth) ++i;
        if (i > first) whole_.push_back({state, first, i});
        while (i < end) {
          auto const symbol = pattern(i)[depth];
          auto const begin = i;
          while (i < end && pattern(i)[depth] == symbol) ++i;
          symbols_.push_back(symbol), next.emplace_back(begin, i);
        }
        ++state;
      }
      if (!next.empty()) levels_.push_back(state);
      level.swap(next), next.clear();
    }
    children_.push_back(states_so_far());
    levels_.shrink_to_fit(), whole_.shrink_to_fit();
  }
  State states_so_far() const { return static_cast<State>(symbols_.size()); }

  /// A state's fallback is the child of its parent's fallback, which is less deep.
  void link() {
    for (auto const& one : whole_) ends_[at(one.state)] = true;
    for (State state = root; state < states(); ++state) {
      if (ends_[at(fallback(state))]) ends_[at(state)] = true;
      for (auto to = first_child(state); to < first_child(state + 1); ++to)
        fallback_[at(to)] = state == root ? root : next(fallback(state), symbols_[at(to)]);
    }
  }

  std::vector<std::int32_t> sorted_;  // patterns
  std::vector<Whole> whole_;          // ascending
  std::vector<State> levels_;         // [depth]: the first state
  std::vector<Symbol> symbols_;       // [state]: the last one of the prefix
  std::vector<State> children_;       // [state]: the first child; one more at the end
  std::vector<State> fallback_;       // [state]
  std::vector<bool> ends_;            // [state]
};

}  // namespace sluice::inline v0::detail
