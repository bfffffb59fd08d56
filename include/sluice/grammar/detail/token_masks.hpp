// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a grammar allows in each state.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A pushdown machine with cached token masks for its states. Not thread-safe.
class TokenMasks {
 public:
  using State = Pushdown::State;
  using Mask = std::shared_ptr<TokenSet const>;
  static constexpr State ended = -1;  ///< after the end

  template <class = void>
  TokenMasks(Automaton const& automaton, FewestTokens const& fewest, TokenTrie trie, NodeTokenTable& nodes,
             std::size_t memory, std::size_t ambiguity, std::size_t masks, bool longest)
      : trie_(std::move(trie)),
        machine_(automaton, memory, ambiguity),
        completion_(fewest, trie_, machine_),
        nodes_(nodes),
        covers_(fewest.covers()),
        most_(fewest.most()),
        most_masks_(masks),
        longest_(longest) {}

  TokenMasks(TokenMasks const&) = delete;
  TokenMasks& operator=(TokenMasks const&) = delete;
  ~TokenMasks() = default;

  template <class = void>
  State initial() const {
    return machine_.initial();
  }
  /// Computes the tokens of all nodes of an automaton now.
  template <class = void>
  void prepare(Automaton const& automaton) {
    for (std::int32_t node = 0; node < automaton.nodes(); ++node)
      if (!automaton.bytes(node).empty()) (void)nodes_.of(node, trie_, machine_, completion_);
  }
  Pushdown& machine() { return machine_; }
  Completion& completion() { return completion_; }

  /// \param left  tokens that may follow, the end included; the mask holds the tokens after which the text can still be
  ///     completed
  template <class = void>
  Mask allowed(State state, std::int32_t left) {
    if (state == ended) return none();
    auto const& all = plain(state);
    if (all.worst < left - 1 || (left == unlimited && covers_)) return all.set;
    auto const key = std::pair(state, left);
    if (auto const it = limited_.find(key); it != limited_.end()) return it->second;
    if (limited_.size() >= most_masks_) limited_.clear();
    return limited_[key] = limit(state, left);
  }
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();

  template <class = void>
  std::size_t bytes() const {
    return machine_.bytes();
  }

 private:
  struct Plain {
    Mask set;
    FewestTokens::Count worst = 0;  // the most tokens that may be needed after any of its tokens
  };
  /// A state's tokens, by how many more tokens are needed after them.
  struct Needs {
    std::vector<std::pair<FewestTokens::Count, TokenGroup>> own;
    std::vector<std::pair<FewestTokens::Count, TokenGroup const*>> shared;  // owned by a node
  };
  struct Hash {
    template <class = void>
    std::size_t operator()(std::pair<State, std::int32_t> key) const {
      return cast<std::size_t>(static_cast<std::uint64_t>(key.first) * 0x9E3779B97F4A7C15u ^
                               static_cast<std::uint64_t>(key.second) * 0xC2B2AE3D27D4EB4Fu);
    }
  };

  template <class = void>
  Mask none() const {
    static auto const empty = std::make_shared<TokenSet const>();
    return empty;
  }
  template <class = void>
  void insert_end(State state, TokenSet& set) const {
    if (machine_.complete(state)) set.insert(std::span<Token const>(trie_.vocabulary().eos));
  }

  template <class = void>
  Plain const& plain(State state) {
    if (auto const it = plain_.find(state); it != plain_.end()) return it->second;
    if (plain_.size() >= most_masks_) plain_.clear();
    auto set = std::make_shared<TokenSet>(trie_.vocabulary().size);
    FewestTokens::Count worst = 0;
    ways_.assign(machine_.ways(state).begin(), machine_.ways(state).end());
    auto before = Pushdown::dead;
    auto const reach = [&](State next) {
      if (next != before) worst = (std::max)(worst, completion_.count(next)), before = next;
    };
    auto const take = [&](std::int32_t at, State next) {
      if (auto const tokens = trie_.tokens(at); !tokens.empty()) set->insert(tokens), reach(next);
      return true;
    };
    for (auto const [node, stack] : ways_) {
      auto const& tokens = nodes_.of(node, trie_, machine_, completion_);
      set->insert(tokens.all);
      worst = (std::max)(worst,
                         add(node == tokens.node ? tokens.worst : add(tokens.worst, most_), completion_.rest(stack)));
      if (!tokens.leaving.empty()) {
        auto const below = machine_.popped(stack);
        for (auto const from : tokens.leaving) walk(trie_, from, machine_, below, path_, take);
      }
      if (tokens.deep.empty()) continue;
      auto const own = machine_.at(node, stack);
      for (auto const from : tokens.deep)
        if (auto const next = machine_.next(own, trie_.text(from)); next != Pushdown::dead)
          walk(trie_, from, machine_, next, path_, take);
    }
    insert_end(state, *set);
    if (longest_) narrow(state, *set);
    return plain_[state] = {std::move(set), worst};
  }
  static FewestTokens::Count add(FewestTokens::Count a, FewestTokens::Count b) {
    return a >= Completion::never || b >= Completion::never ? Completion::never : a + b;
  }

  template <class = void>
  Mask limit(State state, std::int32_t left) {
    auto set = std::make_shared<TokenSet>(trie_.vocabulary().size);
    auto const& needs = this->needs(state);
    for (auto const& [needed, tokens] : needs.own)
      if (needed <= left - 2) tokens.insert_into(*set);
    for (auto const& [needed, tokens] : needs.shared)
      if (needed <= left - 2) tokens->insert_into(*set);
    if (left > 0) insert_end(state, *set);
    if (longest_) narrow(state, *set);
    return set;
  }

  /// If the next bytes are certain, reduces a set to its longest token within them. If one of its tokens extends beyond
  /// them, the set is unchanged: the model must choose the rest.
  template <class = void>
  void narrow(State state, TokenSet& set) {
    Token longest = -1;
    std::int32_t at = 0;
    while (!machine_.complete(state)) {
      auto const byte = machine_.only_byte(state);
      if (byte < 0) break;
      at = trie_.child(at, static_cast<std::uint8_t>(byte));
      if (at < 0) break;
      state = machine_.next(state, static_cast<std::uint8_t>(byte));
      for (auto const token : trie_.tokens(at))
        if (set.contains(token)) {
          longest = token;
          break;
        }
    }
    if (longest < 0) return;
    for (auto beyond = at + 1; at > 0 && beyond < trie_.end(at); ++beyond)
      for (auto const token : trie_.tokens(beyond))
        if (set.contains(token)) return;
    set = TokenSet(trie_.vocabulary().size);
    set.insert(longest);
  }

  /// Leaves out tokens that cannot be completed.
  template <class = void>
  Needs const& needs(State state) {
    if (auto const it = needs_.find(state); it != needs_.end()) return it->second;
    if (needs_.size() >= most_masks_) needs_.clear();
    Needs out;
    std::map<FewestTokens::Count, TokenGroup> found;
    auto before = Pushdown::dead;  // the last state examined, and its count
    TokenGroup* group = nullptr;
    auto const add = [&](std::span<Token const> tokens, State next) {
      if (next != before) {
        auto const needed = completion_.fewest(next);
        before = next, group = needed < Completion::never ? &found[needed] : nullptr;
      }
      if (group != nullptr) group->add(tokens);
    };
    auto const take = [&](std::int32_t at, State next) {
      if (auto const tokens = trie_.tokens(at); !tokens.empty()) add(tokens, next);
      return true;
    };
    auto const ways = machine_.ways(state);
    auto const node = ways.size() == 1 ? ways[0].first : -1;
    auto const* const own = node >= 0 ? &nodes_.of(node, trie_, machine_, completion_) : nullptr;
    if (own != nullptr && own->node == node) {  // one token of a group decides for all
      for (auto const& one : own->groups) {
        auto const need = completion_.fewest(machine_.next(state, trie_.bytes(one.example)));
        if (need < Completion::never) out.shared.emplace_back(need, &one.tokens);
      }
      for (auto const* const nodes : {&own->top, &own->deep})
        for (auto const from : *nodes)
          if (auto const next = machine_.next(state, trie_.text(from)); next != Pushdown::dead)
            walk(trie_, from, machine_, next, path_, take);
    } else {
      walk(trie_, 0, machine_, state, path_, take);
    }
    for (auto& [need, tokens] : found) {
      tokens.finish(trie_.vocabulary().size);
      out.own.emplace_back(need, std::move(tokens));
    }
    return needs_[state] = std::move(out);
  }

  TokenTrie trie_;
  Pushdown machine_;
  Completion completion_;
  NodeTokenTable& nodes_;
  bool covers_;
  FewestTokens::Count most_;  // for any node
  std::size_t most_masks_;
  bool longest_;
  std::unordered_map<State, Plain> plain_;
  std::unordered_map<State, Needs> needs_;
  std::unordered_map<std::pair<State, std::int32_t>, Mask, Hash> limited_;
  std::vector<State> path_;
  std::vector<Pushdown::Pair> ways_;
};

}  // namespace sluice::inline v0::detail
