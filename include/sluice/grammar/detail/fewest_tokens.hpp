// SPDX-License-Identifier: Apache-2.0
/// \file
/// The minimum number of tokens that a text needs to be complete.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/spelling.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// For each node and each two places of a spelling: the minimum number of tokens that end within a rest of the rule's
/// text that leads from the first place to the second. This is Knuth's (1977) algorithm for the shortest text of a
/// grammar, on the product of grammar and spelling (Bar-Hillel, Perles and Shamir 1961). Exact if the spelling has all
/// tokens; otherwise for its tokens only.
class FewestTokens {
 public:
  using Count = std::int32_t;
  static constexpr Count never = (std::numeric_limits<Count>::max)() / 4;

  template <class = void>
  FewestTokens(Automaton const& automaton, TokenTrie const& trie)
      : a_(automaton), spelling_(trie, most_places(automaton), needed(automaton)) {
    places_ = static_cast<std::size_t>(spelling_.places());
    solve();
    most_ = places_ == 1 && !counts_.empty() ? *std::max_element(counts_.begin(), counts_.end()) : never;
  }

  Spelling const& spelling() const { return spelling_; }
  std::size_t places() const { return places_; }
  /// Whether every byte of the grammar is a token: counts are then in bytes, and a completion always exists.
  template <class = void>
  bool covers() const {
    return spelling_.covers() && places_ == 1;
  }
  /// The largest count from any node to the end of its rule, if the spelling has only one place; otherwise `never`.
  Count most() const { return most_; }
  Count operator()(std::int32_t node, std::size_t from, std::size_t to) const {
    return counts_[(at(node) * places_ + from) * places_ + to];
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  template <class = void>
  static std::int32_t most_places(Automaton const& a) {
    auto const nodes = static_cast<double>(a.nodes() + 1);
    return std::clamp(static_cast<std::int32_t>(std::sqrt(2e6 / nodes)), 1, 64);
  }

  template <class = void>
  static std::array<bool, 256> needed(Automaton const& a) {
    std::array<bool, 256> out{};
    for (auto const& edge : a.byte_edges)
      for (int byte = edge.first; byte <= edge.last; ++byte) out[static_cast<std::size_t>(byte)] = true;
    return out;
  }

  template <class = void>
  void solve() {
    auto const nodes = at(a_.nodes());
    counts_.assign(nodes * places_ * places_, never);
    std::vector<std::vector<std::int32_t>> users(nodes);
    std::vector<std::vector<std::int32_t>> callers(a_.start.size());
    for (std::int32_t n = 0; n < a_.nodes(); ++n) {
      for (auto const& edge : a_.bytes(n)) users[at(edge.to)].push_back(n);
      for (auto const& edge : a_.calls(n)) users[at(edge.to)].push_back(n), callers[at(edge.rule)].push_back(n);
      if (a_.end(n))
        for (std::size_t q = 0; q < places_; ++q) counts_[(at(n) * places_ + q) * places_ + q] = 0;
    }
    for (std::size_t rule = 0; rule < a_.start.size(); ++rule)
      if (a_.start[rule] >= 0) {
        auto& of = users[at(a_.start[rule])];
        of.insert(of.end(), callers[rule].begin(), callers[rule].end());
      }
    std::deque<std::int32_t> open;
    std::vector<std::uint8_t> waits(nodes, 1);
    for (auto n = a_.nodes(); n-- > 0;) open.push_back(n);
    while (!open.empty()) {
      auto const node = open.front();
      open.pop_front(), waits[at(node)] = 0;
      if (!relax(node)) continue;
      for (auto const user : users[at(node)])
        if (waits[at(user)] == 0) waits[at(user)] = 1, open.push_back(user);
    }
  }

  template <class = void>
  bool relax(std::int32_t node) {
    auto changed = false;
    auto* const own = counts_.data() + at(node) * places_ * places_;
    auto const lower = [&](Count& count, Count to) {
      if (to < count) count = to, changed = true;
    };
    for (auto const& edge : a_.bytes(node)) {
      auto const& steps = this->steps(edge.first, edge.last);
      for (std::size_t q = 0; q < places_; ++q)
        for (auto const [to, cost] : steps[q])
          for (std::size_t r = 0; r < places_; ++r) lower(own[q * places_ + r], cost + (*this)(edge.to, at(to), r));
    }
    for (auto const& edge : a_.calls(node))
      for (std::size_t q = 0; q < places_; ++q)
        for (std::size_t m = 0; m < places_; ++m)
          if (auto const text = (*this)(a_.start[at(edge.rule)], q, m); text < never)
            for (std::size_t r = 0; r < places_; ++r) lower(own[q * places_ + r], text + (*this)(edge.to, m, r));
    for (std::size_t i = 0; i < places_ * places_; ++i) own[i] = (std::min)(own[i], never);
    return changed;
  }
  template <class = void>
  std::vector<std::vector<Spelling::Step>> const& steps(std::uint8_t first, std::uint8_t last) {
    auto const [it, fresh] = steps_.try_emplace({first, last});
    if (fresh)
      for (std::int32_t q = 0; q < spelling_.places(); ++q) it->second.push_back(spelling_.steps(q, first, last));
    return it->second;
  }

  Automaton const& a_;
  Spelling spelling_;
  std::size_t places_ = 1;
  Count most_ = never;
  std::vector<Count> counts_;  // [node][from][to]
  std::map<std::pair<std::uint8_t, std::uint8_t>, std::vector<std::vector<Spelling::Step>>> steps_;
};

/// The same for whole states of a pushdown machine.
class Completion {
 public:
  using Count = FewestTokens::Count;
  using State = Pushdown::State;
  static constexpr Count never = FewestTokens::never;

  template <class = void>
  Completion(FewestTokens const& fewest, TokenTrie trie, Pushdown& machine)
      : fewest_(fewest), trie_(std::move(trie)), machine_(machine) {}

  /// The number of the spelling's tokens in which it can be completed (without eos); 0: it is complete.
  template <class = void>
  Count count(State state) {
    if (at(state) >= counts_.size()) counts_.resize(at(machine_.states()), unknown);
    if (counts_[at(state)] == unknown) counts_[at(state)] = counted(state);
    return counts_[at(state)];
  }
  /// The number of tokens, out of the whole vocabulary, in which it can be completed. If it is n for a state, it is n -
  /// 1 after some token: an output that continues only while enough tokens are left will be completed. Exact if the
  /// spelling has all tokens. Otherwise all tokens are tried along the spelling's own shortest text (if that is at most
  /// some thousand tokens long), and a shorter completion along another text may be missed.
  template <class = void>
  Count fewest(State state) {
    auto const most = count(state);
    if (most == 0 || most >= never || fewest_.spelling().all() || most / (std::max)(trie_.depth(), 1) > 4096)
      return most;
    return along(state);
  }
  /// The count for the rest of a stack, starting at a token boundary.
  template <class = void>
  Count rest(std::int32_t stack) {
    return rests(stack)[0];
  }

  /// Whether a state can be completed in at most this many tokens.
  template <class = void>
  bool fits(State state, Count tokens) {
    if (state == Pushdown::dead || tokens < 0) return false;
    return count(state) <= tokens || fewest(state) <= tokens;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  static constexpr Count unknown = -1;

  template <class = void>
  Count counted(State state) {
    if (state == Pushdown::dead) return never;
    if (machine_.complete(state) || machine_.left(state)) return 0;
    Count best = never;
    for (auto const [node, stack] : machine_.ways(state)) {
      auto const* const rest = rests(stack);
      for (std::size_t q = 0; q < fewest_.places(); ++q) best = (std::min)(best, fewest_(node, 0, q) + rest[q]);
    }
    return (std::min)(best, never);
  }

  template <class = void>
  Count const* rests(std::int32_t stack) {
    auto const places = fewest_.places();
    while (rests_.size() / places < at(machine_.stacks())) {  // the entries below a stack were added before it
      auto const id = static_cast<std::int32_t>(rests_.size() / places);
      rests_.resize(rests_.size() + places, never);
      auto* const own = rests_.data() + at(id) * places;
      for (auto const [node, below] : machine_.stack(id)) {
        if (node < 0) {
          own[0] = 0;
          continue;
        }
        auto const* const under = rests_.data() + at(below) * places;
        for (std::size_t q = 0; q < places; ++q)
          for (std::size_t r = 0; r < places; ++r) own[q] = (std::min)(own[q], fewest_(node, q, r) + under[r]);
      }
    }
    return rests_.data() + at(stack) * places;
  }

  struct Next {
    State state = -1;       // -1: unknown
    std::int32_t node = 0;  // the token's node in the trie
  };

  /// The first of the spelling's tokens of a shortest completion: the same for each state, regardless of the tokens
  /// before it.
  template <class = void>
  Next follow(State state) {
    if (at(state) >= follow_.size()) follow_.resize(at(machine_.states()));
    if (follow_[at(state)].state >= 0) return follow_[at(state)];
    auto const wanted = count(state) - 1;
    std::vector<State> path{state};
    Next found;
    for (std::int32_t node = 1; node < trie_.size() && found.state < 0;) {
      auto const depth = at(trie_.depth(node));
      auto const next = machine_.next(path[depth - 1], trie_.byte(node));
      if (next == Pushdown::dead || !(fewest_.spelling().chosen(node) || fewest_.spelling().open(node))) {
        node = trie_.end(node);
        continue;
      }
      if (fewest_.spelling().chosen(node) && count(next) == wanted) found = {next, node};
      path.resize(depth), path.push_back(next);
      node = fewest_.spelling().open(node) ? node + 1 : trie_.end(node);
    }
    if (at(state) >= follow_.size()) follow_.resize(at(machine_.states()));
    return follow_[at(state)] = found;
  }

  /// The minimum number of tokens that spell the text along follow(), ending where its tokens end.
  template <class = void>
  Count along(State state) {
    std::vector<State> path;
    for (auto s = state; known(s) == unknown; s = follow(s).state) path.push_back(s);
    for (auto i = path.size(); i-- > 0;) {
      Count best = never;
      std::int32_t node = 0;
      for (auto s = path[i]; node >= 0 && count(s) > 0;) {
        auto const next = follow(s);
        std::int32_t part = next.node;
        std::vector<std::uint8_t> bytes;
        spell(part, bytes);
        for (auto const byte : bytes)
          if (node >= 0) node = trie_.child(node, byte);
        s = next.state;
        if (node >= 0 && !trie_.tokens(node).empty()) best = (std::min)(best, known(s) + 1);
      }
      if (at(path[i]) >= along_.size()) along_.resize(at(machine_.states()), unknown);
      along_[at(path[i])] = best;
    }
    return known(state);
  }
  template <class = void>
  Count known(State state) {
    if (count(state) == 0) return 0;
    if (at(state) >= along_.size()) along_.resize(at(machine_.states()), unknown);
    return along_[at(state)];
  }
  template <class = void>
  void spell(std::int32_t node, std::vector<std::uint8_t>& bytes) const {
    for (std::int32_t above = 0; above != node;) {
      auto child = above + 1;
      while (trie_.end(child) <= node) child = trie_.end(child);
      bytes.push_back(trie_.byte(child)), above = child;
    }
  }

  FewestTokens const& fewest_;
  TokenTrie trie_;
  Pushdown& machine_;
  std::vector<Count> counts_;  // [state]
  std::vector<Count> rests_;   // [stack][place]
  std::vector<Next> follow_;   // [state]
  std::vector<Count> along_;   // [state]
};

}  // namespace sluice::inline v0::detail
