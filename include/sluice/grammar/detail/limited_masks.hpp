// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a grammar allows where only so many may follow.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/node_token_maker.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/shared_cache.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/token_walks.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A group of tokens, as a bit set if there are many.
struct TokenGroup {
  TokenSet many{};
  std::vector<Token> few{};

  void add(std::span<Token const> tokens) {
    if (tokens.size() == 1) few.push_back(tokens[0]);
    else few.insert(few.end(), tokens.begin(), tokens.end());
  }
  void finish(std::int32_t vocabulary) {
    if (few.size() <= static_cast<std::size_t>(vocabulary) / 128) return;
    many = TokenSet(vocabulary);
    many.insert(few);
    few = {};
  }
  void insert_into(TokenSet& set) const { set.insert(many), set.insert(few); }
};

/// What is known about counts of tokens for all states of a grammar. Made when a limit first asks for it.
class SharedCounts {
 public:
  SharedCounts(Automaton const& automaton, TokenNodes trie) : automaton_(automaton), trie_(std::move(trie)) {}
  SLUICE_LAZY FewestTokens const& get() {
    std::call_once(once_, [&] { fewest_.emplace(automaton_, trie_); });
    return *fewest_;
  }
  /// Whether any text can be completed byte by byte with tokens. Needs the counts only if the vocabulary lacks bytes
  /// without which some step cannot be made.
  SLUICE_LAZY bool covers() {
    std::call_once(glanced_, [&] { spelt_ = trie_.inner() > 64 && spelt(automaton_, trie_); });
    return spelt_ || get().covers();
  }

 private:
  /// Whether each step of the automaton reads at least one byte that is a token.
  SLUICE_LAZY static bool spelt(Automaton const& automaton, TokenNodes const& trie) {
    if (trie.spells_all()) return true;
    std::array<std::int32_t, 257> before{};  // the number of such bytes
    for (std::size_t byte = 0; byte < 256; ++byte)
      before[byte + 1] = before[byte] + (trie.single(static_cast<std::uint8_t>(byte)) ? 1 : 0);
    auto const has = [&](std::size_t first, std::size_t last) { return before[first] < before[last + 1]; };
    return (!automaton.behind_space || has(' ', ' ')) &&
           std::ranges::all_of(
               automaton.places,
               [&](auto const& place) { return place.kind != Automaton::Place::byte || has(place.low, place.high); }) &&
           std::ranges::all_of(automaton.edges, [&](auto const& edge) { return has(edge.first, edge.last); });
  }

  Automaton const& automaton_;
  TokenNodes trie_;
  std::once_flag glanced_, once_;
  bool spelt_ = false;
  std::optional<FewestTokens> fewest_;
};

/// Leaves out tokens that cannot be completed within a number of tokens. Thread-safe.
class LimitedMasks {
 public:
  using State = Pushdown::State;
  using Count = FewestTokens::Count;

  /// \param most  results to keep of each kind, in each part of a cache
  LimitedMasks(TokenNodes const& trie, Pushdown& machine, SharedCounts& counts, TokenWalks& walks,
               NodeTokenMaker& nodes, std::size_t most)
      : trie_(trie),
        machine_(machine),
        counts_(counts),
        walks_(walks),
        nodes_(nodes),
        needs_(most),
        groups_(most),
        worst_(most) {}

  /// The most tokens that may be needed after any of a state's tokens.
  SLUICE_LAZY Count worst_after(State state) {
    Count worst = 0;
    auto before = Pushdown::dead;
    auto const take = [&](std::span<Token const>, State next) {
      if (next != before) worst = (std::max)(worst, completion().count(next)), before = next;
    };
    if (machine_.spaced(state)) {
      walk(trie_, 0, machine_, state, [&](std::int32_t at, State next) {
        if (auto const tokens = trie_.tokens(at); !tokens.empty()) take(tokens, next);
        return true;
      });
      return worst;
    }
    for (auto const way : machine_.ways(state)) {
      auto const tokens = nodes_.of(way.first);
      auto const [node, own] = worst_.find(tokens, [&] { return std::pair(way.first, worst_within(way.first)); });
      auto const most = counts_.get().most();
      worst = (std::max)(worst, add(node == way.first ? own : add(own, most), completion().rest(way.second)));
      walks_.each_rest(way, *tokens, take);
    }
    return worst;
  }

  /// A state's tokens of which no more than this number may follow, the end included.
  SLUICE_LAZY TokenSet tokens(State state, std::int32_t left) {
    auto set = TokenSet(trie_.vocabulary().size);
    auto const needs = needs_.find(state, [&] { return make_needs(state); });
    for (auto const& [needed, tokens] : needs->own)
      if (needed <= left - 2) tokens.insert_into(set);
    for (auto const& [needed, tokens] : needs->shared)
      if (needed <= left - 2) tokens->insert_into(set);
    return set;
  }

  SLUICE_LAZY Completion& completion() {
    std::call_once(once_, [&] {
      completion_.emplace(counts_.get(), trie_, machine_);
      made_.store(true, std::memory_order_release);
    });
    return *completion_;
  }
  SLUICE_LAZY std::size_t bytes() const { return made_.load(std::memory_order_acquire) ? completion_->bytes() : 0; }

 private:
  /// A node's tokens by the states to which they lead from the node itself.
  struct NodeGroups {
    struct Group {
      Token example;
      TokenGroup tokens;  // none of them is below a node of the trie in `top`
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> top;  // nodes of the trie, with children, at which the rule's text may first have ended
  };
  /// A state's tokens, by how many more tokens are needed after them.
  struct Needs {
    std::shared_ptr<NodeGroups const> node = nullptr;
    std::vector<std::pair<Count, TokenGroup>> own;
    std::vector<std::pair<Count, TokenGroup const*>> shared;  // owned by the node
  };

  /// The same for a node, to the end of its rule.
  SLUICE_LAZY Count worst_within(std::int32_t node) {
    Count worst = 0;
    auto before = Pushdown::dead;
    auto const take = [&](std::span<Token const>, State next) {
      if (next != before) worst = (std::max)(worst, completion().count(next)), before = next;
    };
    auto const visit = [&](TrieNodes const& trie, std::int32_t at, State next) {
      if (auto const tokens = trie.tokens(at); !tokens.empty()) take(tokens, next);
      return trie.depth(at) < NodeTokens::most_depth;
    };
    auto const alone = machine_.alone(node);
    auto const any_text = [&](std::int32_t, std::int32_t) { worst = (std::max)(worst, counts_.get().most()); };
    if (machine_.plain_run(node) > 0) {
      any_text(0, PlainText::unlimited);
      walks_.walk_in(trie_.plain_text().rest(), 0, alone, visit);
    } else {
      walks_.walk_fast(alone, visit, any_text, [&](std::span<Token const> tokens, State state, bool stays) {
        if (stays) take(tokens, state);
        return stays;
      });
    }
    return worst;
  }
  static Count add(Count a, Count b) {
    return a >= Completion::never || b >= Completion::never ? Completion::never : a + b;
  }

  SLUICE_LAZY std::shared_ptr<Needs const> make_needs(State state) {
    auto const needs = std::make_shared<Needs>();
    auto& out = *needs;
    std::map<Count, TokenGroup> found;
    auto before = Pushdown::dead;  // the last state examined, and its count
    TokenGroup* group = nullptr;
    auto const take = [&](std::int32_t at, State next) {
      auto const tokens = trie_.tokens(at);
      if (tokens.empty()) return true;
      if (next != before) {
        auto const needed = completion().fewest(next);
        before = next, group = needed < Completion::never ? &found[needed] : nullptr;
      }
      if (group != nullptr) group->add(tokens);
      return true;
    };
    auto const ways = machine_.ways(state);
    if (ways.size() == 1 && !machine_.spaced(state)) {  // one token of a group decides for all
      auto const node = ways[0].first;
      auto const own = out.node = groups_.find(node, [&] { return make_groups(node); });
      for (auto const& one : own->groups) {
        auto const need = completion().fewest(machine_.next(state, trie_.bytes(one.example)));
        if (need < Completion::never) out.shared.emplace_back(need, &one.tokens);
      }
      for (auto const from : own->top)
        if (auto const next = machine_.next(state, trie_.text(from)); next != Pushdown::dead)
          walk(trie_, from, machine_, next, take);
    } else {
      walk(trie_, 0, machine_, state, take);
    }
    for (auto& [need, tokens] : found) {
      tokens.finish(trie_.vocabulary().size);
      out.own.emplace_back(need, std::move(tokens));
    }
    return needs;
  }
  SLUICE_LAZY std::shared_ptr<NodeGroups const> make_groups(std::int32_t node) {
    auto out = std::make_shared<NodeGroups>();
    std::unordered_map<State, std::size_t> group_of;
    std::size_t group = 0;
    auto before = Pushdown::dead;  // the state of the current group
    walk(trie_, 0, machine_, machine_.alone(node), [&](std::int32_t at, State state) {
      if (auto const tokens = trie_.tokens(at); !tokens.empty()) {
        if (state != before) {
          auto const [it, fresh] = group_of.try_emplace(state, out->groups.size());
          if (fresh) out->groups.push_back({tokens[0], {}});
          before = state, group = it->second;
        }
        out->groups[group].tokens.add(tokens);
      }
      if (trie_.end(at) == at + 1) return false;
      if (!machine_.left(state)) return true;
      out->top.push_back(at);
      return false;
    });
    for (auto& one : out->groups) one.tokens.finish(trie_.vocabulary().size);
    return out;
  }

  TokenNodes const& trie_;
  Pushdown& machine_;
  SharedCounts& counts_;
  TokenWalks& walks_;
  NodeTokenMaker& nodes_;
  std::once_flag once_;
  std::atomic<bool> made_ = false;
  std::optional<Completion> completion_;
  SharedCache<State, std::shared_ptr<Needs const>> needs_;
  SharedCache<std::int32_t, std::shared_ptr<NodeGroups const>> groups_;
  SharedCache<std::shared_ptr<NodeTokens const>, std::pair<std::int32_t, Count>> worst_;  // of a node of those alike
};

}  // namespace sluice::inline v0::detail
