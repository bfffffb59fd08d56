// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a compiled grammar one byte at a time.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/interner.hpp>
#include <sluice/grammar/detail/nodes.hpp>
#include <sluice/grammar/detail/stable_vector.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0::detail {

/// A state represents all parses of a text so far, as a number; states with equal numbers accept the same
/// continuations. A state is a set of nodes, each with a stack that says where its rule and those around it continue.
/// Stacks are shared and merged: a stack is a set of (node to return to, stack below), so ambiguous grammars have few
/// (Tomita 1985). Every state but `dead` can reach an end.
///
/// States and their transitions are cached on first use. Any number of threads may use it at once; a lock is held only
/// while a transition is found for the first time.
class Pushdown {
 public:
  using State = std::int32_t;
  using Pair = Interner::Pair;  // node, stack; or node to return to and the stack below
  static constexpr State dead = 0;
  static constexpr std::int32_t bottom = 0;   ///< the stack of the root: popping it completes the text
  static constexpr std::int32_t unknown = 1;  ///< a stack with unknown contents
  static constexpr std::int32_t complete_node = -1, left_node = -2, space_node = -3;

  static constexpr std::size_t most_ways = 20'000;

  /// \param memory     approximate limit for states, in bytes
  /// \param ambiguity  maximum number of stacks that one node has at once
  SLUICE_LAZY Pushdown(Automaton const& automaton, std::size_t memory, std::size_t ambiguity = most_ways)
      : a_(automaton), nodes_(automaton), memory_(memory), ambiguity_(ambiguity) {
    Pair const ends[] = {{complete_node, 0}, {left_node, 0}};
    stacks_.intern({ends, 1}), stacks_.intern({ends + 1, 1});
    add({});
    arrived_.assign(1, {nodes_.start(a_.root), bottom});
    initial_ = close();
    if (!a_.behind_space) return;
    std::vector<Pair> all{{space_node, 0}};
    for (auto const way : states_[initial_]) all.push_back(way);
    auto const behind = add(all);
    cell(behind, a_.class_of[' ']).store(initial_ + 1, std::memory_order_relaxed);
    initial_ = behind;
  }
  Pushdown(Pushdown const&) = delete;
  Pushdown& operator=(Pushdown const&) = delete;
  ~Pushdown() = default;

  State initial() const { return initial_; }
  SLUICE_LAZY State next(State state, std::uint8_t byte) {
    auto const c = a_.class_of[byte];
    auto const known = cell(state, c).load(std::memory_order_acquire);
    return known > 0 ? known - 1 : step(state, c);
  }
  SLUICE_LAZY State next(State state, std::string_view text) {
    for (auto const byte : text)
      if ((state = next(state, static_cast<std::uint8_t>(byte))) == dead) break;
    return state;
  }

  /// What continues in either of two states.
  SLUICE_LAZY State either(State a, State b) {
    if (a == b || b == dead) return a;
    if (a == dead) return b;
    auto const lock = std::scoped_lock(mutex_);
    auto const one = states_[a], other = states_[b];
    out_.assign(one.begin(), one.end());
    out_.insert(out_.end(), other.begin(), other.end());
    merge(out_);
    return add(out_);
  }

  /// The only byte with which the text can continue; -1: there are several.
  SLUICE_LAZY std::int32_t only_byte(State state) {
    std::int32_t only = -1;
    auto const classes = a_.first_of.size();
    for (std::size_t c = 0; c < classes; ++c) {
      auto const first = a_.first_of[c];
      if (next(state, first) == dead) continue;
      if (only >= 0 || (c + 1 < classes ? a_.first_of[c + 1] : 256) != first + 1) return -1;
      only = first;
    }
    return only;
  }

  /// Whether the text may end here.
  bool complete(State state) const { return (flags_[index(state)] & 1) != 0; }
  /// For states that began on an unknown stack: whether the text may have returned to that stack.
  bool left(State state) const { return (flags_[index(state)] & 2) != 0; }
  /// Whether a space here is not part of the text.
  bool spaced(State state) const { return (flags_[index(state)] & 4) != 0; }
  /// The nodes, each of which can read a byte, and their stacks; sorted. The entries for complete() and left() are
  /// skipped.
  SLUICE_LAZY std::span<Pair const> ways(State state) const {
    auto all = states_[state];
    while (!all.empty() && all.front().first < 0) all = all.subspan(1);
    return all;
  }
  std::span<Pair const> stack(std::int32_t stack) const { return stacks_[stack]; }

  /// The state at one node, on an unknown stack.
  SLUICE_LAZY State alone(std::int32_t node) { return at(node, unknown); }
  /// The state at one node, on this stack.
  SLUICE_LAZY State at(std::int32_t node, std::int32_t stack) {
    auto const lock = std::scoped_lock(mutex_);
    Pair const one[] = {{node, stack}};
    return add(one);
  }
  /// The state when the text on top of this stack has just ended.
  SLUICE_LAZY State popped(std::int32_t stack) {
    auto const lock = std::scoped_lock(mutex_);
    arrived_.assign(stacks_[stack].begin(), stacks_[stack].end());
    return close();
  }

  /// Calls look(nodes) while nobody adds any.
  template <class Look>
  auto with_nodes(Look const& look) const {
    auto const lock = std::scoped_lock(mutex_);
    return look(nodes_);
  }
  /// See Nodes.
  SLUICE_LAZY std::int32_t plain_run(std::int32_t node) {
    auto const lock = std::scoped_lock(mutex_);
    return nodes_.plain_run(node);
  }
  /// At least so many plain characters can be read here, whichever they are.
  SLUICE_LAZY std::int32_t plain_length(State state) {
    std::int32_t length = 0;
    auto const lock = std::scoped_lock(mutex_);
    for (auto const way : ways(state)) length = (std::max)(length, nodes_.plain_length(way.first));
    return length;
  }
  /// Makes the nodes that follow one of them, so that all will be made if this is called for each; returns their number.
  SLUICE_LAZY std::int32_t explore(std::int32_t node) {
    auto const lock = std::scoped_lock(mutex_);
    if (node == 0) (void)nodes_.start(a_.root);
    if (node >= nodes_.size()) return nodes_.size();
    for (std::size_t c = 0; c < a_.first_of.size(); ++c) (void)nodes_.next(node, static_cast<std::uint8_t>(c));
    for (std::size_t i = 0; i < nodes_.calls(node).size(); ++i) (void)nodes_.start(nodes_.calls(node)[i].rule);
    check_memory();
    return nodes_.size();
  }
  Automaton const& automaton() const { return a_; }
  SLUICE_LAZY std::int32_t states() const {
    auto const lock = std::scoped_lock(mutex_);
    return states_.size();
  }
  SLUICE_LAZY std::int32_t stacks() const {
    auto const lock = std::scoped_lock(mutex_);
    return stacks_.size();
  }
  SLUICE_LAZY std::size_t bytes() const {
    auto const lock = std::scoped_lock(mutex_);
    return all_bytes();
  }

 private:
  struct Called {
    std::int32_t rule;
    Pair to;  // or `tail` and the stack of the caller: to what that returns to
  };
  static constexpr std::int32_t tail = -4;
  /// Of the called rules, those that others call come first.
  auto later() const {
    return [this](Called const& a, Called const& b) { return a_.rank[index(a.rule)] > a_.rank[index(b.rule)]; };
  }

  using Cell = std::atomic<State>;  // a state + 1; 0: unknown
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  Cell& cell(State state, std::uint8_t c) const { return rows_[index(state) * index(a_.classes()) + c]; }
  SLUICE_LAZY std::size_t all_bytes() const {
    return states_.bytes() + stacks_.bytes() + rows_.size() * sizeof(Cell) + flags_.size() + nodes_.bytes();
  }

  SLUICE_LAZY State add(std::span<Pair const> ways) {
    auto const count = states_.size();
    if (flags_.size() <= index(count)) {  // first, so that a state has all that belongs to it
      rows_.resize((index(count) + 1) * index(a_.classes()));
      flags_.resize(index(count) + 1);
    }
    auto const id = states_.intern(ways);
    if (id == count) {
      std::uint8_t flags = 0;
      for (auto const& way : ways)
        if (way.first < 0) flags = static_cast<std::uint8_t>(flags | 1 << (-1 - way.first));
      flags_[index(id)] = flags;
      check_memory();
    }
    return id;
  }
  SLUICE_LAZY void check_memory() const {
    if (all_bytes() > memory_)
      throw std::length_error("sluice: the states of a grammar take more than StructureOptions::memory, " +
                              std::to_string(memory_) + " bytes");
  }

  SLUICE_LAZY State step(State state, std::uint8_t c) {
    auto const lock = std::scoped_lock(mutex_);
    if (auto const known = cell(state, c).load(std::memory_order_relaxed); known > 0) return known - 1;
    arrived_.clear();
    for (auto const [node, stack] : ways(state))
      if (auto const to = nodes_.next(node, c); to != Nodes::none) arrived_.push_back({to, stack});
    auto const next = arrived_.empty() ? dead : close();
    cell(state, c).store(next + 1, std::memory_order_release);
    return next;
  }

  /// The state for the nodes in arrived_: rules that end are popped, and called rules are entered.
  SLUICE_LAZY State close() {
    pop();
    out_.clear(), called_.clear();
    merge(arrived_);
    for (auto const [node, stack] : arrived_) {
      if (node < 0) out_.push_back({node, 0});
      else enter(node, stack);
    }
    // In this order all return nodes of a rule are known when it is entered.
    while (!called_.empty()) {
      auto const rule = called_.front().rule;
      returns_.clear(), tails_.clear();
      for (; !called_.empty() && called_.front().rule == rule; called_.pop_back()) {
        std::ranges::pop_heap(called_, later());
        auto const to = called_.back().to;
        if (to.first == tail) tails_.push_back(to.second);
        else returns_.push_back(to);
      }
      enter(nodes_.start(rule), stack_of_returns());
    }
    merge(out_);
    if (out_.size() > most_ways)
      throw std::length_error("sluice: a grammar is so ambiguous that a text can be read in more than " +
                              std::to_string(most_ways) + " ways");
    return add(out_);
  }

  /// The stack of what a rule returns to.
  SLUICE_LAZY std::int32_t stack_of_returns() {
    std::sort(tails_.begin(), tails_.end());
    tails_.erase(std::unique(tails_.begin(), tails_.end()), tails_.end());
    if (returns_.empty() && tails_.size() == 1) return tails_[0];
    for (auto const one : tails_) {
      auto const below = stacks_[one];
      returns_.insert(returns_.end(), below.begin(), below.end());
      if (returns_.size() > 2 * most_ways) (void)set(returns_);
    }
    return set(returns_);
  }

  /// Adds the return nodes of texts that may have ended.
  SLUICE_LAZY void pop() {
    seen_.clear();
    for (std::size_t i = 0; i < arrived_.size(); ++i) {
      auto const [node, stack] = arrived_[i];
      if (node < 0 || !nodes_.end(node)) continue;
      for (auto const to : stacks_[stack])
        if (fresh(to)) arrived_.push_back(to);
    }
    std::erase_if(arrived_, [&](Pair p) { return p.first >= 0 && nodes_.last(p.first); });
  }
  SLUICE_LAZY bool fresh(Pair to) {
    if (arrived_.size() < 64) return std::find(arrived_.begin(), arrived_.end(), to) == arrived_.end();
    if (seen_.empty()) seen_.insert(arrived_.begin(), arrived_.end());
    return seen_.insert(to).second;
  }

  /// Sorts, removes duplicates, and merges the stacks of each node.
  SLUICE_LAZY void merge(std::vector<Pair>& pairs) {
    if (pairs.size() < 2) return;
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    std::size_t count = 0;
    for (std::size_t i = 0; i < pairs.size();) {
      auto const node = pairs[i].first;
      auto last = i + 1;
      while (last < pairs.size() && pairs[last].first == node) ++last;
      check(last - i);
      auto stack = pairs[i].second;
      if (last - i > 1 && node >= 0) {
        joined_.clear();
        for (auto k = i; k < last; ++k) {
          auto const one = stacks_[pairs[k].second];
          joined_.insert(joined_.end(), one.begin(), one.end());
        }
        stack = set(joined_);
      }
      pairs[count++] = {node, stack};
      i = last;
    }
    pairs.resize(count);
  }
  SLUICE_LAZY std::int32_t set(std::vector<Pair>& pairs) {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    if (pairs.size() > most_ways)
      throw std::length_error("sluice: a grammar is so ambiguous that a rule returns to more than " +
                              std::to_string(most_ways) + " places");
    for (std::size_t first = 0, i = 0; pairs.size() > ambiguity_ && i < pairs.size(); ++i) {
      if (pairs[i].first != pairs[first].first) first = i;
      check(i - first + 1);
    }
    return stacks_.intern(pairs);
  }
  /// \param stacks  of one node
  SLUICE_LAZY void check(std::size_t stacks) const {
    if (stacks > ambiguity_)
      throw std::length_error("sluice: a grammar is so ambiguous that one place has more than " +
                              std::to_string(ambiguity_) + " stacks (StructureOptions::ambiguity)");
  }

  SLUICE_LAZY void enter(std::int32_t node, std::int32_t stack) {
    if (nodes_.reads(node)) out_.push_back({node, stack});
    for (auto const& edge : nodes_.calls(node)) {
      called_.push_back({edge.rule, nodes_.last(edge.to) ? Pair{tail, stack} : Pair{edge.to, stack}});
      std::ranges::push_heap(called_, later());
    }
  }

  Automaton const& a_;
  mutable std::mutex mutex_;  // guards all but what has been added
  Nodes nodes_;
  std::size_t memory_, ambiguity_;
  Interner states_, stacks_;
  StableVector<Cell> rows_;           // [state][class]
  StableVector<std::uint8_t> flags_;  // [state]: 1: complete; 2: left; 4: spaced
  State initial_ = dead;
  std::vector<Pair> arrived_, out_, returns_, joined_;
  std::set<Pair> seen_;
  std::vector<Called> called_;       // a heap
  std::vector<std::int32_t> tails_;  // stacks
};

}  // namespace sluice::inline v0::detail
