// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which tokens a grammar allows where.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/automaton.hpp>
#include <sluice/grammar/fewest_tokens.hpp>
#include <sluice/grammar/pushdown.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Calls visit(node of the trie, state) for all nodes below `from` that can be read in `state`.
template <class Visit>
void walk(TokenTrie const& trie, std::int32_t from, Pushdown& machine, Pushdown::State state,
          std::vector<Pushdown::State>& path, Visit const& visit) {
  auto const base = trie.depth(from);
  path.assign(static_cast<std::size_t>(trie.depth() - base) + 1, state);
  for (auto node = from + 1; node < trie.end(from);) {
    auto const depth = static_cast<std::size_t>(trie.depth(node) - base);
    auto const next = machine.next(path[depth - 1], trie.byte(node));
    if (next == Pushdown::dead) {
      node = trie.end(node);
      continue;
    }
    path[depth] = next;
    visit(node, next);
    ++node;
  }
}

/// What is the same wherever a node of the automaton stands in a text: the tokens that can be read without looking below on
/// the stack, worked out once (Dong et al. 2024, XGrammar); and where in the trie one gets to what lies below.
struct NodeTokens {
  TokenSet many;                      // if they are many
  std::vector<Token> few;             // else
  std::vector<std::int32_t> leaving;  // nodes of the trie, with children, at which the rule's text may have ended
  FewestTokens::Count worst = 0;      // over all these tokens: tokens until the rule's text ends
};

/// The tokens of a grammar's nodes, as they come up.
template <class = void>
class LazyNodeTokenTable {
 public:
  explicit LazyNodeTokenTable(std::int32_t nodes) : all_(static_cast<std::size_t>(nodes)) {}

  NodeTokens const& of(std::int32_t node, TokenTrie const& trie, Pushdown& machine, Completion& completion) {
    auto& known = all_[static_cast<std::size_t>(node)];
    if (known != nullptr) return *known;
    auto made = std::make_unique<NodeTokens>();
    std::vector<Pushdown::State> path;
    walk(trie, 0, machine, machine.alone(node), path, [&](std::int32_t at, Pushdown::State state) {
      auto const tokens = trie.tokens(at);
      if (!tokens.empty()) {
        made->few.insert(made->few.end(), tokens.begin(), tokens.end());
        made->worst = std::max(made->worst, completion.count(state));
      }
      if (trie.end(at) > at + 1 && machine.left(state)) made->leaving.push_back(at);
    });
    auto const size = trie.vocabulary().size;
    if (made->few.size() > static_cast<std::size_t>(size) / 32) {
      made->many = TokenSet(size);
      made->many.insert(made->few);
      made->few = {};
    }
    known = std::move(made);
    return *known;
  }

 private:
  std::vector<std::unique_ptr<NodeTokens const>> all_;
};
using NodeTokenTable = LazyNodeTokenTable<>;

/// One machine with what has been found out about its states. Not for several threads at once.
template <class = void>
class LazyTokenMasks {
 public:
  using State = Pushdown::State;
  using Mask = std::shared_ptr<TokenSet const>;
  static constexpr State ended = -1;  ///< behind the end

  LazyTokenMasks(Automaton const& automaton, FewestTokens const& fewest, TokenTrie trie, NodeTokenTable& nodes,
                 std::size_t memory, std::size_t masks)
      : trie_(std::move(trie)),
        machine_(automaton, memory),
        completion_(fewest, trie_, machine_),
        nodes_(nodes),
        covers_(fewest.covers()),
        most_masks_(masks) {}

  LazyTokenMasks(LazyTokenMasks const&) = delete;
  LazyTokenMasks& operator=(LazyTokenMasks const&) = delete;

  State initial() const { return machine_.initial(); }
  Pushdown& machine() { return machine_; }
  Completion& completion() { return completion_; }

  /// \param left  tokens that may follow, the end included; the set holds those that can still be completed
  Mask allowed(State state, std::int32_t left) {
    if (state == ended) return none();
    auto const& all = plain(state);
    if (all.worst < left - 1 || (left == unlimited && covers_)) return all.set;
    auto const key = std::pair(state, left);
    if (auto const it = limited_.find(key); it != limited_.end()) return it->second;
    if (limited_.size() >= most_masks_) limited_.clear();
    return limited_[key] = limit(state, left);
  }
  static constexpr std::int32_t unlimited = std::numeric_limits<std::int32_t>::max();

  std::size_t bytes() const { return machine_.bytes(); }

 private:
  struct Plain {
    Mask set;
    FewestTokens::Count worst = 0;  // what any of its tokens leaves to do, at most
  };
  struct Hash {
    std::size_t operator()(std::pair<State, std::int32_t> key) const {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(key.first) * 0x9E3779B97F4A7C15u ^
                                      static_cast<std::uint64_t>(key.second) * 0xC2B2AE3D27D4EB4Fu);
    }
  };

  Mask none() const {
    static auto const empty = std::make_shared<TokenSet const>();
    return empty;
  }
  void insert_end(State state, TokenSet& set) const {
    if (machine_.complete(state)) set.insert(std::span<Token const>(trie_.vocabulary().eos));
  }

  Plain const& plain(State state) {
    if (auto const it = plain_.find(state); it != plain_.end()) return it->second;
    if (plain_.size() >= most_masks_) plain_.clear();
    auto set = std::make_shared<TokenSet>(trie_.vocabulary().size);
    FewestTokens::Count worst = 0;
    ways_.assign(machine_.ways(state).begin(), machine_.ways(state).end());
    for (auto const [node, stack] : ways_) {
      auto const& tokens = nodes_.of(node, trie_, machine_, completion_);
      set->insert(tokens.many);
      set->insert(tokens.few);
      worst = std::max(worst, add(tokens.worst, completion_.rest(stack)));
      if (tokens.leaving.empty()) continue;
      auto const below = machine_.popped(stack);
      for (auto const from : tokens.leaving)
        walk(trie_, from, machine_, below, path_, [&](std::int32_t at, State next) {
          if (trie_.tokens(at).empty()) return;
          set->insert(trie_.tokens(at));
          worst = std::max(worst, completion_.count(next));
        });
    }
    insert_end(state, *set);
    return plain_[state] = {std::move(set), worst};
  }
  static FewestTokens::Count add(FewestTokens::Count a, FewestTokens::Count b) {
    return a >= Completion::never || b >= Completion::never ? Completion::never : a + b;
  }

  Mask limit(State state, std::int32_t left) {
    auto set = std::make_shared<TokenSet>(trie_.vocabulary().size);
    walk(trie_, 0, machine_, state, path_, [&](std::int32_t at, State next) {
      if (!trie_.tokens(at).empty() && completion_.fits(next, left - 2)) set->insert(trie_.tokens(at));
    });
    if (left > 0) insert_end(state, *set);
    return set;
  }

  TokenTrie trie_;
  Pushdown machine_;
  Completion completion_;
  NodeTokenTable& nodes_;
  bool covers_;
  std::size_t most_masks_;
  std::unordered_map<State, Plain> plain_;
  std::unordered_map<std::pair<State, std::int32_t>, Mask, Hash> limited_;
  std::vector<State> path_;
  std::vector<Pushdown::Pair> ways_;
};
using TokenMasks = LazyTokenMasks<>;

}  // namespace sluice::inline v0::detail
