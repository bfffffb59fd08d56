// SPDX-License-Identifier: Apache-2.0
/// \file
/// Automata over characters as automata over the bytes that spell them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Which characters of a string may be written as escapes, where they need not be.
enum class Escapes : std::uint8_t { usual, any };

/// Spells every text of an automaton, as UTF-8 or as the contents of a JSON string. What follows the same first bytes is
/// written once.
class TextBytes {
 public:
  /// \param most  characters; -1: any number
  SLUICE_LAZY static ByteAutomaton utf8(TextAutomaton const& texts, std::int32_t most = -1) {
    TextAutomaton some;
    auto const& all = written(texts, some);
    auto out = TextBytes(all, false, Escapes::usual).make(false);
    out.most = most, out.characters = static_cast<Id>(all.states.size());
    return out;
  }
  /// Texts of at most so many whole tokens, which may end anywhere within. \param characters  -1: any number
  /// \param name  for messages
  SLUICE_LAZY static ByteAutomaton in_tokens(TextAutomaton const& texts, std::int32_t tokens, std::int32_t characters,
                                             std::string name) {
    auto out = utf8(characters < 0 ? texts : texts.up_to(characters), tokens);
    out.characters = static_cast<Id>(out.states.size());
    out.tokens = std::move(name);
    return out;
  }
  /// The contents of JSON strings. \param closed  the closing quotation mark follows
  /// \param most  characters; -1: any number
  SLUICE_LAZY static ByteAutomaton json(TextAutomaton const& texts, Escapes escapes, bool closed,
                                        std::int32_t most = -1) {
    TextAutomaton some;
    auto const& all = written(texts, some);
    auto out = TextBytes(all, true, escapes).make(closed);
    out.most = most, out.characters = static_cast<Id>(all.states.size());
    return out;
  }
  /// The contents of JSON strings other than these, with the closing quotation mark; without states: not as simple as
  /// names usually are. \param names  sorted, all different
  SLUICE_LAZY static ByteAutomaton other_names(std::span<std::string const> names, Escapes escapes) {
    ByteAutomaton out;
    auto const simple = [](char c) {
      return c >= ' ' && c <= '~' && std::string_view("\"&'/<>\\").find(c) == std::string_view::npos;
    };
    if (names.empty() || escapes != Escapes::usual || !std::ranges::all_of(names, [&](auto const& name) {
          return name.size() < 1000 && std::ranges::all_of(name, simple);
        }))
      return out;
    static ByteAutomaton const any = json(TextAutomaton::anything(), Escapes::usual, true);
    std::size_t size = any.states.size();
    for (auto const& name : names) size += name.size();
    out.states.reserve(size), out.edges.reserve(size * 8);
    add_names(names, 0, any, out);
    auto const offset = static_cast<Id>(out.states.size()), edges = static_cast<Id>(out.edges.size());
    for (auto& edge : out.edges)
      if (edge.to < 0) edge.to = offset - 1 - edge.to;
    for (auto const& [first, count, accepts] : any.states) out.states.push_back({edges + first, count, accepts});
    for (auto const& [first, last, to] : any.edges) out.edges.push_back({first, last, offset + to});
    return out;
  }

  /// Characters that are written as escapes, or may be.
  static std::span<CharacterRange const> escapable(Escapes escapes) {
    static constexpr CharacterRange all[] = {{0, last_character}};
    static constexpr CharacterRange usual[] = {{0, 0x1F},  {'"', '"'}, {'&', '\''},  {'/', '/'},
                                               {'<', '<'}, {'>', '>'}, {'\\', '\\'}, {0x7F, last_character}};
    if (escapes == Escapes::any) return all;
    return usual;
  }

 private:
  using Id = std::int32_t;
  using Edge = TextAutomaton::Edge;
  using Edges = std::vector<Edge>;
  using Key = std::vector<std::uint32_t>;
  struct Hash {
    SLUICE_LAZY std::size_t operator()(Key const& key) const {
      std::uint64_t h = key.size();
      for (auto const one : key) h = (h ^ one) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
      return cast<std::size_t>(h);
    }
  };
  static std::size_t at(Id i) { return static_cast<std::size_t>(i); }

  TextBytes(TextAutomaton const& texts, bool json, Escapes escapes) : texts_(texts), json_(json), escapes_(escapes) {}

  /// Without halves of surrogate pairs, which are no characters: so that every state still leads to an end.
  SLUICE_LAZY static TextAutomaton const& written(TextAutomaton const& texts, TextAutomaton& some) {
    auto const none = [](Edge const& edge) { return edge.first >= 0xD800 && edge.last <= 0xDFFF; };
    if (std::ranges::none_of(texts.states, [&](auto const& state) { return std::ranges::any_of(state.edges, none); }))
      return texts;
    some = texts;
    for (auto& state : some.states) std::erase_if(state.edges, none);
    return some = std::move(some).trimmed();
  }
  /// A state for names that share their first `depth` bytes; an edge to -1 - s leads to the state s of `any`.
  SLUICE_LAZY static void add_names(std::span<std::string const> names, std::size_t depth, ByteAutomaton const& any,
                                    ByteAutomaton& out) {
    auto const id = out.states.size();
    out.states.emplace_back();
    auto const taken = names.front().size() == depth;
    if (taken) names = names.subspan(1);
    out.states[id].first_edge = static_cast<Id>(out.edges.size());
    auto const begun = out.edges.size();
    auto left = names;
    auto const group = [&](std::span<std::string const> all) {
      auto const own = all.front()[depth];
      return static_cast<std::size_t>(
          std::ranges::find_if(all, [&](auto const& other) { return other[depth] != own; }) - all.begin());
    };
    for (auto i = any.states[0].first_edge; i < any.states[0].first_edge + any.states[0].edges; ++i) {
      auto const& [first, last, to] = any.edges[at(i)];
      if (taken && first == '"') continue;
      int c = first;
      while (!left.empty() && static_cast<std::uint8_t>(left.front()[depth]) <= last) {
        auto const byte = static_cast<std::uint8_t>(left.front()[depth]);
        if (byte > c) out.edges.push_back({static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(byte - 1), -1 - to});
        out.edges.push_back({byte, byte, 0});
        c = byte + 1, left = left.subspan(group(left));
      }
      if (c <= last) out.edges.push_back({static_cast<std::uint8_t>(c), last, -1 - to});
    }
    auto const end = out.edges.size();
    out.states[id].edges = static_cast<Id>(end - begun);
    for (auto e = begun; e < end; ++e) {
      if (out.edges[e].to < 0) continue;
      out.edges[e].to = static_cast<Id>(out.states.size());
      auto const count = group(names);
      add_names(names.first(count), depth + 1, any, out);
      names = names.subspan(count);
    }
  }

  SLUICE_LAZY ByteAutomaton make(bool closed) {
    ByteAutomaton out;
    out_.resize(texts_.states.size());
    if (texts_.empty()) out_.resize(1);
    Id end = -1;
    if (closed) end = add();
    for (std::size_t i = 0; i < texts_.states.size(); ++i) {
      auto const& state = texts_.states[i];
      std::vector<ByteAutomaton::Edge> edges;
      if (closed && state.accepts) edges.push_back({'"', '"', end});
      plain(state.edges, edges);
      if (json_)
        if (auto const some = among(state.edges, escapable(escapes_)); !some.empty())
          edges.push_back({'\\', '\\', escape(some)});
      std::ranges::sort(edges, {}, &ByteAutomaton::Edge::first);
      out_[i] = std::move(edges);
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      auto const accepts = closed ? static_cast<Id>(i) == end : i < texts_.states.size() && texts_.states[i].accepts;
      out.states.push_back({static_cast<Id>(out.edges.size()), static_cast<Id>(out_[i].size()), accepts});
      out.edges.insert(out.edges.end(), out_[i].begin(), out_[i].end());
    }
    return out;
  }
  Id add() {
    out_.emplace_back();
    return static_cast<Id>(out_.size()) - 1;
  }

  /// The part of the edges for these characters.
  static Edges among(Edges const& edges, std::span<CharacterRange const> ranges) {
    Edges out;
    std::size_t i = 0;
    for (auto const& [first, last, to] : edges) {
      while (i < ranges.size() && ranges[i].last < first) ++i;
      for (auto k = i; k < ranges.size() && ranges[k].first <= last; ++k)
        out.push_back({(std::max)(first, ranges[k].first), (std::min)(last, ranges[k].last), to});
    }
    return out;
  }
  static void join(std::vector<ByteAutomaton::Edge>& edges, std::uint32_t first, std::uint32_t last, Id to) {
    if (!edges.empty() && edges.back().to == to && edges.back().last + 1u == first)
      edges.back().last = static_cast<std::uint8_t>(last);
    else edges.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), to});
  }

  SLUICE_LAZY void plain(Edges const& edges, std::vector<ByteAutomaton::Edge>& out) {
    static constexpr CharacterRange ascii[] = {{0, 0x7F}}, in_json[] = {{' ', '!'}, {'#', '['}, {']', 0x7F}},
                                    wide[] = {{0x80, last_character}};
    for (auto const& [first, last, to] : among(edges, json_ ? std::span<CharacterRange const>(in_json) : ascii))
      join(out, first, last, to);
    if (edges.empty() || edges.back().last < 0x80) return;
    auto const more = among(edges, wide);
    auto const [it, fresh] = wide_.try_emplace(key(more));
    if (fresh && !like_another(more, false, it->second)) {
      auto const begun = static_cast<Id>(out_.size());
      std::vector<Sequence> all;
      for (auto const& edge : more)
        for_each_utf8_sequence(CharacterRange{edge.first, edge.last}, [&](std::span<ByteRange const> bytes) {
          Sequence one{.size = bytes.size(), .to = edge.to};
          std::copy(bytes.begin(), bytes.end(), one.bytes.begin());
          all.push_back(one);
        });
      std::vector<ByteAutomaton::Edge> made;
      branch(all, 0, made);
      keep_shape(begun, made);
      it->second = std::move(made);  // `wide_` does not change in branch()
    }
    for (auto const& edge : it->second) join(out, edge.first, edge.last, edge.to);
  }
  struct Sequence {
    std::array<ByteRange, 4> bytes{};
    std::size_t size = 0;
    Id to = 0;
  };
  SLUICE_LAZY void branch(std::span<Sequence const> all, std::size_t depth, std::vector<ByteAutomaton::Edge>& out) {
    while (!all.empty()) {
      auto const range = all[0].bytes[depth];
      std::size_t count = 1;
      while (count < all.size() && all[count].bytes[depth].first == range.first) ++count;
      auto const own = all.first(count);
      all = all.subspan(count);
      if (own[0].size == depth + 1) {
        join(out, range.first, range.last, own[0].to);
        continue;
      }
      Key names{static_cast<std::uint32_t>(own[0].size - depth)};
      for (auto const& one : own) {
        for (auto i = depth + 1; i < one.size; ++i) names.push_back(one.bytes[i].first * 256u + one.bytes[i].last);
        names.push_back(static_cast<std::uint32_t>(one.to));
      }
      auto const known = tails_.find(names);
      Id to;
      if (known != tails_.end()) to = known->second;
      else {
        to = add();
        std::vector<ByteAutomaton::Edge> edges;
        branch(own, depth + 1, edges);
        out_[at(to)] = std::move(edges);
        tails_.emplace(std::move(names), to);
      }
      join(out, range.first, range.last, to);
    }
  }

  static Key key(Edges const& edges) {
    Key out;
    for (auto const& [first, last, to] : edges) out.insert(out.end(), {first, last, static_cast<std::uint32_t>(to)});
    return out;
  }

  /// What follows a \\.
  SLUICE_LAZY Id escape(Edges const& edges) {
    auto const [it, fresh] = escapes_of_.try_emplace(key(edges), -1);
    if (!fresh) return it->second;
    std::vector<ByteAutomaton::Edge> out;
    if (like_another(edges, true, out)) {
      auto const id = it->second = add();
      out_[at(id)] = std::move(out);
      return id;
    }
    auto const begun = static_cast<Id>(out_.size());
    auto const id = it->second = add();
    for (auto const& [letter, c] :
         {std::pair('"', '"'), std::pair('/', '/'), std::pair('\\', '\\'), std::pair('b', '\b'), std::pair('f', '\f'),
          std::pair('n', '\n'), std::pair('r', '\r'), std::pair('t', '\t')}) {
      auto const code = static_cast<char32_t>(static_cast<unsigned char>(c));
      for (auto const& [first, last, to] : edges)
        if (first <= code && code <= last)
          out.push_back({static_cast<std::uint8_t>(letter), static_cast<std::uint8_t>(letter), to});
    }
    // UTF-16: units, and pairs of them. A first unit is followed by \u and the second.
    Edges units, pairs;
    std::vector<std::pair<char32_t, Edges>> seconds;
    for (auto const& [first, last, to] : edges) {
      if (first < 0xD800) units.push_back({first, (std::min<char32_t>)(last, 0xD7FF), to});
      if (last >= 0xE000 && first < 0x10000)
        units.push_back({(std::max<char32_t>)(first, 0xE000), (std::min<char32_t>)(last, 0xFFFF), to});
      if (last < 0x10000) continue;
      auto from = (std::max<char32_t>)(first, 0x10000) - 0x10000;
      auto const until = last - 0x10000;
      while (from <= until) {
        auto const high = from >> 10;
        auto end = (std::min)(until, (high << 10) + 0x3FF);
        if ((from & 0x3FF) == 0 && end == (high << 10) + 0x3FF) {  // a run of whole first units
          while (end + 0x400 <= until) end += 0x400;
          pairs.push_back({0xD800 + high, 0xD800 + (end >> 10), second({{0xDC00, 0xDFFF, to}})});
        } else {
          if (seconds.empty() || seconds.back().first != high) seconds.push_back({high, {}});
          seconds.back().second.push_back({0xDC00 + (from & 0x3FF), 0xDC00 + (end & 0x3FF), to});
        }
        from = end + 1;
      }
    }
    for (auto const& [high, low] : seconds) pairs.push_back({0xD800 + high, 0xD800 + high, second(low)});
    units.insert(units.end(), pairs.begin(), pairs.end());
    std::ranges::sort(units, {}, &Edge::first);
    auto const digits = hexadecimal(units, 4);
    out.push_back({'u', 'u', digits});
    std::ranges::sort(out, {}, &ByteAutomaton::Edge::first);
    keep_shape(begun, out);
    out_[at(id)] = std::move(out);
    return id;
  }

  // Edges that differ only in where they lead are spelled alike: what the first of a shape became is copied.
  struct Shape {
    Id begin = 0, end = 0;  // the states made for it; none: it is not to be copied
    std::vector<Id> targets{};
    std::vector<ByteAutomaton::Edge> first{};
  };
  /// \param first  gets what the copy begins with; false: there is nothing to copy
  SLUICE_LAZY bool like_another(Edges const& edges, bool escaped, std::vector<ByteAutomaton::Edge>& first) {
    targets_.clear();
    Key names{escaped ? 1u : 0u};
    for (auto const& [low, high, to] : edges) {
      auto const known = std::ranges::find(targets_, to);
      names.insert(names.end(), {low, high, static_cast<std::uint32_t>(known - targets_.begin())});
      if (known == targets_.end()) targets_.push_back(to);
    }
    auto const [it, fresh] = shapes_.try_emplace(std::move(names));
    shape_ = &it->second;
    if (fresh || shape_->begin == shape_->end) {
      shape_->targets = targets_;
      return false;
    }
    auto const begin = shape_->begin, end = shape_->end;
    auto const& targets = shape_->targets;
    auto const offset = static_cast<Id>(out_.size()) - begin;
    auto const copied = [&](std::vector<ByteAutomaton::Edge> some) {
      for (auto& edge : some)
        edge.to = edge.to >= begin
                      ? edge.to + offset
                      : targets_[static_cast<std::size_t>(std::ranges::find(targets, edge.to) - targets.begin())];
      return some;
    };
    first = copied(shape_->first);
    out_.reserve(out_.size() + at(end - begin));
    for (auto i = begin; i < end; ++i) out_.push_back(copied(out_[at(i)]));
    return true;
  }
  /// Keeps what was made for the last shape looked for, if it leads to nothing that was made for another.
  SLUICE_LAZY void keep_shape(Id begin, std::vector<ByteAutomaton::Edge> const& first) {
    auto const own = [&](ByteAutomaton::Edge const& edge) {
      return edge.to >= begin || std::ranges::find(shape_->targets, edge.to) != shape_->targets.end();
    };
    auto const end = static_cast<Id>(out_.size());
    if (end == begin || !std::ranges::all_of(first, own)) return;
    for (auto i = begin; i < end; ++i)
      if (!std::ranges::all_of(out_[at(i)], own)) return;
    shape_->begin = begin, shape_->end = end, shape_->first = first;
  }

  SLUICE_LAZY Id second(Edges const& units) {
    auto const digits = hexadecimal(units, 4);
    auto const u = add(), slash = add();
    out_[at(u)] = {{'u', 'u', digits}};
    out_[at(slash)] = {{'\\', '\\', u}};
    return slash;
  }
  /// \param units  numbers of so many digits
  SLUICE_LAZY Id hexadecimal(Edges const& units, int digits) {
    if (digits == 0) return units[0].to;
    auto names = key(units);
    names.push_back(static_cast<std::uint32_t>(digits));
    auto const known = digits_.find(names);
    if (known != digits_.end()) return known->second;
    auto const id = add();
    std::vector<ByteAutomaton::Edge> edges;
    auto const size = char32_t{1} << (4 * (digits - 1));
    Edges rest;
    std::size_t next = 0;
    auto whole = false;  // any digits may follow the digit before, and lead to one state
    Id to = -1;
    for (char32_t digit = 0; digit < 16; ++digit) {
      char32_t const begin = digit * size, end = begin + size - 1;
      while (next < units.size() && units[next].last < begin) ++next;
      auto const same = whole && next < units.size() && units[next].first <= begin && units[next].last >= end &&
                        units[next].to == rest[0].to;
      if (!same) {
        rest.clear();
        for (auto i = next; i < units.size() && units[i].first <= end; ++i) {
          auto const first = (std::max)(units[i].first, begin), last = (std::min)(units[i].last, end);
          rest.push_back({first - begin, last - begin, units[i].to});
        }
        whole = rest.size() == 1 && rest[0].first == 0 && rest[0].last == size - 1;
        if (rest.empty()) continue;
        to = hexadecimal(rest, digits - 1);
      }
      auto const letter = static_cast<std::uint32_t>(std::string_view("0123456789ABCDEF")[digit]);
      edges.push_back({static_cast<std::uint8_t>(letter), static_cast<std::uint8_t>(letter), to});
      if (digit >= 10)
        edges.push_back({static_cast<std::uint8_t>(letter + 32), static_cast<std::uint8_t>(letter + 32), to});
    }
    std::ranges::sort(edges, {}, &ByteAutomaton::Edge::first);
    for (auto const& edge : edges) join(out_[at(id)], edge.first, edge.last, edge.to);
    digits_.emplace(std::move(names), id);
    return id;
  }

  TextAutomaton const& texts_;
  bool json_;
  Escapes escapes_;
  std::vector<std::vector<ByteAutomaton::Edge>> out_;
  std::unordered_map<Key, std::vector<ByteAutomaton::Edge>, Hash> wide_;
  std::unordered_map<Key, Id, Hash> tails_, escapes_of_, digits_;
  std::unordered_map<Key, Shape, Hash> shapes_;
  Shape* shape_ = nullptr;  // the last one looked for
  std::vector<Id> targets_;
};

}  // namespace sluice::inline v0::detail
