// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a grammar allows in each state.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/limited_masks.hpp>
#include <sluice/grammar/detail/node_token_maker.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/nodes.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/shared_cache.hpp>
#include <sluice/grammar/detail/token_classes.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/token_walks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A pushdown machine with cached token masks for its states. Thread-safe; while a mask is made, no lock is held.
class TokenMasks {
 public:
  using State = Pushdown::State;
  using Mask = std::shared_ptr<TokenSet const>;
  using Count = FewestTokens::Count;
  static constexpr State ended = -1;  ///< after the end

  SLUICE_LAZY TokenMasks(Automaton const& automaton, SharedCounts& counts, TokenNodes trie, std::size_t memory,
                         std::size_t ambiguity, std::size_t masks, bool longest,
                         std::shared_ptr<TokenClasses const> classes)
      : trie_(std::move(trie)),
        classes_(std::move(classes)),
        machine_(automaton, memory, ambiguity),
        counts_(counts),
        longest_(longest),
        nodes_(trie_, machine_, walks_, masks / 8 + 1),
        limits_(trie_, machine_, counts_, walks_, nodes_, masks / 8 + 1),
        plain_(masks / 8 + 1),
        joined_(masks / 8 + 1),
        real_(masks / 8 + 1),
        limited_(masks / 8 + 1) {}

  TokenMasks(TokenMasks const&) = delete;
  TokenMasks& operator=(TokenMasks const&) = delete;
  ~TokenMasks() = default;

  SLUICE_LAZY State initial() const { return machine_.initial(); }
  /// Computes the tokens of all nodes now.
  SLUICE_LAZY void prepare() {
    for (std::int32_t node = 0; node < machine_.explore(node); ++node)
      if (machine_.with_nodes([&](Nodes const& nodes) { return nodes.reads(node); })) (void)nodes_.of(node);
  }
  Pushdown& machine() { return machine_; }

  /// \param left  tokens that may follow, the end included; the mask holds the tokens after which the text can still be
  ///     completed
  SLUICE_LAZY Mask allowed(State state, std::int32_t left) {
    if (state == ended) return none();
    auto const all = plain(state);
    if (left == unlimited && counts_.covers()) return all->set;
    auto worst = all->worst.load(std::memory_order_relaxed);
    if (worst < 0) {
      worst = limits_.worst_after(state);
      all->worst.store(worst, std::memory_order_relaxed);
    }
    if (worst < left - 1) return all->set;
    return limited_.find({state, left}, [&] {
      auto set = limits_.tokens(state, left);
      if (left > 0) insert_end(state, set);
      if (longest_) narrow(state, set);
      return std::make_shared<TokenSet const>(classes_ == nullptr ? std::move(set) : classes_->tokens(set));
    });
  }
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();

  Completion& completion() { return limits_.completion(); }
  SLUICE_LAZY std::size_t bytes() const { return machine_.bytes() + limits_.bytes(); }

 private:
  struct Plain {
    Mask set;
    std::atomic<Count> worst = -1;  // the most tokens that may be needed after any of its tokens; -1: unknown
  };
  using Tokens = NodeTokenMaker::Tokens;
  /// Where a state's tokens come from: equal for states that differ only in how far a count has got.
  using Origin = std::vector<std::pair<void const*, std::int32_t>>;
  struct Hash {
    SLUICE_LAZY std::size_t operator()(std::pair<State, std::int32_t> key) const {
      return cast<std::size_t>(static_cast<std::uint64_t>(key.first) * 0x9E3779B97F4A7C15u ^
                               static_cast<std::uint64_t>(key.second) * 0xC2B2AE3D27D4EB4Fu);
    }
    SLUICE_LAZY std::size_t operator()(Origin const& key) const {
      std::uint64_t h = key.size();
      for (auto const& [pointer, number] : key)
        h = (h ^ reinterpret_cast<std::uintptr_t>(pointer) ^ static_cast<std::uint64_t>(number) << 40) *
            0x9E3779B97F4A7C15u,
        h ^= h >> 29;
      return cast<std::size_t>(h);
    }
  };

  SLUICE_LAZY Mask none() const {
    static auto const empty = std::make_shared<TokenSet const>();
    return empty;
  }
  SLUICE_LAZY void insert_end(State state, TokenSet& set) const {
    if (machine_.complete(state)) set.insert(std::span<Token const>(trie_.vocabulary().eos));
  }
  SLUICE_LAZY std::shared_ptr<Plain> plain(State state) {
    return plain_.find(state, [&] {
      auto out = std::make_shared<Plain>();
      out->set = real(make_plain(state));
      return out;
    });
  }

  /// A mask over the vocabulary, of one over the trie's tokens. Equal masks stay one.
  SLUICE_LAZY Mask real(Mask mask) {
    if (classes_ == nullptr) return mask;
    return real_.find(mask, [&] { return std::make_shared<TokenSet const>(classes_->tokens(*mask)); });
  }
  SLUICE_LAZY Mask make_plain(State state) {
    if (machine_.spaced(state)) {
      auto set = TokenSet(trie_.vocabulary().size);
      walk(trie_, 0, machine_, state, [&](std::int32_t at, State) {
        set.insert(trie_.tokens(at));
        return true;
      });
      return finished(state, std::move(set));
    }
    std::vector<Tokens> all;
    Origin origin{{nullptr, machine_.complete(state) ? 1 : 0}};
    auto alike = !longest_;
    auto const ways = machine_.ways(state);
    auto const any_plain = std::ranges::find_if(  // one way that allows them is enough
        ways, [&](auto const& way) { return machine_.plain_run(way.first) == PlainText::unlimited; });
    for (auto const& way : ways) {
      auto const [node, stack] = way;
      all.push_back(nodes_.of(node, any_plain == ways.end() || &*any_plain == &way));
      origin.emplace_back(all.back().get(), stack);
      if (all.back()->counted) origin.emplace_back(nullptr, walks_.characters(node));
      alike = alike && all.back()->alike();
    }
    if (alike && all.size() == 1 && all[0]->whole() && !machine_.complete(state)) return all[0]->all;
    if (!alike) return join(state, all);
    return joined_.find(origin, [&]() -> Mask {
      struct Kept {
        Mask set;
        std::vector<Tokens> from;  // so that the addresses in the origin stay theirs
      };
      auto const kept = std::make_shared<Kept const>(Kept{join(state, all), all});
      return {kept, kept->set.get()};
    });
  }

  SLUICE_LAZY Mask join(State state, std::vector<Tokens> const& all) {
    auto const ways = machine_.ways(state);
    auto set = TokenSet(trie_.vocabulary().size);
    auto const take = [&](std::span<Token const> tokens, State) { set.insert(tokens); };
    for (std::size_t i = 0; i < ways.size(); ++i) {
      set.insert(*all[i]->all);
      if (all[i]->counted) trie_.plain_text().insert_into(set, walks_.characters(ways[i].first));
      walks_.each_rest(ways[i], *all[i], take);
    }
    return finished(state, std::move(set));
  }
  SLUICE_LAZY Mask finished(State state, TokenSet set) {
    insert_end(state, set);
    if (longest_) narrow(state, set);
    return std::make_shared<TokenSet const>(std::move(set));
  }
  /// If the next bytes are certain, reduces a set to its longest token within them. If one of its tokens extends beyond
  /// them, the set is unchanged: the model must choose the rest.
  SLUICE_LAZY void narrow(State state, TokenSet& set) {
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

  TokenNodes trie_;
  std::shared_ptr<TokenClasses const> classes_;  // null: the grammar names no token
  Pushdown machine_;
  SharedCounts& counts_;
  bool longest_;
  TokenWalks walks_{trie_, machine_};
  NodeTokenMaker nodes_;
  LimitedMasks limits_;
  SharedCache<State, std::shared_ptr<Plain>> plain_;
  SharedCache<Origin, Mask, Hash> joined_;
  SharedCache<Mask, Mask> real_;  // [over the trie's tokens]: over the vocabulary
  SharedCache<std::pair<State, std::int32_t>, Mask, Hash> limited_;
};

}  // namespace sluice::inline v0::detail
