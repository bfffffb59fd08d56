// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens that a grammar allows in each state.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/character_kinds.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/node_key.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/token_classes.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Calls visit(node of the trie, state) for all nodes below `from` that can be read in `state`. Continues below a node
/// only if visit returns true for it.
template <class Trie, class Visit>
void walk(Trie const& trie, std::int32_t from, Pushdown& machine, Pushdown::State state, Visit const& visit) {
  if (trie.end(from) == from + 1) return;
  auto const base = trie.depth(from);
  std::vector<Pushdown::State> path(static_cast<std::size_t>(trie.depth() - base) + 1);
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

/// What is known about counts of tokens for all states of a grammar. Made when a limit first asks for it.
class SharedCounts {
 public:
  SharedCounts(Automaton const& automaton, TokenTrie trie) : automaton_(automaton), trie_(std::move(trie)) {}
  template <class = void>
  FewestTokens const& get() {
    std::call_once(once_, [&] { fewest_.emplace(automaton_, trie_); });
    return *fewest_;
  }

 private:
  Automaton const& automaton_;
  TokenTrie trie_;
  std::once_flag once_;
  std::optional<FewestTokens> fewest_;
};

/// A pushdown machine with cached token masks for its states. Thread-safe; while a mask is made, no lock is held.
class TokenMasks {
 public:
  using State = Pushdown::State;
  using Mask = std::shared_ptr<TokenSet const>;
  using Count = FewestTokens::Count;
  static constexpr State ended = -1;  ///< after the end

  template <class = void>
  TokenMasks(Automaton const& automaton, SharedCounts& counts, TokenTrie trie, std::size_t memory,
             std::size_t ambiguity, std::size_t masks, bool longest, std::shared_ptr<TokenClasses const> classes)
      : trie_(std::move(trie)),
        classes_(std::move(classes)),
        machine_(automaton, memory, ambiguity),
        counts_(counts),
        most_masks_(masks),
        longest_(longest),
        spells_all_(trie_.spells_all() && trie_.inner() > 64) {}

  TokenMasks(TokenMasks const&) = delete;
  TokenMasks& operator=(TokenMasks const&) = delete;
  ~TokenMasks() = default;

  template <class = void>
  State initial() const {
    return machine_.initial();
  }
  /// Computes the tokens of all nodes now.
  template <class = void>
  void prepare() {
    for (std::int32_t node = 0; node < machine_.explore(node); ++node)
      if (machine_.with_nodes([&](Nodes const& nodes) { return nodes.reads(node); })) (void)tokens_of(node);
  }
  Pushdown& machine() { return machine_; }

  /// \param left  tokens that may follow, the end included; the mask holds the tokens after which the text can still be
  ///     completed
  template <class = void>
  Mask allowed(State state, std::int32_t left) {
    if (state == ended) return none();
    auto const all = plain(state);
    if (left == unlimited && (spells_all_ || counts_.get().covers())) return all->set;
    auto worst = all->worst.load(std::memory_order_relaxed);
    if (worst < 0) {
      auto const lock = std::scoped_lock(limits_);
      worst = worst_after(state);
      all->worst.store(worst, std::memory_order_relaxed);
    }
    if (worst < left - 1) return all->set;
    auto const lock = std::scoped_lock(limits_);
    auto const key = std::pair(state, left);
    if (auto const it = limited_.find(key); it != limited_.end()) return it->second;
    if (limited_.size() >= most_masks_) limited_.clear();
    auto made = limited_[key] = limit(state, left);
    if (completion_) completion_bytes_.store(completion_->bytes(), std::memory_order_relaxed);
    return made;
  }
  static constexpr std::int32_t unlimited = (std::numeric_limits<std::int32_t>::max)();

  /// Calls use(completion) while no other thread does.
  template <class Use>
  auto with_completion(Use const& use) {
    auto const lock = std::scoped_lock(limits_);
    return use(completion());
  }
  template <class = void>
  std::size_t bytes() const {
    return machine_.bytes() + completion_bytes_.load(std::memory_order_relaxed);
  }

 private:
  struct Plain {
    Mask set;
    std::atomic<Count> worst = -1;  // the most tokens that may be needed after any of its tokens; -1: unknown
  };
  /// A state's tokens, by how many more tokens are needed after them.
  struct Needs {
    std::vector<std::pair<Count, TokenGroup>> own;
    std::vector<std::pair<Count, TokenGroup const*>> shared;  // owned by a node
  };
  /// A node's tokens by the states to which they lead from the node itself.
  struct NodeGroups {
    struct Group {
      Token example;
      TokenGroup tokens;  // none of them is below a node of the trie in `top`
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> top;  // nodes of the trie, with children, at which the rule's text may first have ended
  };
  struct Hash {
    template <class = void>
    std::size_t operator()(std::pair<State, std::int32_t> key) const {
      return cast<std::size_t>(static_cast<std::uint64_t>(key.first) * 0x9E3779B97F4A7C15u ^
                               static_cast<std::uint64_t>(key.second) * 0xC2B2AE3D27D4EB4Fu);
    }
    template <class = void>
    std::size_t operator()(std::vector<std::pair<void const*, std::int32_t>> const& key) const {
      std::uint64_t h = key.size();
      for (auto const& [pointer, number] : key)
        h = (h ^ reinterpret_cast<std::uintptr_t>(pointer) ^ static_cast<std::uint64_t>(number) << 40) *
            0x9E3779B97F4A7C15u,
        h ^= h >> 29;
      return cast<std::size_t>(h);
    }
  };
  using Tokens = std::shared_ptr<NodeTokens const>;
  /// Where a state's tokens come from: equal for states that differ only in how far a count has got.
  using Origin = std::vector<std::pair<void const*, std::int32_t>>;
  /// One of several parts of the caches, so that threads seldom wait for each other.
  struct Part {
    std::mutex mutex;
    std::unordered_map<State, std::shared_ptr<Plain>> plain;
    std::unordered_map<Origin, Mask, Hash> joined;
    std::unordered_map<Mask, Mask> real;  // [over the trie's tokens]: over the vocabulary
    std::unordered_map<std::int32_t, Tokens> nodes;
    std::unordered_map<NodeKey::Key, Tokens, NodeTokenCache::Hash> alike;
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
  Part& part(std::size_t i) { return parts_[i % parts_.size()]; }
  /// Looks a key up in a part's map; if it is not there, adds make(), which is called without a lock.
  template <class Key, class Value, class H, class Make>
  Value find(Part& part, std::unordered_map<Key, Value, H> Part::*map, Key const& key, std::size_t most,
             Make const& make) {
    {
      auto const lock = std::scoped_lock(part.mutex);
      if (auto const it = (part.*map).find(key); it != (part.*map).end()) return it->second;
    }
    auto made = make();
    auto const lock = std::scoped_lock(part.mutex);
    if ((part.*map).size() >= most) (part.*map).clear();
    return (part.*map).try_emplace(key, std::move(made)).first->second;
  }

  template <class = void>
  std::shared_ptr<Plain> plain(State state) {
    return find(part(static_cast<std::size_t>(state)), &Part::plain, state, most_masks_ / parts_.size() + 1, [&] {
      auto out = std::make_shared<Plain>();
      out->set = real(make_plain(state));
      return out;
    });
  }

  /// A mask over the vocabulary, of one over the trie's tokens. Equal masks stay one.
  template <class = void>
  Mask real(Mask mask) {
    if (classes_ == nullptr) return mask;
    auto const key = std::pair<void const*, std::int32_t>(mask.get(), 0);
    auto& one = part(Hash{}(Origin{key}));
    return find(one, &Part::real, mask, most_masks_ / parts_.size() + 1,
                [&] { return std::make_shared<TokenSet const>(classes_->tokens(*mask)); });
  }
  template <class = void>
  Mask make_plain(State state) {
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
    for (auto const [node, stack] : machine_.ways(state)) {
      all.push_back(tokens_of(node));
      origin.emplace_back(all.back().get(), stack);
      if (all.back()->counted) origin.emplace_back(nullptr, characters(node));
      alike = alike && all.back()->alike();
    }
    if (alike && all.size() == 1 && all[0]->whole() && !machine_.complete(state)) return all[0]->all;
    if (!alike) return join(state, all);
    auto const h = Hash{}(origin);
    return find(part(h), &Part::joined, origin, most_masks_ / parts_.size() + 1, [&]() -> Mask {
      struct Kept {
        Mask set;
        std::vector<Tokens> from;  // so that the addresses in the origin stay theirs
      };
      auto const kept = std::make_shared<Kept const>(Kept{join(state, all), all});
      return {kept, kept->set.get()};
    });
  }

  template <class = void>
  Mask join(State state, std::vector<Tokens> const& all) {
    auto const ways = machine_.ways(state);
    auto set = TokenSet(trie_.vocabulary().size);
    auto const take = [&](std::span<Token const> tokens, State) { set.insert(tokens); };
    for (std::size_t i = 0; i < ways.size(); ++i) {
      set.insert(*all[i]->all);
      if (all[i]->counted) trie_.plain_text().insert_into(set, characters(ways[i].first));
      each_rest(ways[i], *all[i], take);
    }
    return finished(state, std::move(set));
  }
  /// How many plain characters may follow, as far as tokens can tell.
  template <class = void>
  std::int32_t characters(std::int32_t node) {
    auto const run = machine_.plain_run(node);
    return trie_.plain_text().longest(run) ? PlainText::unlimited : run;
  }
  template <class = void>
  Mask finished(State state, TokenSet set) {
    insert_end(state, set);
    if (longest_) narrow(state, set);
    return std::make_shared<TokenSet const>(std::move(set));
  }
  /// Calls take(tokens, state) for what a node's own tokens leave out: what is below the rule, and long tokens.
  template <class Take>
  void each_rest(Pushdown::Pair way, NodeTokens const& tokens, Take const& take) {
    each_rest(way, trie_.nodes(), tokens.ends, take);
    each_rest(way, trie_.plain_text().rest(), tokens.rest, take);
  }
  template <class Take>
  void each_rest(Pushdown::Pair way, TrieNodes const& trie, NodeTokens::Ends const& ends, Take const& take) {
    auto const [node, stack] = way;
    auto const visit = [&](std::int32_t at, State next) {
      if (auto const tokens = trie.tokens(at); !tokens.empty()) take(tokens, next);
      return true;
    };
    if (!ends.leaving.empty()) {
      auto const below = machine_.popped(stack);
      for (auto const from : ends.leaving) walk(trie, from, machine_, below, visit);
    }
    if (ends.deep.empty()) return;
    auto const own = machine_.at(node, stack);
    for (auto const from : ends.deep) {
      auto const text = trie_.bytes(trie.below(from)[0]).substr(0, static_cast<std::size_t>(trie.depth(from)));
      if (auto const next = machine_.next(own, text); next != Pushdown::dead) walk(trie, from, machine_, next, visit);
    }
  }

  /// What is known of a state while it is walked through.
  struct Looked {
    std::int32_t length = -1, visits = 0;  // as Pushdown::plain_length(); -1: unknown
    std::uint32_t tried = 0, stays = 0;    // kinds of characters; those of them that lead back to the state
  };
  class LookedStates {
   public:
    Looked& operator[](State state) {
      auto const i = static_cast<std::size_t>(state);
      if (i >= all_.size()) all_.resize(i + 64);
      return all_[i];
    }

   private:
    std::vector<Looked> all_;
  };

  template <class = void>
  std::int32_t length(LookedStates& states, State state) {
    auto& known = states[state].length;
    if (known < 0) known = machine_.plain_length(state);
    return known;
  }
  /// Whether characters of all these kinds lead from a state back to it, so that all tokens of them can be read.
  template <class = void>
  bool stays(LookedStates& states, State state, std::uint32_t kinds) {
    auto& known = states[state];
    if ((kinds & known.tried & ~known.stays) != 0 || kinds >= CharacterKinds::broken) return false;
    if ((kinds & ~known.tried) == 0) return true;
    if (++known.visits < 4) return false;
    for (auto left = kinds & ~known.tried; left != 0; left &= left - 1) {
      auto const kind = std::countr_zero(left);
      auto const bit = std::uint32_t{1} << kind;
      known.tried |= bit;
      if (!CharacterKinds::all_of(kind, [&](auto bytes) { return leads(state, state, bytes); })) return false;
      known.stays |= bit;
    }
    return true;
  }
  template <class = void>
  bool leads(State from, State to, std::span<CharacterKinds::Bytes const> bytes) {
    auto const& classes = machine_.automaton().class_of;
    for (int c = bytes[0].first, before = -1; c <= bytes[0].last; ++c) {
      if (classes[static_cast<std::size_t>(c)] == before) continue;
      before = classes[static_cast<std::size_t>(c)];
      auto const next = machine_.next(from, static_cast<std::uint8_t>(c));
      if (bytes.size() == 1 ? next != to : next == Pushdown::dead || !leads(next, to, bytes.subspan(1))) return false;
    }
    return true;
  }

  /// Walks through all tokens that can be read in a state. Where it allows any plain characters, or any of certain kinds,
  /// their tokens are not looked at one by one.
  /// \param visit  (trie, node, state): as for walk()
  /// \param plain  (tokens, of which those that are plain and not longer are taken; characters; state)
  /// \param whole  (tokens, which all can be read; state; whether they lead back to it): whether it took them
  template <class Visit, class Plain, class Whole>
  void walk_fast(State from, Visit const& visit, Plain const& plain, Whole const& whole) {
    auto const& all = trie_.nodes();
    auto const& text = trie_.plain_text();
    LookedStates states;
    walk(all, 0, machine_, from, [&](std::int32_t at, State state) {
      if (!visit(all, at, state)) return false;
      if (took_whole(all, at, state, states, whole)) return false;
      auto const rest = text.rest_of(at);
      if (rest == PlainText::apart) return true;
      auto most = length(states, state);
      if (most < PlainText::slices[0]) return true;
      if (most != PlainText::unlimited) {
        auto const begin = trie_.bytes(all.below(at)[0]).substr(0, static_cast<std::size_t>(all.depth(at)));
        auto const before = PlainText::count(begin);
        // Alike nodes need not be alike further on.
        auto const slice = PlainText::slice((std::min)(most, NodeTokens::most_depth - all.depth(at)) + before);
        if (slice < 0) return true;
        most = PlainText::slices[static_cast<std::size_t>(slice)];
        std::int32_t below = 0;
        for (auto const byte : begin)
          if (below >= 0) below = text.longer(slice).child(below, static_cast<std::uint8_t>(byte));
        if (below >= 0) walk_longer(slice, below, state, states, visit, whole);
      }
      plain(all.below(at), most, state);
      if (rest >= 0) walk_in(text.rest(), rest, state, visit);
      return false;
    });
  }
  template <class Visit, class Whole>
  void walk_longer(std::int32_t slice, std::int32_t from, State state, LookedStates& states, Visit const& visit,
                   Whole const& whole) {
    auto const& longer = trie_.plain_text().longer(slice);
    walk(longer, from, machine_, state, [&](std::int32_t at, State next) {
      return visit(longer, at, next) && !took_whole(longer, at, next, states, whole);
    });
  }
  /// Whether whole() took all tokens below a node.
  template <class Whole>
  bool took_whole(TrieNodes const& trie, std::int32_t at, State state, LookedStates& states, Whole const& whole) {
    auto const kinds = trie.kinds(at);
    if (kinds >= CharacterKinds::broken) return false;
    if (stays(states, state, kinds)) return whole(trie.below(at), state, true);
    return (kinds & CharacterKinds::not_plain) == 0 && trie.characters(at) <= length(states, state) &&
           whole(trie.below(at), state, false);
  }
  template <class Visit>
  void walk_in(TrieNodes const& trie, std::int32_t from, State state, Visit const& visit) {
    walk(trie, from, machine_, state, [&](std::int32_t at, State next) { return visit(trie, at, next); });
  }

  template <class = void>
  Tokens tokens_of(std::int32_t node) {
    return find(part(static_cast<std::size_t>(node)), &Part::nodes, node, std::size_t{1} << 12, [&] {
      auto const& a = machine_.automaton();
      auto const set = machine_.with_nodes([&](Nodes const& nodes) { return nodes.places(node); });
      auto const key = NodeKey::within(a, set, NodeTokens::most_depth);
      return find(part(NodeTokenCache::Hash{}(key)), &Part::alike, key, most_masks_ / parts_.size() + 1,
                  [&]() -> Tokens {
                    auto everywhere = NodeKey::everywhere(a, set, NodeTokens::most_depth);
                    if (everywhere.empty()) return make_tokens(node);
                    auto& cache = trie_.node_tokens();
                    if (auto known = cache.find(everywhere); known != nullptr) return known;
                    auto made = make_tokens(node);
                    cache.add(std::move(everywhere), made);
                    return made;
                  });
    });
  }
  template <class = void>
  Tokens make_tokens(std::int32_t node) {
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
    if (auto const run = machine_.plain_run(node); run > 0) {
      if (run == PlainText::unlimited && make_like_next(node, alone, *out)) return out;
      out->counted = run != PlainText::unlimited && run > NodeTokens::most_depth;
      text.insert_into(set, out->counted ? NodeTokens::most_depth : run);
      walk_in(text.rest(), 0, alone, visit);
    } else if (auto const slice = PlainText::slice((std::min)(machine_.plain_length(alone), NodeTokens::most_depth));
               slice >= 0) {
      text.insert_into(set, PlainText::slices[static_cast<std::size_t>(slice)]);
      LookedStates states;
      walk_longer(slice, 0, alone, states, visit, whole);
      walk_in(text.rest(), 0, alone, visit);
    } else {
      auto const plain = [&](std::span<Token const> tokens, std::int32_t most, State) {
        for (auto const token : tokens)
          if (auto const n = text.characters(token); n != PlainText::not_plain && n <= most) set.insert(token);
      };
      walk_fast(alone, visit, plain, whole);
    }
    out->all = std::make_shared<TokenSet const>(std::move(set));
    return out;
  }

  /// Makes the tokens of a node that allows any plain text from those of the node after a rare plain character: of the
  /// first characters of tokens, most lead to the same node from both. False: these nodes are one, or no such nodes.
  template <class = void>
  bool make_like_next(std::int32_t node, State alone, NodeTokens& out) {
    auto const next = machine_.next(alone, std::uint8_t{'~'});
    auto const ways = machine_.ways(next);
    if (ways.size() != 1 || ways[0].first == node || ways[0].second != Pushdown::unknown) return false;
    auto const other = machine_.alone(ways[0].first);
    if (other != next || machine_.next(other, std::uint8_t{'~'}) != other ||
        machine_.plain_run(ways[0].first) != PlainText::unlimited)
      return false;
    auto const like = tokens_of(ways[0].first);
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

  /// The most tokens that may be needed after any of a state's tokens.
  template <class = void>
  Count worst_after(State state) {
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
      auto const tokens = tokens_of(way.first);
      auto known = worst_.find(tokens.get());
      if (known == worst_.end()) {
        auto const found = worst_within(way.first);  // may throw
        if (worst_.size() >= most_masks_) worst_.clear(), kept_.clear();
        kept_.push_back(tokens);
        known = worst_.try_emplace(tokens.get(), way.first, found).first;
      }
      auto const [node, own] = known->second;
      auto const most = counts_.get().most();
      worst = (std::max)(worst, add(node == way.first ? own : add(own, most), completion().rest(way.second)));
      each_rest(way, *tokens, take);
    }
    return worst;
  }
  /// The same for a node, to the end of its rule.
  template <class = void>
  Count worst_within(std::int32_t node) {
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
    auto const any_text = [&](std::span<Token const>, std::int32_t, State) {
      worst = (std::max)(worst, counts_.get().most());
    };
    if (machine_.plain_run(node) > 0) {
      any_text({}, PlainText::unlimited, alone);
      walk_in(trie_.plain_text().rest(), 0, alone, visit);
    } else {
      walk_fast(alone, visit, any_text, [&](std::span<Token const> tokens, State state, bool stays) {
        if (stays) take(tokens, state);
        return stays;
      });
    }
    return worst;
  }
  static Count add(Count a, Count b) {
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
    if (classes_ != nullptr) *set = classes_->tokens(*set);
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
      auto const& own = groups_of(ways[0].first);
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
    return needs_[state] = std::move(out);
  }
  template <class = void>
  std::unique_ptr<NodeGroups const> const& groups_of(std::int32_t node) {
    if (auto const it = groups_.find(node); it != groups_.end()) return it->second;
    if (groups_.size() >= most_masks_) groups_.clear(), needs_.clear();
    auto out = std::make_unique<NodeGroups>();
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
    return groups_[node] = std::move(out);
  }

  Completion& completion() {
    if (!completion_) completion_.emplace(counts_.get(), trie_, machine_);
    return *completion_;
  }

  TokenTrie trie_;
  std::shared_ptr<TokenClasses const> classes_;  // null: the grammar names no token
  Pushdown machine_;
  SharedCounts& counts_;
  std::size_t most_masks_;
  bool longest_;
  bool spells_all_;  // any text can be completed byte by byte
  std::array<Part, 8> parts_;
  std::atomic<std::size_t> completion_bytes_ = 0;
  std::mutex limits_;  // guards all below
  std::optional<Completion> completion_;
  std::unordered_map<State, Needs> needs_;
  std::unordered_map<std::int32_t, std::unique_ptr<NodeGroups const>> groups_;
  std::unordered_map<void const*, std::pair<std::int32_t, Count>> worst_;  // a node of those alike, and its count
  std::vector<Tokens> kept_;                                               // those in worst_
  std::unordered_map<std::pair<State, std::int32_t>, Mask, Hash> limited_;
};

}  // namespace sluice::inline v0::detail
