// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sets of texts as automata over characters.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A deterministic automaton over Unicode characters. It begins in state 0; a character that no edge names leads
/// nowhere; without states it accepts nothing. Every state can reach one that accepts.
class TextAutomaton {
 public:
  struct Edge {
    char32_t first, last;
    std::int32_t to;
    friend bool operator==(Edge const&, Edge const&) = default;
  };
  struct State {
    std::vector<Edge> edges{};  // sorted and disjoint
    bool accepts = false;
  };
  static constexpr std::size_t most_states = 50'000;

  std::vector<State> states;

  SLUICE_LAZY static TextAutomaton anything() { return {.states = {{{{0, last_character, 0}}, true}}}; }
  /// Texts of at least and at most so many characters. \param most  -1: any number
  SLUICE_LAZY static TextAutomaton lengths(std::int32_t least, std::int32_t most) {
    TextAutomaton out;
    auto const count = most < 0 ? least : most;
    if (most >= 0 && most < least) return out;
    check(static_cast<std::size_t>(count));
    for (std::int32_t i = 0; i <= count; ++i) {
      out.states.push_back({{}, i >= least});
      if (i < count || most < 0) out.states.back().edges.push_back({0, last_character, (std::min)(i + 1, count)});
    }
    return out;
  }
  /// Exactly these texts.
  SLUICE_LAZY static TextAutomaton words(std::vector<std::u32string> words) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    TextAutomaton out;
    if (!words.empty()) out.add_words(words, 0, false);
    return out;
  }
  /// All texts but these.
  SLUICE_LAZY static TextAutomaton but(std::vector<std::u32string> words) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    auto out = anything();
    if (words.empty()) return out;
    out.states.clear();
    auto const all = out.add_words(words, 0, true);
    for (auto& state : out.states)
      for (auto& edge : state.edges)
        if (edge.to < 0) edge.to = all;
    return std::move(out).trimmed();
  }

  bool empty() const { return states.empty(); }
  /// Whether every text is accepted.
  bool full() const {
    return states.size() == 1 && states[0].accepts && states[0].edges == std::vector<Edge>{{0, last_character, 0}};
  }
  SLUICE_LAZY std::int32_t next(std::int32_t state, char32_t c) const {
    auto const& edges = states[at(state)].edges;
    auto const it =
        std::upper_bound(edges.begin(), edges.end(), c, [](char32_t x, Edge const& e) { return x < e.first; });
    return it == edges.begin() || (it - 1)->last < c ? -1 : (it - 1)->to;
  }
  SLUICE_LAZY bool matches(std::u32string_view text) const {
    std::int32_t state = empty() ? -1 : 0;
    for (auto const c : text)
      if (state >= 0) state = next(state, c);
    return state >= 0 && states[at(state)].accepts;
  }

  /// \param keep  whether texts are kept, by whether this and the other accept them; not those that neither accepts
  template <class Keep>
  TextAutomaton combined(TextAutomaton const& other, Keep const& keep) const {
    auto const mine = keep(true, false), its = keep(false, true);
    using Pair = std::pair<std::int32_t, std::int32_t>;
    std::unordered_map<std::uint64_t, std::int32_t> numbers;
    std::vector<Pair> pairs;
    auto const number = [&](Pair pair) -> std::int32_t {
      if ((pair.first < 0 && !its) || (pair.second < 0 && !mine) || (pair.first < 0 && pair.second < 0)) return -1;
      auto const key =
          std::uint64_t{static_cast<std::uint32_t>(pair.first)} << 32 | static_cast<std::uint32_t>(pair.second);
      auto const [it, fresh] = numbers.try_emplace(key, static_cast<std::int32_t>(pairs.size()));
      if (fresh) pairs.push_back(pair), check(pairs.size());
      return it->second;
    };
    TextAutomaton out;
    if (number({empty() ? -1 : 0, other.empty() ? -1 : 0}) < 0) return out;
    std::vector<Edge> const none;
    for (std::size_t i = 0; i < pairs.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [a, b] = pairs[i];
      State state;
      state.accepts = keep(a >= 0 && states[at(a)].accepts, b >= 0 && other.states[at(b)].accepts);
      auto const &x = a < 0 ? none : states[at(a)].edges, &y = b < 0 ? none : other.states[at(b)].edges;
      std::size_t p = 0, q = 0;
      char32_t c = 0;
      while (p < x.size() || q < y.size()) {
        auto const begin_x = p < x.size() ? (std::max)(c, x[p].first) : last_character + 1;
        auto const begin_y = q < y.size() ? (std::max)(c, y[q].first) : last_character + 1;
        c = (std::min)(begin_x, begin_y);
        auto const in_x = begin_x == c, in_y = begin_y == c;
        char32_t last = last_character;
        if (p < x.size()) last = (std::min<char32_t>)(last, in_x ? x[p].last : begin_x - 1);
        if (q < y.size()) last = (std::min<char32_t>)(last, in_y ? y[q].last : begin_y - 1);
        if (auto const to = number({in_x ? x[p].to : -1, in_y ? y[q].to : -1}); to >= 0)
          join(state.edges, {c, last, to});
        c = last + 1;
        if (p < x.size() && x[p].last < c) ++p;
        if (q < y.size() && y[q].last < c) ++q;
      }
      out.states.push_back(std::move(state));
    }
    return std::move(out).trimmed().minimal();
  }
  friend TextAutomaton operator&(TextAutomaton const& a, TextAutomaton const& b) {
    if (a.full() || b.empty()) return b;
    if (b.full() || a.empty()) return a;
    return a.combined(b, std::logical_and{});
  }
  friend TextAutomaton operator|(TextAutomaton const& a, TextAutomaton const& b) {
    if (a.full() || b.empty()) return a;
    if (b.full() || a.empty()) return b;
    return a.combined(b, std::logical_or{});
  }
  /// Texts of the first and not of the second.
  friend TextAutomaton operator-(TextAutomaton const& a, TextAutomaton const& b) {
    if (a.empty() || b.empty()) return a;
    return a.combined(b, [](bool x, bool y) { return x && !y; });
  }

  /// What stands before texts of the other at the ends of texts of this one.
  SLUICE_LAZY TextAutomaton without_end(TextAutomaton const& ends) const {
    if (empty() || ends.empty()) return {};
    // Pairs of states, backwards from those in which both accept.
    auto const size = ends.states.size();
    check(states.size() * size);
    std::vector<std::vector<std::int32_t>> before(states.size() * size);
    std::vector<std::int32_t> open;
    std::vector<bool> seen(before.size());
    for (std::size_t a = 0; a < states.size(); ++a)
      for (std::size_t b = 0; b < size; ++b) {
        auto const pair = static_cast<std::int32_t>(a * size + b);
        if (states[a].accepts && ends.states[b].accepts) seen[at(pair)] = true, open.push_back(pair);
        for (auto const& x : states[a].edges)
          for (auto const& y : ends.states[b].edges)
            if (x.first <= y.last && y.first <= x.last) before[at(x.to) * size + at(y.to)].push_back(pair);
      }
    while (!open.empty()) {
      auto const pair = open.back();
      open.pop_back();
      for (auto const one : before[at(pair)])
        if (!seen[at(one)]) seen[at(one)] = true, open.push_back(one);
    }
    auto out = *this;
    for (std::size_t a = 0; a < states.size(); ++a) out.states[a].accepts = seen[a * size];
    return std::move(out).trimmed();
  }

  /// The number of characters of a shortest text.
  SLUICE_LAZY std::int32_t fewest() const {
    std::vector<std::int32_t> open{0};
    std::vector<bool> seen(states.size());
    std::int32_t count = 0;
    for (std::size_t i = 0, last = 1; i < open.size(); ++i) {
      if (i == last) ++count, last = open.size();
      if (states[at(open[i])].accepts) break;
      for (auto const& edge : states[at(open[i])].edges)
        if (!seen[at(edge.to)]) seen[at(edge.to)] = true, open.push_back(edge.to);
    }
    return count;
  }
  /// Its texts of at most so many characters.
  SLUICE_LAZY TextAutomaton up_to(std::int32_t most) const {
    // A state for each state and number of characters before it, if an end is near enough.
    constexpr auto none = std::int32_t{1} << 30;
    std::vector<std::int32_t> left(states.size(), none);
    for (auto changed = true; changed;) {
      changed = false;
      for (auto i = states.size(); i-- > 0;) {
        auto least = states[i].accepts ? 0 : left[i];
        for (auto const& edge : states[i].edges) least = (std::min)(least, left[at(edge.to)] + 1);
        if (least < left[i]) left[i] = least, changed = true;
      }
    }
    TextAutomaton out;
    std::unordered_map<std::uint64_t, std::int32_t> numbers;
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    auto const number = [&](std::int32_t state, std::int32_t count) -> std::int32_t {
      if (count + left[at(state)] > most) return -1;
      auto const key = std::uint64_t{static_cast<std::uint32_t>(state)} << 32 | static_cast<std::uint32_t>(count);
      auto const [it, fresh] = numbers.try_emplace(key, static_cast<std::int32_t>(pairs.size()));
      if (fresh) pairs.emplace_back(state, count), check(pairs.size());
      return it->second;
    };
    if (empty() || number(0, 0) < 0) return out;
    for (std::size_t i = 0; i < pairs.size(); ++i) {  // NOLINT(modernize-loop-convert): grows
      auto const [state, count] = pairs[i];
      State made{{}, states[at(state)].accepts};
      for (auto const& [first, last, to] : states[at(state)].edges)
        if (auto const next = number(to, count + 1); next >= 0) join(made.edges, {first, last, next});
      out.states.push_back(std::move(made));
    }
    return out;
  }

  /// Adds an edge behind the others, joined with the last one where that leads to the same state.
  SLUICE_LAZY static void join(std::vector<Edge>& edges, Edge edge) {
    if (!edges.empty() && edges.back().to == edge.to && edges.back().last + 1 == edge.first)
      edges.back().last = edge.last;
    else edges.push_back(edge);
  }
  SLUICE_LAZY static void check(std::size_t states) {
    if (states > most_states) throw std::length_error("more than " + std::to_string(most_states) + " states");
  }

  /// Without states that lead nowhere.
  SLUICE_LAZY TextAutomaton trimmed() && {
    std::vector<std::int32_t> begins, from, open, number(states.size(), -1);
    find_sources(begins, from);
    for (std::size_t i = 0; i < states.size(); ++i)
      if (states[i].accepts) number[i] = 0, open.push_back(static_cast<std::int32_t>(i));
    while (!open.empty()) {
      auto const state = open.back();
      open.pop_back();
      for (auto i = begins[at(state)]; i < begins[at(state) + 1]; ++i)
        if (auto const before = from[at(i)]; number[at(before)] < 0) number[at(before)] = 0, open.push_back(before);
    }
    if (states.empty() || number[0] < 0) return {};
    std::int32_t count = 0;
    for (auto& one : number) one = one < 0 ? -1 : count++;
    if (at(count) == states.size()) return std::move(*this);
    TextAutomaton out;
    out.states.reserve(at(count));
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (number[i] < 0) continue;
      out.states.push_back({{}, states[i].accepts});
      for (auto const& [first, last, to] : states[i].edges)
        if (number[at(to)] >= 0) join(out.states.back().edges, {first, last, number[at(to)]});
    }
    return out;
  }

  /// With states of the same future joined (Moore 1956). States are looked at again only if they lead to one that got
  /// another part (Hopcroft 1971).
  SLUICE_LAZY TextAutomaton minimal() && {
    auto const size = states.size();
    if (size < 2) return std::move(*this);
    std::vector<std::int32_t> begins, from, part(size), touched(size);
    find_sources(begins, from);
    struct Looked {
      std::int32_t part;
      std::pair<std::uint64_t, std::uint64_t> key;
      std::int32_t state;
      auto operator<=>(Looked const&) const = default;  // NOLINT(modernize-use-nullptr)
    };
    std::vector<std::int32_t> sizes{static_cast<std::int32_t>(size)};  // [part]
    std::vector<Looked> looked;
    std::vector<std::uint8_t> waits(size, 1);
    for (std::size_t i = 0; i < size; ++i) touched[i] = static_cast<std::int32_t>(i);
    while (!touched.empty()) {
      looked.clear();
      for (auto const state : touched) {
        looked.push_back({part[at(state)], key_of(states[at(state)], part), state});
        waits[at(state)] = 0;
      }
      std::sort(looked.begin(), looked.end());
      touched.clear();
      for (std::size_t i = 0; i < looked.size();) {
        // States of a part that are not looked at are alike, and unlike these: they keep the part's number.
        auto const own = looked[i].part;
        auto last = i;
        while (last < looked.size() && looked[last].part == own) ++last;
        auto const behind = [&](std::size_t k) {
          auto end = k;
          while (end < last && looked[end].key == looked[k].key) ++end;
          return end;
        };
        auto kept = sizes[at(own)] > static_cast<std::int32_t>(last - i) ? last : i;
        if (kept < last)
          for (auto k = i, end = i; k < last; k = end)
            if (end = behind(k); end - k > behind(kept) - kept) kept = k;
        for (auto k = i, end = i; k < last; k = end) {
          end = behind(k);
          if (k == kept) continue;
          auto const number = static_cast<std::int32_t>(sizes.size());
          sizes.push_back(static_cast<std::int32_t>(end - k));
          sizes[at(own)] -= sizes.back();
          for (auto n = k; n < end; ++n) {
            auto const state = looked[n].state;
            part[at(state)] = number;
            for (auto e = begins[at(state)]; e < begins[at(state) + 1]; ++e)
              if (auto const before = from[at(e)]; std::exchange(waits[at(before)], std::uint8_t{1}) == 0)
                touched.push_back(before);
          }
        }
        i = last;
      }
    }
    auto const count = sizes.size();
    if (count == size) return std::move(*this);
    std::vector<std::int32_t> number(count, -1);  // in order of appearance
    std::int32_t numbers = 0;
    for (auto& one : part) {
      auto& known = number[at(one)];
      if (known < 0) known = numbers++;
      one = known;
    }
    TextAutomaton out;
    out.states.resize(count);
    std::vector<bool> done(count);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (done[at(part[i])]) continue;
      done[at(part[i])] = true;
      auto& state = out.states[at(part[i])];
      state.accepts = states[i].accepts;
      for (auto const& [first, last, to] : states[i].edges) join(state.edges, {first, last, part[at(to)]});
    }
    return out;
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  /// The states with edges to state i: from[begins[i]] to from[begins[i + 1] - 1].
  SLUICE_LAZY void find_sources(std::vector<std::int32_t>& begins, std::vector<std::int32_t>& from) const {
    begins.assign(states.size() + 1, 0);
    for (auto const& state : states)
      for (auto const& edge : state.edges) ++begins[at(edge.to)];
    std::int32_t sum = 0;
    for (auto& begin : begins) sum += begin, begin = sum;
    from.resize(at(sum));
    for (std::size_t i = 0; i < states.size(); ++i)
      for (auto const& edge : states[i].edges) from[at(--begins[at(edge.to)])] = static_cast<std::int32_t>(i);
  }

  /// Equal for states that lead to the same parts: 128 bits of hash, of which two different ones that are equal are not to
  /// be expected in the life of a machine.
  SLUICE_LAZY static std::pair<std::uint64_t, std::uint64_t> key_of(State const& state,
                                                                    std::vector<std::int32_t> const& part) {
    std::pair<std::uint64_t, std::uint64_t> key{state.accepts ? 3 : 1, 2};
    auto const mix = [&](std::uint64_t x) {
      key.first = (key.first ^ x) * 0x9E3779B97F4A7C15u, key.first ^= key.first >> 29;
      key.second = (key.second + x) * 0xC2B2AE3D27D4EB4Fu, key.second ^= key.second >> 31;
    };
    for (std::size_t i = 0; i < state.edges.size();) {
      auto const first = state.edges[i].first;
      auto const to = part[at(state.edges[i].to)];
      auto last = state.edges[i].last;
      for (++i; i < state.edges.size() && state.edges[i].first == last + 1 && part[at(state.edges[i].to)] == to; ++i)
        last = state.edges[i].last;
      mix(std::uint64_t{first} << 32 | last), mix(static_cast<std::uint64_t>(to));
    }
    return key;
  }

  /// The state for words that share their first `depth` characters; edges to -1 stand for a text that is none of them.
  /// \returns  with `but`, at depth 0: the state that accepts everything
  SLUICE_LAZY std::int32_t add_words(std::span<std::u32string const> words, std::size_t depth, bool but) {
    auto const id = states.size();
    check(id);
    if (depth > 10'000) throw std::length_error("a text of more than 10000 characters");
    states.emplace_back();
    auto const ends = words.front().size() == depth;
    states[id].accepts = ends != but;
    if (ends) words = words.subspan(1);
    char32_t c = 0;
    std::vector<Edge> edges;
    while (!words.empty()) {
      auto const own = words.front()[depth];
      auto const end = std::find_if(words.begin(), words.end(), [&](auto const& other) { return other[depth] != own; });
      auto const count = static_cast<std::size_t>(end - words.begin());
      if (but && own > c) edges.push_back({c, own - 1, -1});
      edges.push_back({own, own, static_cast<std::int32_t>(states.size())});
      add_words(words.first(count), depth + 1, but);
      c = own + 1, words = words.subspan(count);
    }
    if (but && c <= last_character) edges.push_back({c, last_character, -1});
    states[id].edges = std::move(edges);
    if (!but || depth > 0) return 0;
    states.push_back({{{0, last_character, static_cast<std::int32_t>(states.size())}}, true});
    return static_cast<std::int32_t>(states.size()) - 1;
  }
};

/// The characters of a UTF-8 text.
inline std::u32string decoded(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    auto const [c, size] = read_utf8(text);
    out += c, text.remove_prefix((std::max)(size, std::size_t{1}));
  }
  return out;
}

}  // namespace sluice::inline v0::detail
