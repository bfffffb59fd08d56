// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the tokens that can be read in a state are found.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/character_kinds.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/nodes.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
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

/// Walks through the tokens that a machine can read. Thread-safe.
class TokenWalks {
 public:
  using State = Pushdown::State;
  /// What is known of a state while it is walked through.
  struct Looked {
    State state = -1;
    std::int32_t length = -1, visits = 0;  // as Pushdown::plain_length(); -1: unknown
    std::uint32_t tried = 0, same = 0;     // kinds of characters; those of them that all lead to `to`
    State to = -1;                         // -1: unknown
  };
  class LookedStates {
   public:
    /// Valid until the next call.
    Looked& operator[](State state) {
      if (auto const i = static_cast<std::size_t>(state); i < direct) {
        if (i >= first_.size()) first_.resize((std::min)(direct, 2 * i + 64));
        return first_[i];
      }
      if (auto& one = slot(state); one.state == state) return one;
      if (++used_ * 2 > all_.size()) {
        auto old = std::vector<Looked>(all_.size() * 2);
        old.swap(all_);
        for (auto const& one : old)
          if (one.state >= 0) slot(one.state) = one;
      }
      auto& one = slot(state);
      one.state = state;
      return one;
    }

   private:
    Looked& slot(State state) {
      auto const mask = all_.size() - 1;
      auto i = static_cast<std::size_t>(static_cast<std::uint32_t>(state) * 0x9E3779B1u >> 8) & mask;
      while (all_[i].state >= 0 && all_[i].state != state) i = (i + 1) & mask;
      return all_[i];
    }
    static constexpr std::size_t direct = 1024;
    std::vector<Looked> first_;                          // [state]
    std::vector<Looked> all_ = std::vector<Looked>(64);  // open addressing: later states, of which a walk meets few
    std::size_t used_ = 0;
  };

  TokenWalks(TokenNodes const& trie, Pushdown& machine) : trie_(trie), machine_(machine) {}

  /// How many plain characters may follow, as far as tokens can tell.
  SLUICE_LAZY std::int32_t characters(std::int32_t node) {
    auto const run = machine_.plain_run(node);
    return trie_.plain_text().longest(run) ? PlainText::unlimited : run;
  }

  /// Where all plain texts of up to so many characters can be read, and no longer ones: this number. 0: it is not so, or
  /// more than tokens can tell.
  SLUICE_LAZY std::int32_t exact_plain_length(State from) {
    constexpr auto plain = ((std::uint32_t{1} << CharacterKinds::count) - 1) & ~CharacterKinds::not_plain;
    if (machine_.next(from, std::uint8_t{'z'}) == Pushdown::dead) return 0;
    LookedStates states;
    for (std::int32_t n = 0; n <= NodeTokens::most_depth && counts_characters(from); ++n) {
      auto const to = machine_.next(from, std::uint8_t{'z'});
      if (to == Pushdown::dead) return reads_no_plain(from) ? n : 0;
      if (to == from || machine_.next(from, std::uint8_t{'~'}) != to || all_lead(states, from, plain) != to) return 0;
      from = to;
    }
    return 0;
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

  /// Walks through all tokens that can be read in a state. Where it allows any plain characters, or any of certain kinds,
  /// their tokens are not looked at one by one.
  /// \param visit  (trie, node, state): as for walk()
  /// \param plain  (node of the whole trie, below which plain tokens that are not longer are taken; characters)
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
      plain(at, most);
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
  template <class Visit>
  void walk_in(TrieNodes const& trie, std::int32_t from, State state, Visit const& visit) {
    walk(trie, from, machine_, state, [&](std::int32_t at, State next) { return visit(trie, at, next); });
  }

 private:
  SLUICE_LAZY std::int32_t length(LookedStates& states, State state) {
    auto& known = states[state].length;
    if (known < 0) known = machine_.plain_length(state);
    return known;
  }
  /// Whether so many characters of these kinds can be read, whichever they are: all lead to one state, and from that one
  /// to the next.
  SLUICE_LAZY bool lead_on(LookedStates& states, State state, std::uint32_t kinds, std::int32_t characters) {
    for (; characters > 0 && state != Pushdown::dead; --characters) {
      auto const to = all_lead(states, state, kinds);
      if (to == state) break;
      state = to;
    }
    return state != Pushdown::dead;
  }
  /// The state to which all characters of these kinds lead; dead: there is not one.
  SLUICE_LAZY State all_lead(LookedStates& states, State state, std::uint32_t kinds) {
    auto& known = states[state];
    auto const look = [&](std::int32_t kind) {
      auto const bit = std::uint32_t{1} << kind;
      known.tried |= bit;
      auto to = State{-1};
      if (!CharacterKinds::all_of(kind, [&](auto bytes) { return leads(state, to, bytes); })) return;
      if (known.to == -1 || (to == state && known.to != state)) known.to = to, known.same = 0;
      if (to == known.to) known.same |= bit;
    };
    if (known.tried == 0) look(CharacterKinds::letters);  // they lead where most do
    for (auto left = kinds & ~known.tried; left != 0; left &= left - 1) look(std::countr_zero(left));
    return (kinds & ~known.same) == 0 ? known.to : Pushdown::dead;
  }
  /// Whether nothing but characters is counted.
  SLUICE_LAZY bool counts_characters(State state) {
    auto const& a = machine_.automaton();
    return machine_.with_nodes([&](Nodes const& nodes) {
      return std::ranges::all_of(machine_.ways(state), [&](auto const& way) {
        return std::ranges::all_of(nodes.places(way.first), [&](auto const& place) {
          auto const within = a.places[static_cast<std::size_t>(place.first)].within;
          return within < 0 || a.loops[static_cast<std::size_t>(within)].counts_characters();
        });
      });
    });
  }
  SLUICE_LAZY bool reads_no_plain(State state) {
    auto const& classes = machine_.automaton().class_of;
    return std::ranges::none_of(plain_characters, [&](auto const& bytes) {
      for (int c = bytes[0].first, before = -1; c <= bytes[0].last; ++c) {
        if (classes[static_cast<std::size_t>(c)] == before) continue;
        before = classes[static_cast<std::size_t>(c)];
        if (machine_.next(state, static_cast<std::uint8_t>(c)) != Pushdown::dead) return true;
      }
      return false;
    });
  }
  /// Whether all characters of these bytes lead to one state; sets it, if it is -1.
  SLUICE_LAZY bool leads(State from, State& to, std::span<CharacterKinds::Bytes const> bytes) {
    auto const& classes = machine_.automaton().class_of;
    for (int c = bytes[0].first, before = -1; c <= bytes[0].last; ++c) {
      if (classes[static_cast<std::size_t>(c)] == before) continue;
      before = classes[static_cast<std::size_t>(c)];
      auto const next = machine_.next(from, static_cast<std::uint8_t>(c));
      if (next == Pushdown::dead) return false;
      if (bytes.size() > 1) {
        if (!leads(next, to, bytes.subspan(1))) return false;
      } else if (to == -1) {
        to = next;
      } else if (to != next) {
        return false;
      }
    }
    return true;
  }

  /// Whether whole() took all tokens below a node.
  template <class Whole>
  bool took_whole(TrieNodes const& trie, std::int32_t at, State state, LookedStates& states, Whole const& whole) {
    auto const kinds = trie.kinds(at);
    if (kinds >= CharacterKinds::broken) return false;
    auto& known = states[state];
    auto const looked =
        (kinds & ~known.tried) == 0 || ((kinds & known.tried & ~known.same) == 0 && ++known.visits >= 4);
    auto const to = looked ? all_lead(states, state, kinds) : Pushdown::dead;
    if (to == state) return whole(trie.below(at), state, true);
    auto const characters = trie.characters(at);
    auto const plain = (kinds & CharacterKinds::not_plain) == 0 && characters <= length(states, state);
    return (plain || (to != Pushdown::dead && lead_on(states, to, kinds, characters - 1))) &&
           whole(trie.below(at), state, false);
  }

  TokenNodes const& trie_;
  Pushdown& machine_;
};

}  // namespace sluice::inline v0::detail
