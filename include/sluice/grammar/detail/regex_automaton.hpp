// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regular expressions as automata over characters.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/regex_tree.hpp>
#include <sluice/grammar/detail/text_automaton.hpp>
#include <sluice/grammar/detail/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Places (Thompson 1968) become states by sets (Rabin and Scott 1959). What looks ahead is a duty that a place carries
/// along: places of which none may ever reach the look's end, or one that must.
class RegexAutomaton {
 public:
  /// \param search  the pattern may match anywhere in the text
  /// \param most    states, about
  /// \throws std::length_error  for too many places or states
  SLUICE_LAZY static TextAutomaton of(RegexTree const& tree, bool search,
                                      std::size_t most = TextAutomaton::most_states) {
    RegexAutomaton out(tree);
    out.most_ = most;
    return out.make(search);
  }

 private:
  using Id = std::int32_t;
  using Duties = std::vector<Id>;  // sorted places; -1 - place: one that must reach the end of its look
  struct Thread {
    Id place;
    Duties duties{};
    friend auto operator<=>(Thread const&, Thread const&) = default;  // NOLINT(modernize-use-nullptr)
  };
  using Set = std::vector<Thread>;  // sorted
  struct Place {
    enum Kind : std::uint8_t { split, characters, begin, end, look, done, seen };
    Kind kind = split;
    Id to = -1;          // characters, begin, end, look
    std::size_t of = 0;  // characters: the class
    Id other = -1;       // split: a second target; look: its first place
    bool negative = false;
  };
  static std::size_t at(Id i) { return static_cast<std::size_t>(i); }

  explicit RegexAutomaton(RegexTree const& tree) : tree_(tree) {}

  SLUICE_LAZY Id add(Place place) {
    TextAutomaton::check(places_.size());
    places_.push_back(place);
    return static_cast<Id>(places_.size()) - 1;
  }
  SLUICE_LAZY Id characters(std::vector<CharacterRange> const& ranges, Id to) {
    auto const [it, fresh] = numbers_.try_emplace(key(ranges), classes_.size());
    if (fresh) classes_.push_back(ranges);
    return add({.kind = Place::characters, .to = to, .of = it->second});
  }
  static std::vector<char32_t> key(std::vector<CharacterRange> const& ranges) {
    std::vector<char32_t> out;
    for (auto const [first, last] : ranges) out.push_back(first), out.push_back(last);
    return out;
  }

  SLUICE_LAZY Id build(Id id, Id to) {
    auto const& node = tree_[id];
    using Kind = RegexTree::Kind;
    switch (node.kind) {
      case Kind::characters: return characters(node.ranges, to);
      case Kind::begin: return add({.kind = Place::begin, .to = to});
      case Kind::end: return add({.kind = Place::end, .to = to});
      case Kind::sequence:
        for (auto i = node.parts.size(); i-- > 0;) to = build(node.parts[i], to);
        return to;
      case Kind::choice: {
        Id first = -1;
        for (auto i = node.parts.size(); i-- > 0;) {
          auto const one = build(node.parts[i], to);
          first = first < 0 ? one : add({.to = one, .other = first});
        }
        return first;
      }
      case Kind::repeat: {
        auto first = to;
        if (node.maximum < 0) {
          first = add({.to = to, .other = to});
          auto const body = build(node.parts[0], first);
          places_[at(first)].other = body;
        }
        for (auto i = node.minimum; i < node.maximum; ++i) {
          auto const body = build(node.parts[0], first);
          first = add({.to = body, .other = to});
        }
        for (Id i = 0; i < node.minimum; ++i) first = build(node.parts[0], first);
        return first;
      }
      case Kind::look: {
        auto const body = build(node.parts[0], add({.kind = Place::seen}));
        return add({.kind = Place::look, .to = to, .other = body, .negative = node.negative});
      }
    }
    return to;
  }

  /// Places that wait for a character or the end, from here on. \param ended  at the end of the text
  SLUICE_LAZY std::vector<Id> reached(Id from, bool began, bool ended) const {
    std::vector<Id> out, open{from}, known{from};
    while (!open.empty()) {
      auto const id = open.back();
      open.pop_back();
      auto const& place = places_[at(id)];
      auto const go = [&](Id to) {
        if (to >= 0 && std::find(known.begin(), known.end(), to) == known.end())
          known.push_back(to), open.push_back(to);
      };
      if (place.kind == Place::split) go(place.to), go(place.other);
      else if (place.kind == Place::begin) began ? go(place.to) : void();
      else if (place.kind == Place::end && ended) go(place.to);
      else out.push_back(id);
    }
    return out;
  }

  /// The same behind the first character, before the end.
  SLUICE_LAZY std::vector<Id> const& behind_start(Id from) {
    behind_start_.resize(places_.size());
    auto& known = behind_start_[at(from)];
    if (known.empty()) known = reached(from, false, false);
    return known;
  }

  /// Adds what a thread becomes, or nothing, if it fails.
  SLUICE_LAZY void follow(Thread const& thread, bool began, Set& out) {
    std::vector<Id> at_start;
    if (began) at_start = reached(thread.place, true, false);
    for (auto const id : began ? at_start : behind_start(thread.place)) {
      auto const& place = places_[at(id)];
      if (place.kind != Place::look) {
        out.push_back({id, thread.duties});
        if (out.size() > 2000) throw std::length_error("more than 2000 places at once");
        continue;
      }
      auto const body = reached(place.other, began, false);
      auto const is = [&](Place::Kind kind) {
        return std::any_of(body.begin(), body.end(), [&](Id b) { return places_[at(b)].kind == kind; });
      };
      if (is(Place::look)) throw std::length_error("looks within looks, which are not supported");
      if (place.negative) {
        if (is(Place::seen)) continue;
        auto more = thread;
        more.place = place.to;
        more.duties.insert(more.duties.end(), body.begin(), body.end());
        tidy(more.duties);
        follow(more, began, out);
      } else if (is(Place::seen)) follow({place.to, thread.duties}, began, out);
      else
        for (auto const one : body) {
          auto more = thread;
          more.place = place.to, more.duties.push_back(-1 - one);
          tidy(more.duties);
          follow(more, began, out);
        }
    }
  }
  static void tidy(Duties& duties) {
    std::sort(duties.begin(), duties.end());
    duties.erase(std::unique(duties.begin(), duties.end()), duties.end());
  }
  SLUICE_LAZY void tidy(Set& set) const {
    if (std::any_of(set.begin(), set.end(), [&](Thread const& t) { return t.place == rest_ && t.duties.empty(); }))
      set = {{done_}, {rest_}};  // anything may follow
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }

  SLUICE_LAZY bool accepts(Thread const& thread, bool began) const {
    if (thread.duties.empty() && places_[at(thread.place)].kind == Place::done) return true;
    if (thread.duties.empty() && places_[at(thread.place)].kind == Place::characters) return false;
    auto const ends = [&](Id from, Place::Kind kind) {
      auto const all = reached(from, began, true);
      return std::any_of(all.begin(), all.end(), [&](Id id) {
        if (places_[at(id)].kind == Place::look)
          throw std::length_error("looks behind an end, which are not supported");
        return places_[at(id)].kind == kind;
      });
    };
    return ends(thread.place, Place::done) && std::all_of(thread.duties.begin(), thread.duties.end(), [&](Id duty) {
             return duty >= 0 ? !ends(duty, Place::seen) : ends(-1 - duty, Place::seen);
           });
  }

  /// What the duties become behind a character; each in every way.
  SLUICE_LAZY std::vector<Duties> behind(Duties const& duties, std::size_t symbol) {
    std::vector<Duties> out{{}};
    for (auto const duty : duties) {
      auto const& place = places_[at(duty >= 0 ? duty : -1 - duty)];
      auto const goes = place.kind == Place::characters && takes_[place.of][symbol];
      if (!goes && duty >= 0) continue;
      if (!goes) return {};
      auto const body = reached(place.to, false, false);
      auto const seen = std::any_of(body.begin(), body.end(), [&](Id b) { return places_[at(b)].kind == Place::seen; });
      if (std::any_of(body.begin(), body.end(), [&](Id b) { return places_[at(b)].kind == Place::look; }))
        throw std::length_error("looks within looks, which are not supported");
      if (duty >= 0) {
        if (seen) return {};
        for (auto& one : out) one.insert(one.end(), body.begin(), body.end());
      } else if (!seen) {
        std::vector<Duties> more;
        for (auto const& one : out)
          for (auto const b : body) more.push_back(one), more.back().push_back(-1 - b);
        out = std::move(more);
        if (out.size() > 2000) throw std::length_error("more than 2000 places at once");
      }
    }
    for (auto& one : out) tidy(one);
    return out;
  }

  /// Splits the characters into symbols, which no class tells apart within.
  SLUICE_LAZY void split_characters() {
    std::vector<char32_t> begins{0};
    for (auto const& ranges : classes_)
      for (auto const [first, last] : ranges) begins.push_back(first), begins.push_back(last + 1);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
    if (begins.back() > last_character) begins.pop_back();
    std::map<std::vector<bool>, std::size_t> numbers;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      std::vector<bool> in(classes_.size());
      for (std::size_t c = 0; c < classes_.size(); ++c)
        in[c] = std::ranges::any_of(classes_[c],
                                    [&](CharacterRange r) { return r.first <= begins[i] && begins[i] <= r.last; });
      auto const symbol = numbers.try_emplace(std::move(in), numbers.size()).first->second;
      pieces_.push_back(
          {begins[i], i + 1 < begins.size() ? begins[i + 1] - 1 : last_character, static_cast<Id>(symbol)});
    }
    takes_.assign(classes_.size(), std::vector<bool>(numbers.size()));
    for (auto const& [in, symbol] : numbers)
      for (std::size_t c = 0; c < classes_.size(); ++c) takes_[c][symbol] = in[c];
    symbols_ = numbers.size();
  }

  SLUICE_LAZY TextAutomaton make(bool search) {
    auto to = done_ = add({.kind = Place::done});
    std::vector<CharacterRange> const any{{0, last_character}};
    if (search) {
      to = rest_ = add({.other = done_});
      auto const loop = characters(any, rest_);
      places_[at(rest_)].to = loop;
      rest_ = loop;
    }
    auto first = build(tree_.root, to);
    if (search) {
      auto const begin = add({.to = first});
      auto const loop = characters(any, begin);
      places_[at(begin)].other = loop, first = begin;
    }
    split_characters();

    std::map<Set, Id> numbers;
    std::vector<Set const*> sets;
    auto const number = [&](Set& set) -> Id {
      tidy(set);
      if (set.empty()) return -1;
      auto const [it, fresh] = numbers.try_emplace(set, static_cast<Id>(sets.size()));
      if (fresh) sets.push_back(&it->first), weight_ += 3 + set.size() / 8;
      if (weight_ > most_) throw std::length_error("more than " + std::to_string(most_) + " states");
      return it->second;
    };
    Set set;
    follow({first, {}}, true, set);
    TextAutomaton out;
    if (number(set) < 0) return out;
    std::vector<Id> targets(symbols_);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      auto const& own = *sets[i];
      TextAutomaton::State state;
      state.accepts = std::any_of(own.begin(), own.end(), [&](Thread const& t) { return accepts(t, i == 0); });
      for (std::size_t symbol = 0; symbol < symbols_; ++symbol) {
        set.clear();
        for (auto const& thread : own) {
          auto const& place = places_[at(thread.place)];
          if (place.kind != Place::characters || !takes_[place.of][symbol]) continue;
          if (thread.duties.empty()) follow({place.to, {}}, false, set);
          else
            for (auto& duties : behind(thread.duties, symbol)) follow({place.to, std::move(duties)}, false, set);
        }
        targets[symbol] = number(set);
      }
      for (auto const& [begin, last, symbol] : pieces_)
        if (targets[at(symbol)] >= 0) TextAutomaton::join(state.edges, {begin, last, targets[at(symbol)]});
      out.states.push_back(std::move(state));
    }
    return std::move(out).trimmed().minimal();
  }

  RegexTree const& tree_;
  std::vector<Place> places_;
  std::map<std::vector<char32_t>, std::size_t> numbers_;  // of classes
  std::vector<std::vector<CharacterRange>> classes_;
  std::vector<TextAutomaton::Edge> pieces_;  // of all characters; `to` is the symbol
  std::vector<std::vector<bool>> takes_;     // [class][symbol]
  std::size_t symbols_ = 0, weight_ = 0, most_ = 0;
  std::vector<std::vector<Id>> behind_start_;  // [place]: as far as it is known
  Id done_ = 0, rest_ = -1;                    // where a match that may be followed by anything waits for it
};

}  // namespace sluice::inline v0::detail
