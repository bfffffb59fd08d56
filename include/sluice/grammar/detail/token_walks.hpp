// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the tokens that can be read in a state are found.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/character_kinds.hpp>
#include <sluice/grammar/detail/node_tokens.hpp>
#include <sluice/grammar/detail/plain_text.hpp>
#include <sluice/grammar/detail/pushdown.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/trie_nodes.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
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
  static constexpr std::int8_t few = 3, any = (std::numeric_limits<std::int8_t>::max)();
  /// So many characters of these kinds can be read, whichever they are.
  struct Ahead {
    std::uint32_t kinds = 0;
    std::int8_t length = -few;  // less than 0: not looked for, so often
    std::int8_t most = any;     // of plain characters, no more than this can be read, in the rule
  };
  /// What is known of a state while it is walked through.
  struct Looked {
    State state = -1;
    std::int32_t length = -1, visits = 0;  // as Pushdown::plain_length(); -1: unknown
    std::uint32_t tried = 0, stays = 0;    // kinds of characters; those of them that lead back to the state
    // So many characters of each family can be read, whichever they are; less than 0: not looked for, so often.
    std::array<std::int8_t, CharacterKinds::families.size()> reach{-few, -few, -few, -few};
    Ahead ahead{};
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
    std::int32_t steps = 30'000;  // left for looking ahead

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
  /// \param plain  (tokens, of which those that are plain and not longer are taken; characters; state)
  /// \param whole  (tokens, which all can be read; state; whether they lead back to it): whether it took them
  /// \param ahead  whether to look ahead for characters that can be read, whichever they are
  template <class Visit, class Plain, class Whole>
  void walk_fast(State from, Visit const& visit, Plain const& plain, Whole const& whole, bool ahead = true) {
    auto const& all = trie_.nodes();
    auto const& text = trie_.plain_text();
    LookedStates states;
    if (!ahead) states.steps = 0;
    walk(all, 0, machine_, from, [&](std::int32_t at, State state) {
      if (!visit(all, at, state)) return false;
      if (took_whole(all, at, state, states, whole)) return false;
      auto const rest = text.rest_of(at);
      if (rest == PlainText::apart) return true;
      auto most = length(states, state);
      if (most < PlainText::slices[0] && all.end(at) - at > 64) {
        auto const& found = this->ahead(states, state);
        if (found.kinds == CharacterKinds::plain) most = (std::max)(most, std::int32_t{found.length});
        if (most < PlainText::slices[0] && found.length > 0 && found.most < NodeTokens::most_depth - all.depth(at)) {
          walk_lengths(at, state, most, found.most, visit, plain);
          if (rest >= 0) walk_in(text.rest(), rest, state, visit);
          return false;
        }
      }
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
  /// The same below a node, where any `least` plain characters, and never more than `most`, can be read.
  template <class Visit, class Plain>
  void walk_lengths(std::int32_t from, State state, std::int32_t least, std::int32_t most, Visit const& visit,
                    Plain const& plain) {
    auto const& all = trie_.nodes();
    auto const begin = trie_.bytes(all.below(from)[0]).substr(0, static_cast<std::size_t>(all.depth(from)));
    plain(all.below(from), PlainText::count(begin) + least, state);
    auto const up_to = [](std::int32_t count) { return count <= 0 ? 0u : count > 31 ? ~0u : (1u << count) - 1; };
    std::vector<std::int32_t> characters(static_cast<std::size_t>(all.depth() - all.depth(from)) + 1);  // [depth]
    walk(all, from, machine_, state, [&](std::int32_t at, State next) {
      auto const depth = static_cast<std::size_t>(all.depth(at) - all.depth(from));
      auto const between = trie_.plain_text().rest_of(at) != PlainText::apart;
      auto const count = characters[depth] = characters[depth - 1] + (between ? 1 : 0);
      if (!visit(all, at, next)) return false;
      return (all.lengths(at) & up_to(most - count) & ~up_to(least - count)) != 0;
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
  /// Whether characters of all these kinds lead from a state back to it, so that all tokens of them can be read.
  SLUICE_LAZY bool stays(LookedStates& states, State state, std::uint32_t kinds) {
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
  SLUICE_LAZY bool leads(State from, State to, std::span<CharacterKinds::Bytes const> bytes) {
    auto const& classes = machine_.automaton().class_of;
    for (int c = bytes[0].first, before = -1; c <= bytes[0].last; ++c) {
      if (classes[static_cast<std::size_t>(c)] == before) continue;
      before = classes[static_cast<std::size_t>(c)];
      auto const next = machine_.next(from, static_cast<std::uint8_t>(c));
      if (bytes.size() == 1 ? next != to : next == Pushdown::dead || !leads(next, to, bytes.subspan(1))) return false;
    }
    return true;
  }

  /// At least so many characters of a family can be read, whichever they are. Looked for where a state is met again.
  SLUICE_LAZY std::int32_t reach(LookedStates& states, State state, std::size_t family) {
    auto& known = states[state].reach[family];
    if (known >= 0) return known;
    if (++known < 0) return 0;
    std::int8_t found = 0;
    try {
      found = find_reach(states, state, CharacterKinds::families[family]);
    } catch (std::length_error const&) {  // a limit that tokens may never reach
    }
    return states[state].reach[family] = found;
  }
  SLUICE_LAZY std::int8_t find_reach(LookedStates& states, State from, std::uint32_t kinds) {
    std::vector<Seen> seen{{from, -1}};
    std::size_t level = 0;  // where states after as many characters begin
    for (std::int8_t count = 0; count < NodeTokens::most_depth; ++count) {
      auto const end = seen.size();
      for (; level < end; ++level)
        if (dead(states, level, kinds, seen) != 0) return count;
      if (seen.size() == end) return any;
      if (seen.size() > most_seen) return static_cast<std::int8_t>(count + 1);
    }
    return NodeTokens::most_depth;
  }

  /// Kinds of characters that can be read, whichever they are: most of those that are plain. Looked for where a state is
  /// met again.
  SLUICE_LAZY Ahead const& ahead(LookedStates& states, State state) {
    auto& known = states[state].ahead;
    if (known.length >= 0 || ++known.length < 0) return known;
    Ahead found{0, 0};
    try {
      found = look_ahead(states, state);
    } catch (std::length_error const&) {
    }
    return states[state].ahead = found;
  }
  SLUICE_LAZY Ahead look_ahead(LookedStates& states, State from) {
    auto kinds = CharacterKinds::plain;
    for (auto tries = 0; tries < 8; ++tries) {
      std::vector<Seen> seen{{from, -1}};
      std::size_t level = 0;
      auto again = false;
      for (std::int8_t count = 0; count < NodeTokens::most_depth && !again; ++count) {
        auto const end = seen.size();
        for (; level < end && !again; ++level) {
          auto const none = dead(states, level, kinds, seen);
          if (none == 0) continue;
          auto const weight = CharacterKinds::weight(none);
          auto const rarest = seen[level].rarest;  // of the characters that led here
          if (count > 0 && weight_of(rarest) < (std::min)(20, weight)) {
            kinds &= ~(std::uint32_t{1} << rarest), again = true;
          } else if (count > 0 && 2 * weight >= CharacterKinds::weight(kinds)) {
            return {kinds, count, kinds == CharacterKinds::plain ? find_most(states, from) : any};
          } else {
            kinds &= ~none;
          }
        }
        if (again) break;
        if (kinds == 0) return {0, 0};
        if (seen.size() == end) return {kinds, any};
        if (seen.size() > most_seen) return {kinds, static_cast<std::int8_t>(count + 1)};
      }
      if (!again) return {kinds, NodeTokens::most_depth};
    }
    return {0, 0};
  }
  /// No more plain characters than this can be read within the rule.
  SLUICE_LAZY std::int8_t find_most(LookedStates& states, State from) {
    std::vector<State> level{from};
    for (std::int8_t count = 0; count < NodeTokens::most_depth; ++count) {
      std::vector<State> behind;
      for (auto const state : level) {
        if (machine_.left(state)) return any;
        for (auto const& row : CharacterKinds::rows)
          if ((CharacterKinds::plain >> row.kind & 1) != 0)
            (void)reads(state, row.bytes, 0, states.steps, true, [&](State next) {
              if (std::ranges::find(behind, next) == behind.end()) behind.push_back(next);
            });
      }
      if (states.steps < 0 || behind.size() > most_seen) return any;
      if (behind.empty()) return count;
      level.swap(behind);
    }
    return any;
  }
  struct Seen {
    State state;
    std::int32_t rarest;  // kind on the way; -1: none
  };
  static constexpr std::size_t most_seen = 64;
  static std::int32_t weight_of(std::int32_t kind) {
    return kind < 0 ? CharacterKinds::weight(CharacterKinds::plain)
                    : CharacterKinds::weights[static_cast<std::size_t>(kind)];
  }
  /// Those of the kinds of which a state cannot read every character; adds the states behind the others.
  SLUICE_LAZY std::uint32_t dead(LookedStates& states, std::size_t i, std::uint32_t kinds, std::vector<Seen>& seen) {
    std::uint32_t out = 0;
    auto const [state, rarest] = seen[i];
    for (auto const& row : CharacterKinds::rows) {
      auto const bit = std::uint32_t{1} << row.kind;
      if ((kinds & ~out & bit) == 0) continue;
      auto const rarer = weight_of(row.kind) < weight_of(rarest) ? row.kind : rarest;
      auto const all = reads(state, row.bytes, 0, states.steps, false, [&](State next) {
        if (std::ranges::find(seen, next, &Seen::state) == seen.end()) seen.push_back({next, rarer});
      });
      if (!all) out |= bit;
    }
    return out;
  }
  /// Whether a state can read all characters of a row; take() gets the states behind them, of all if `every`.
  /// \param steps  gets fewer
  template <class Take>
  bool reads(State from, std::array<CharacterKinds::Bytes, 4> const& bytes, std::size_t i, std::int32_t& steps,
             bool every, Take const& take) {
    auto const last = i == 3 || bytes[i + 1].last == 0;
    auto const& classes = machine_.automaton().class_of;
    auto whole = true;
    for (int c = bytes[i].first, before = -1; c <= bytes[i].last; ++c) {
      if (classes[static_cast<std::size_t>(c)] == before) continue;
      before = classes[static_cast<std::size_t>(c)];
      if (--steps < 0) return false;
      auto const next = machine_.next(from, static_cast<std::uint8_t>(c));
      if (next != Pushdown::dead && last) take(next);
      whole = next != Pushdown::dead && (last || reads(next, bytes, i + 1, steps, every, take)) && whole;
      if (!whole && !every) return false;
    }
    return whole;
  }

  /// Whether whole() took all tokens below a node.
  template <class Whole>
  bool took_whole(TrieNodes const& trie, std::int32_t at, State state, LookedStates& states, Whole const& whole) {
    auto const kinds = trie.kinds(at);
    if (kinds >= CharacterKinds::broken) return false;
    if (stays(states, state, kinds)) return whole(trie.below(at), state, true);
    if ((kinds & CharacterKinds::not_plain) != 0) return false;
    if (trie.characters(at) <= length(states, state)) return whole(trie.below(at), state, false);
    if (trie.end(at) - at < 4) return false;
    for (std::size_t family = 0; family < CharacterKinds::families.size(); ++family)
      if ((kinds & ~CharacterKinds::families[family]) == 0)
        return trie.characters(at) <= reach(states, state, family) && whole(trie.below(at), state, false);
    auto const& found = ahead(states, state);
    return (kinds & ~found.kinds) == 0 && trie.characters(at) <= found.length && whole(trie.below(at), state, false);
  }

  TokenNodes const& trie_;
  Pushdown& machine_;
};

}  // namespace sluice::inline v0::detail
