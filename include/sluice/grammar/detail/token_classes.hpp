// SPDX-License-Identifier: Apache-2.0
/// \file
/// Binds a grammar that names tokens to a vocabulary.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/detail/token_nodes.hpp>
#include <sluice/grammar/detail/token_text.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Tokens that a grammar names. Tokens that it does not tell apart form a class. A class gets a spelling of bytes that no
/// UTF-8 has, and a token of that spelling behind the vocabulary: to all that walks through tries and counts tokens, naming
/// a token is then reading a text.
struct TokenClasses {
  TokenNodes trie;                          // of the vocabulary and a token for each class
  std::int32_t vocabulary = 0;              // without those
  std::vector<std::int32_t> of;             // [token]: its class; -1: none
  std::vector<std::string> spelling;        // [class]
  std::vector<std::vector<Token>> members;  // [class]
  TokenSet real;                            // the vocabulary

  /// The tokens of a set over the trie's.
  SLUICE_LAZY TokenSet tokens(TokenSet const& set) const {
    auto out = real;
    out.keep(set);
    for (std::size_t c = 0; c < members.size(); ++c)
      if (set.contains(vocabulary + static_cast<Token>(c))) out.insert(members[c]);
    return out;
  }
};

class TokenBinder {
 public:
  struct Bound {
    std::shared_ptr<Automaton const> automaton;
    std::shared_ptr<TokenClasses const> classes;  // null: no token is named
  };

  /// \throws std::invalid_argument  naming a token that the vocabulary does not have, or that cannot be generated within an
  ///     output
  SLUICE_LAZY static Bound bind(std::shared_ptr<Automaton const> const& automaton, TokenNodes const& trie) {
    if (!automaton->unbound()) return {automaton, nullptr};
    return TokenBinder(*automaton, trie).bound();
  }

  /// For texts without tokens: a name is spelt.
  /// \throws std::invalid_argument  for tokens by number, complements, and numbers of tokens
  SLUICE_LAZY static Automaton spelt(Automaton a) {
    if (!a.token_texts.empty())
      throw std::invalid_argument("sluice: grammar = " + a.token_texts[0].written +
                                  ": a text does not say how many tokens it is made of");
    for (auto const& [place, terminal, to] : a.token_places) {
      auto const& set = a.terminals[at(terminal)];
      if (set.complement || set.names.empty())
        throw std::invalid_argument("sluice: grammar = " + set.written +
                                    ": a text does not say which tokens it is made of; only names of tokens stand for "
                                    "their text");
      std::vector<std::int32_t> firsts;
      firsts.reserve(set.names.size());
      for (auto const& name : set.names) {
        auto next = to;
        for (auto i = name.size(); i-- > 0;) {
          auto const byte = static_cast<std::uint8_t>(name[i]);
          a.places.push_back(
              {.kind = Place::byte, .low = byte, .high = byte, .to = next, .within = a.places[at(place)].within});
          next = a.nodes() - 1;
        }
        firsts.push_back(next);
      }
      lead(a, place, firsts);
    }
    a.token_places.clear();
    a.classify();
    return a;
  }

 private:
  using Place = Automaton::Place;
  using Ranges = std::vector<std::pair<Token, Token>>;  // sorted and disjoint
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  TokenBinder(Automaton const& automaton, TokenNodes const& trie)
      : a_(automaton), trie_(trie), size_(trie.vocabulary().size) {}

  SLUICE_LAZY static void lead(Automaton& a, std::int32_t place, std::vector<std::int32_t> const& targets) {
    auto& own = a.places[at(place)];
    own.kind = Place::split;
    own.first = static_cast<std::int32_t>(a.targets.size()), own.count = static_cast<std::int32_t>(targets.size());
    a.targets.insert(a.targets.end(), targets.begin(), targets.end());
  }

  SLUICE_LAZY [[noreturn]] static void refuse(TokenTerminal const& terminal, std::string const& why) {
    throw std::invalid_argument("sluice: grammar = " + terminal.written + ": " + why);
  }

  SLUICE_LAZY Bound bound() {
    sets_.reserve(a_.terminals.size());
    for (auto const& terminal : a_.terminals) sets_.push_back(tokens_of(terminal));
    texts_.reserve(a_.token_texts.size());
    for (auto const& text : a_.token_texts) {
      texts_.push_back(TokenText::of(a_, text, trie_));
      sets_.insert(sets_.end(), texts_.back().sets.begin(), texts_.back().sets.end());
    }
    divide();
    if (parts_.empty())  // the vocabulary has none of them, and none must be there
      return {std::make_shared<Automaton const>(with_edges({})), nullptr};
    std::vector<std::int32_t> key{size_};
    for (auto const& one : parts_) {
      key.push_back(-1);
      for (auto const& [first, last] : one) key.push_back(first), key.push_back(last);
    }
    choose_bytes();
    key.push_back(-2);
    key.reserve(key.size() + bytes_.size());
    for (auto const byte : bytes_) key.push_back(byte);
    auto const classes = std::static_pointer_cast<TokenClasses const>(
        trie_.kept(key, [&]() -> std::shared_ptr<void const> { return make_classes(); }));
    return {std::make_shared<Automaton const>(with_edges(classes->spelling)), classes};
  }

  /// The tokens of a terminal that can be generated.
  SLUICE_LAZY Ranges tokens_of(TokenTerminal const& terminal) const {
    Ranges all;
    auto const& own = trie_.vocabulary();
    auto const hidden = [&](Token token) {
      return own.ends(token) || std::ranges::find(own.never, token) != own.never.end();
    };
    for (auto const& name : terminal.names) {
      auto found = false, usable = false;
      for (auto const token : trie_.named(name)) {
        found = true;
        if (!hidden(token)) usable = true;
        // One that may be left out stands for the text that is its name: tokens with bytes are read as that.
        if (!terminal.optional || trie_.bytes(token).empty()) all.emplace_back(token, token);
      }
      if (!found && !terminal.optional && !terminal.complement)
        refuse(terminal,
               "the vocabulary has no token of this name; names of tokens without bytes are given to TokenTrie");
      if (found && !usable && !terminal.optional && !terminal.complement)
        refuse(
            terminal,
            "this token ends outputs, or is never generated: leave it out; an output may end where the grammar does");
    }
    for (auto const& [first, last] : terminal.ranges) {
      auto const any = first == 0 && last == (std::numeric_limits<Token>::max)();
      if (first >= size_ || (last >= size_ && !any))
        refuse(terminal, "the vocabulary has the tokens 0 to " + std::to_string(size_ - 1));
      if (first == last && hidden(first) && !terminal.complement)
        refuse(
            terminal,
            "this token ends outputs, or is never generated: leave it out; an output may end where the grammar does");
      all.emplace_back(first, (std::min)(last, size_ - 1));
    }
    all = joined(std::move(all));
    if (terminal.complement) all = without({{0, size_ - 1}}, all);
    Ranges ends;
    for (auto const token : own.eos) ends.emplace_back(token, token);
    for (auto const token : own.never) ends.emplace_back(token, token);
    all = without(all, joined(std::move(ends)));
    if (all.empty() && !terminal.optional) refuse(terminal, "no token of the vocabulary is in this set");
    return all;
  }
  SLUICE_LAZY static Ranges joined(Ranges all) {
    std::sort(all.begin(), all.end());
    Ranges out;
    for (auto const& [first, last] : all)
      if (!out.empty() && first <= out.back().second + 1) out.back().second = (std::max)(out.back().second, last);
      else out.emplace_back(first, last);
    return out;
  }
  SLUICE_LAZY static Ranges without(Ranges const& all, Ranges const& others) {
    Ranges out;
    auto other = others.begin();
    for (auto [first, last] : all) {
      while (other != others.end() && other->second < first) ++other;
      for (auto o = other; o != others.end() && o->first <= last; ++o) {
        if (first < o->first) out.emplace_back(first, o->first - 1);
        first = o->second + 1;
      }
      if (first <= last) out.emplace_back(first, last);
    }
    return out;
  }

  /// Finds the classes: parts of the vocabulary that lie in the same sets.
  SLUICE_LAZY void divide() {
    std::map<Ranges, std::int32_t> numbers;  // of different sets
    for (auto const& set : sets_)
      number_of_.push_back(numbers.try_emplace(set, static_cast<std::int32_t>(numbers.size())).first->second);
    struct Border {
      Token at;
      std::int32_t set;
      bool begins;
      auto operator<=>(Border const&) const = default;  // NOLINT(modernize-use-nullptr)
    };
    std::vector<Border> bounds;
    for (auto const& [set, number] : numbers)
      for (auto const& [first, last] : set)
        bounds.push_back({first, number, true}), bounds.push_back({last + 1, number, false});
    std::sort(bounds.begin(), bounds.end());
    std::map<std::vector<std::int32_t>, std::int32_t> classes;
    std::vector<std::int32_t> within;  // sorted
    in_.resize(numbers.size());
    for (std::size_t i = 0; i < bounds.size();) {
      auto const from = bounds[i].at;
      for (; i < bounds.size() && bounds[i].at == from; ++i) {
        auto const place = std::ranges::lower_bound(within, bounds[i].set);
        if (bounds[i].begins) within.insert(place, bounds[i].set);
        else within.erase(place);
      }
      if (within.empty()) continue;
      auto const [it, fresh] = classes.try_emplace(within, static_cast<std::int32_t>(classes.size()));
      if (fresh) {
        parts_.emplace_back();
        for (auto const set : within) in_[at(set)].push_back(it->second);
      }
      parts_[at(it->second)].emplace_back(from, bounds[i].at - 1);
    }
  }

  /// Bytes that no UTF-8 has, and this grammar does not read.
  SLUICE_LAZY void choose_bytes() {
    std::array<bool, 256> read{};
    for (auto const& place : a_.places)
      if (place.kind == Place::byte)
        for (int b = place.low; b <= place.high; ++b) read[static_cast<std::size_t>(b)] = true;
    for (auto const& edge : a_.edges)
      for (int b = edge.first; b <= edge.last; ++b) read[static_cast<std::size_t>(b)] = true;
    for (auto const byte : {0xC0, 0xC1, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF})
      if (!read[static_cast<std::size_t>(byte)] && bytes_.size() < parts_.size())
        bytes_.push_back(static_cast<std::uint8_t>(byte));
    auto const room = bytes_.size() - 1 + std::size_t{256} * 256;
    require(parts_.size() <= room, "grammar", std::to_string(parts_.size()) + " kinds of tokens",
            "a grammar tells at most " + std::to_string(room) + " kinds of tokens apart");
  }
  /// One byte for the first classes; the last byte leads to two more for the others, if there are more classes than bytes.
  SLUICE_LAZY std::string spelling(std::size_t c) const {
    auto const single = parts_.size() > bytes_.size() ? bytes_.size() - 1 : bytes_.size();
    if (c < single) return {static_cast<char>(bytes_[c])};
    auto const rest = c - single;
    return {static_cast<char>(bytes_.back()), static_cast<char>(rest / 256), static_cast<char>(rest % 256)};
  }

  SLUICE_LAZY std::shared_ptr<TokenClasses const> make_classes() const {
    auto out = std::make_shared<TokenClasses>();
    auto vocabulary = trie_.vocabulary();
    out->vocabulary = size_, out->real = TokenSet(size_);
    out->of.assign(at(size_), -1);
    std::vector<std::string> texts(at(size_));
    for (Token token = 0; token < size_; ++token) {
      out->real.insert(token);
      auto const text = trie_.bytes(token);
      auto const taken = [&](char c) {
        return std::ranges::find(bytes_, static_cast<std::uint8_t>(c)) != bytes_.end();
      };
      if (std::ranges::none_of(text, taken)) texts[at(token)] = text;  // others are no part of UTF-8
    }
    for (std::size_t c = 0; c < parts_.size(); ++c) {
      out->spelling.push_back(spelling(c)), texts.push_back(out->spelling.back());
      auto& members = out->members.emplace_back();
      for (auto const& [first, last] : parts_[c])
        for (auto token = first; token <= last; ++token)
          members.push_back(token), out->of[at(token)] = static_cast<std::int32_t>(c);
    }
    vocabulary.size += static_cast<std::int32_t>(parts_.size());
    out->trie = TokenNodes(TokenBytes(texts), vocabulary);
    return out;
  }

  SLUICE_LAZY Automaton with_edges(std::span<std::string const> spelling) const {
    auto a = a_;
    Spelt spelt;
    auto const spell = [&](std::size_t set, std::int32_t to) {
      for (auto const c : in_[at(number_of_[set])]) spelt.emplace_back(spelling[at(c)], to);
    };
    for (auto const& [place, terminal, to] : a_.token_places) {
      spelt.clear();
      spell(at(terminal), to);
      if (spelt.empty()) {
        lead(a, place, {});
        continue;
      }
      std::sort(spelt.begin(), spelt.end());
      read(a, place, spelt, 0);
    }
    auto set = a_.terminals.size();
    for (std::size_t t = 0; t < texts_.size(); ++t) {
      auto const& text = a_.token_texts[t];
      auto const inner = a.nodes();
      for (std::int32_t state = 0; state < text.count; ++state) {
        spelt.clear();
        for (auto const& [alike, next] : texts_[t].steps[at(state)]) spell(set + at(alike), text.place + next);
        std::sort(spelt.begin(), spelt.end());
        read(a, text.place + state, spelt, 0);
      }
      set += texts_[t].sets.size();
      count(a, text, texts_[t], inner);
    }
    a.token_places.clear(), a.token_texts.clear();
    a.classify();
    return a;
  }
  /// Says how many tokens the rest of a text needs. \param inner  the first of the places that read a part of a spelling
  SLUICE_LAZY static void count(Automaton& a, Automaton::TokenText const& text, TokenText const& tokens,
                                std::int32_t inner) {
    auto& loop = a.loops[at(text.loop)];
    auto const fewest = tokens.fewest[0];
    if (fewest > loop.maximum)
      throw std::invalid_argument("sluice: grammar = " + text.written + ": " +
                                  (fewest >= TokenText::none
                                       ? std::string("no tokens of the vocabulary spell a text of this rule")
                                       : "the shortest text of this rule has " + std::to_string(fewest) + " tokens"));
    a.left.resize(a.places.size(), TokenText::none);
    std::ranges::copy(tokens.fewest, a.left.begin() + text.place);
    for (auto place = a.nodes(); place-- > inner;)
      for (auto const& edge : a.edges_of(a.places[at(place)]))
        a.left[at(place)] = (std::min)(a.left[at(place)], a.left[at(edge.to)] + a.places[at(edge.to)].low);
    loop.reach = 0;
    for (auto const left : tokens.fewest)
      if (left < TokenText::none) loop.reach = (std::max)(loop.reach, left);
  }
  using Spelt = std::vector<std::pair<std::string, std::int32_t>>;  // sorted: what is read, and the place behind it
  /// Gives a place edges to read spellings, which share the bytes before `depth`.
  SLUICE_LAZY static void read(Automaton& a, std::int32_t place, std::span<Spelt::value_type const> spelt,
                               std::size_t depth) {
    std::vector<Automaton::ByteEdge> edges;
    while (!spelt.empty()) {
      auto const byte = static_cast<std::uint8_t>(spelt[0].first[depth]);
      std::size_t count = 1;
      while (count < spelt.size() && static_cast<std::uint8_t>(spelt[count].first[depth]) == byte) ++count;
      auto next = spelt[0].second;
      if (spelt[0].first.size() > depth + 1) {
        next = a.nodes();
        a.places.push_back({.kind = Place::state, .within = a.places[at(place)].within});
        a.texts.push_back({next, 1});
        read(a, next, spelt.first(count), depth + 1);
      }
      if (!edges.empty() && edges.back().to == next && edges.back().last + 1 == byte) edges.back().last = byte;
      else edges.push_back({byte, byte, next});
      spelt = spelt.subspan(count);
    }
    auto& own = a.places[at(place)];
    own.first = static_cast<std::int32_t>(a.edges.size()), own.count = static_cast<std::int32_t>(edges.size());
    a.edges.insert(a.edges.end(), edges.begin(), edges.end());
  }

  Automaton const& a_;
  TokenNodes const& trie_;
  std::int32_t size_;
  std::vector<Ranges> sets_;                   // [terminal], then those of texts_
  std::vector<TokenText> texts_;               // of counted tokens
  std::vector<std::int32_t> number_of_;        // [set]: of a different set
  std::vector<std::vector<std::int32_t>> in_;  // [number]: the classes
  std::vector<Ranges> parts_;                  // [class]
  std::vector<std::uint8_t> bytes_;
};

}  // namespace sluice::inline v0::detail
