// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a node of an automaton can read, whatever is below it on the stack.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/alike_nodes.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
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

/// Calls visit(node of the trie, state) for all nodes below `from` that can be read in `state`. Continues below a node
/// only if visit returns true for it.
template <class Visit>
void walk(TokenTrie const& trie, std::int32_t from, Pushdown& machine, Pushdown::State state,
          std::vector<Pushdown::State>& path, Visit const& visit) {
  if (trie.end(from) == from + 1) return;
  auto const base = trie.depth(from);
  if (path.size() <= static_cast<std::size_t>(trie.depth() - base))
    path.resize(static_cast<std::size_t>(trie.depth() - base) + 1);
  path[0] = state;
  for (auto node = from + 1; node < trie.end(from);) {
    auto const depth = static_cast<std::size_t>(trie.depth(node) - base);
    auto const next = machine.next(path[depth - 1], trie.byte(node));
    if (next == Pushdown::dead) {
      node = trie.end(node);
      continue;
    }
    path[depth] = next;
    node = visit(node, next) ? node + 1 : trie.end(node);
  }
}

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

/// The context-independent part of a node's mask (Dong et al. 2024, XGrammar), shared by nodes that are alike.
struct NodeTokens {
  struct Group {
    Token example;      // all tokens of the group lead to the same state, from the node itself
    TokenGroup tokens;  // none of them is below a node of the trie in `leaving`
  };
  std::int32_t node = 0;  // the node for which it was computed
  TokenSet all;           // of groups and `below`
  std::vector<Group> groups;
  TokenGroup below;                   // tokens below a node in `leaving` that can be read within the rule
  std::vector<std::int32_t> leaving;  // nodes of the trie, with children, at which the rule's text may have ended
  std::vector<std::int32_t> top;      // those of them that are not below another one
  std::vector<std::int32_t> deep;     // nodes of the trie with children, at a depth where the nodes need no longer be
                                      // alike
  FewestTokens::Count worst = 0;      // the most tokens until the rule's text ends, after any of these, from this node
};

/// The tokens of nodes, computed on demand.
class NodeTokenTable {
 public:
  template <class = void>
  explicit NodeTokenTable(Automaton const& a)
      : first_(alike_nodes(a, most_depth)), all_(static_cast<std::size_t>(a.nodes())) {}

  template <class = void>
  NodeTokens const& of(std::int32_t node, TokenTrie const& trie, Pushdown& machine, Completion& completion) {
    auto const first = first_[static_cast<std::size_t>(node)];
    auto& known = all_[static_cast<std::size_t>(first)];
    if (known == nullptr) known = make(first, trie, machine, completion);
    return *known;
  }

 private:
  static constexpr std::int32_t most_depth = 20;  // bytes; few tokens are longer

  template <class = void>
  std::unique_ptr<NodeTokens const> make(std::int32_t node, TokenTrie const& trie, Pushdown& machine,
                                         Completion& completion) const {
    auto out = std::make_unique<NodeTokens>();
    out->node = node;
    std::unordered_map<Pushdown::State, std::size_t> group_of;
    std::size_t group = 0;
    auto before = Pushdown::dead;  // the state of the current group
    std::int32_t leaving_end = 0;  // end of the trie's nodes below the last one at which the text may have ended
    std::vector<Pushdown::State> path;
    auto const find_group = [&](Pushdown::State state) {
      auto const [it, fresh] = group_of.try_emplace(state, out->groups.size());
      if (fresh) {
        out->groups.push_back({});
        out->worst = (std::max)(out->worst, completion.count(state));
      }
      return it->second;
    };
    auto const add = [&](std::span<Token const> tokens, std::size_t to, bool below) {
      if (below) return out->below.add(tokens);
      auto& one = out->groups[to];
      if (one.tokens.few.empty()) one.example = tokens[0];
      one.tokens.add(tokens);
    };
    auto const visit = [&](std::int32_t at, Pushdown::State state) {
      auto const tokens = trie.tokens(at);
      if (!tokens.empty()) {
        if (state != before) before = state, group = find_group(state);
        add(tokens, group, at < leaving_end);
      }
      if (trie.end(at) == at + 1) return false;
      if (machine.left(state)) {
        out->leaving.push_back(at);
        if (at >= leaving_end) out->top.push_back(at), leaving_end = trie.end(at);
      }
      if (trie.depth(at) < most_depth) return true;
      out->deep.push_back(at);
      return false;
    };
    walk(trie, 0, machine, machine.alone(node), path, visit);
    std::erase_if(out->groups, [](auto const& one) { return one.tokens.few.empty(); });
    out->all = TokenSet(trie.vocabulary().size);
    for (auto& one : out->groups) one.tokens.finish(trie.vocabulary().size), one.tokens.insert_into(out->all);
    out->below.finish(trie.vocabulary().size), out->below.insert_into(out->all);
    return out;
  }

  std::vector<std::int32_t> first_;  // [node]
  std::vector<std::unique_ptr<NodeTokens const>> all_;
};

}  // namespace sluice::inline v0::detail
