// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the tokens of nodes.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/node_key.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/nodes.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/shared_cache.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/token_walks.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Finds the tokens of a machine's nodes, and keeps them. Thread-safe.
class NodeTokenMaker {
 public:
  using State = Pushdown::State;
  using Tokens = std::shared_ptr<NodeTokens const>;

  /// \param most  tokens of nodes to keep, in each part of the cache
  NodeTokenMaker(TokenNodes const& trie, Pushdown& machine, TokenWalks& walks, std::size_t most)
      : trie_(trie), machine_(machine), walks_(walks), alike_(most) {}

  /// \param plain  false: plain tokens are left out, which another node allows
  /// \param wait  see SharedCache::find
  SLUICE_LAZY Tokens of(std::int32_t node, bool plain = true, bool wait = true) {
    auto const make = [&] {
      auto const& a = machine_.automaton();
      auto const set = machine_.with_nodes([&](Nodes const& nodes) { return nodes.places(node); });
      auto key = NodeKey::within(a, set, NodeTokens::most_depth);
      if (!plain) key.push_back(-1);
      auto const make_alike = [&]() -> Tokens {
        auto everywhere = NodeKey::everywhere(a, set, NodeTokens::most_depth);
        if (everywhere.empty()) return make_tokens(node, plain);
        if (!plain) everywhere.push_back(-1);
        auto& cache = trie_.node_tokens();
        if (auto known = cache.find(everywhere); known != nullptr) return known;
        auto made = make_tokens(node, plain);
        cache.add(std::move(everywhere), made);
        return made;
      };
      return alike_.find(key, make_alike, wait);
    };
    return nodes_.find(plain ? node : -node - 1, make, wait);
  }

 private:
  SLUICE_LAZY Tokens make_tokens(std::int32_t node, bool plain) {
    auto out = std::make_shared<NodeTokens>();
    auto set = TokenSet(trie_.vocabulary().size);
    auto const visit = [&](TrieNodes const& trie, std::int32_t at, State state) {
      set.insert(trie.tokens(at));
      if (trie.end(at) == at + 1) return false;
      auto& ends = &trie == &trie_.plain_text().rest() ? out->rest : out->ends;
      if (machine_.left(state)) ends.leaving.push_back(trie_.plain_text().whole(trie, at));
      if (trie.depth(at) < NodeTokens::most_depth) return true;
      ends.deep.push_back(trie_.plain_text().whole(trie, at));
      return false;
    };
    auto const whole = [&](std::span<Token const> tokens, State, bool) {
      set.insert(tokens);
      return true;
    };
    auto const& text = trie_.plain_text();
    auto const alone = machine_.alone(node);
    if (!plain) {
      walks_.walk_in(text.rest(), 0, alone, visit);
    } else if (auto const run = machine_.plain_run(node); run > 0) {
      if (run == PlainText::unlimited && make_like_next(node, alone, *out)) return out;
      out->counted = run != PlainText::unlimited && run > NodeTokens::most_depth;
      text.insert_into(set, out->counted ? NodeTokens::most_depth : run);
      walks_.walk_in(text.rest(), 0, alone, visit);
    } else if (auto const exact = walks_.exact_plain_length(alone); exact > 0) {
      text.insert_into(set, exact);
      walks_.walk_in(text.rest(), 0, alone, visit);
    } else if (auto const slice = PlainText::slice((std::min)(machine_.plain_length(alone), NodeTokens::most_depth));
               slice >= 0) {
      text.insert_into(set, PlainText::slices[static_cast<std::size_t>(slice)]);
      TokenWalks::LookedStates states;
      walks_.walk_longer(slice, 0, alone, states, visit, whole);
      walks_.walk_in(text.rest(), 0, alone, visit);
    } else {
      auto const plain_up_to = [&](std::int32_t at, std::int32_t most) {
        text.insert_below(set, trie_.nodes(), at, most);
      };
      walks_.walk_fast(alone, visit, plain_up_to, whole);
    }
    out->all = std::make_shared<TokenSet const>(std::move(set));
    return out;
  }

  /// Makes the tokens of a node that allows any plain text from those of the node after a rare plain character: of the
  /// first characters of tokens, most lead to the same node from both. False: these nodes are one, or no such nodes.
  SLUICE_LAZY bool make_like_next(std::int32_t node, State alone, NodeTokens& out) {
    auto const next = machine_.next(alone, std::uint8_t{'~'});
    auto const ways = machine_.ways(next);
    if (ways.size() != 1 || ways[0].first == node || ways[0].second != Pushdown::unknown) return false;
    auto const other = machine_.alone(ways[0].first);
    if (other != next || machine_.next(other, std::uint8_t{'~'}) != other ||
        machine_.plain_run(ways[0].first) != PlainText::unlimited)
      return false;
    auto const like = of(ways[0].first, true, false);
    // Made where another grammar could not tell that any plain text may follow.
    if (!like->ends.leaving.empty() || !like->ends.deep.empty() || like->counted) return false;
    auto const& rest = trie_.plain_text().rest();
    auto set = *like->all;
    std::vector<std::pair<std::int32_t, std::int32_t>> gone;  // nodes of the trie of which nothing is taken over
    std::vector<std::pair<State, State>> path(static_cast<std::size_t>(rest.depth()) + 1);
    path[0] = {alone, other};
    auto const erase = [&](std::span<Token const> tokens) {
      for (auto const token : tokens) set.erase(token);
    };
    for (std::int32_t at = 1; at < rest.size();) {
      auto const depth = static_cast<std::size_t>(rest.depth(at));
      auto const step = [&](State from) { return from == Pushdown::dead ? from : machine_.next(from, rest.byte(at)); };
      auto const own = step(path[depth - 1].first), others = step(path[depth - 1].second);
      path[depth] = {own, others};
      auto const end = rest.end(at);
      if (own == others) {
        at = end;
        continue;
      }
      if (own == Pushdown::dead) {
        erase(rest.below(at)), gone.emplace_back(at, end);
        at = end;
        continue;
      }
      set.insert(rest.tokens(at));
      gone.emplace_back(at, at + 1);
      if (end > at + 1 && machine_.left(own)) out.rest.leaving.push_back(at);
      if (end > at + 1 && rest.depth(at) >= NodeTokens::most_depth) {
        for (auto below = at + 1; below < end; ++below) erase(rest.tokens(below));
        gone.emplace_back(at, end), out.rest.deep.push_back(at);
        at = end;
        continue;
      }
      ++at;
    }
    auto const take_over = [&](std::vector<std::int32_t> const& from, std::vector<std::int32_t>& to) {
      std::size_t range = 0;
      for (auto const one : from) {
        while (range < gone.size() && gone[range].second <= one) ++range;
        if (range == gone.size() || one < gone[range].first) to.push_back(one);
      }
      std::sort(to.begin(), to.end());
    };
    take_over(like->rest.leaving, out.rest.leaving), take_over(like->rest.deep, out.rest.deep);
    out.all = std::make_shared<TokenSet const>(std::move(set));
    return true;
  }

  TokenNodes const& trie_;
  Pushdown& machine_;
  TokenWalks& walks_;
  SharedCache<std::int32_t, Tokens> nodes_{std::size_t{1} << 12};
  SharedCache<NodeKey::Key, Tokens, NodeTokenCache::Hash> alike_;
};

}  // namespace sluice::inline v0::detail
