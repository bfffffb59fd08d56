// SPDX-License-Identifier: Apache-2.0
/// \file
/// Items that must all occur in an output, each as one of several phrases.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/phrase.hpp>
#include <sluice/search/common/phrase_matcher.hpp>
#include <sluice/search/constraint/detail/any_of_tables.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Every item must occur, as any one of its phrases (inflections, casing, synonyms), in any order. Phrases may overlap,
/// share prefixes or contain each other: an occurrence anywhere in the output counts. [4 5] occurs in 4 4 5, and 4 5
/// contains both [4] and [4 5]. An item listed m times must occur at m positions (at which its phrases end).
///
/// Progress: an item that is met counts as many tokens as its longest phrase; for the others, the longest phrase prefix
/// that ends the output counts (papers: Post and Vilar 2018, section 3; Hu et al. 2019 with the failure links of Aho
/// and Corasick 1975). Built in O(total length * items / 64). next() looks at no more children than the longest phrase
/// has tokens, usually one or two; a state is 48 bytes.
class AnyOf {
 public:
  static constexpr std::size_t most = detail::ItemSet::most;  ///< items

  struct State {
    detail::ItemSet met{};
    PhraseMatcher::State node = PhraseMatcher::root;  // the longest phrase prefix that is still of use
    std::int32_t credit = 0;                          // tokens of the items met
    std::int32_t items = 0;                           // met
  };

  AnyOf() = default;
  template <class = void>
  explicit AnyOf(std::vector<std::vector<Phrase>> items, std::string name = "any") {
    if (items.empty()) return;
    data_ = std::make_shared<detail::AnyOfTables const>(std::move(items), std::move(name));
  }

  template <class = void>
  AnyOf(std::initializer_list<std::vector<Phrase>> items) : AnyOf(std::vector<std::vector<Phrase>>(items)) {}

  /// \throws std::invalid_argument  naming the phrase: an item without phrases, an empty phrase, a token outside the
  ///     vocabulary or never generated, eos before the end or bos after the beginning of a phrase; more than `most`
  ///     items; two items that can only begin (or end) the sentence, with different words
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    auto const& d = *data_;
    require(d.items.size() <= most, d.name, d.items.size(), "more items than " + std::to_string(most));
    for (std::size_t i = 0; i < d.items.size(); ++i) {
      auto const item = d.name + "[" + std::to_string(i) + "]";
      require(!d.items[i].empty(), item, "[]", "is an item without phrases");
      for (std::size_t p = 0; p < d.items[i].size(); ++p)
        detail::check_phrase(sentence, d.items[i].size() > 1 ? item + "[" + std::to_string(p) + "]" : item,
                             d.items[i][p]);
    }
    check_edges(*sentence.vocabulary);
    return next({}, sentence.vocabulary->bos);
  }

  template <class = void>
  State next(State state, Token token) const {
    if (data_ == nullptr) return state;
    auto const& d = *data_;
    auto node = d.matcher.next(state.node, token);
    for (auto const c : d.nodes[at(node)].ends) {
      auto const& kind = d.kinds[at(c)];
      for (auto bit = kind.first; bit < kind.first + kind.copies; ++bit)
        if (!state.met.has(bit)) {
          state.met.insert(bit), state.credit += kind.longest, ++state.items;
          break;
        }
    }
    while (node != PhraseMatcher::root && !d.nodes[at(node)].through.any_beyond(state.met))
      node = d.matcher.fallback(node);
    state.node = node;
    return state;
  }

  template <class = void>
  std::int32_t progress(State const& state) const {
    return data_ == nullptr ? 0 : state.credit + data_->matcher.depth(state.node);
  }
  std::int32_t total() const { return data_ == nullptr ? 0 : data_->total; }
  bool complete(State const& state) const { return state.items == count(); }
  bool dead(State const&) const { return false; }

  template <class = void>
  void wanted(State const& state, std::vector<Token>& tokens) const {
    if (data_ == nullptr || complete(state)) return;
    auto const& d = *data_;
    auto const first = static_cast<std::ptrdiff_t>(tokens.size());
    for (auto node = state.node;; node = d.matcher.fallback(node)) {
      for (auto const token : d.matcher.children(node)) {
        if (!d.nodes[at(d.matcher.next(node, token))].leads.any_beyond(state.met)) continue;
        if (node != state.node && (std::find(tokens.begin() + first, tokens.end(), token) != tokens.end() ||
                                   progress(next(state, token)) <= progress(state)))
          continue;
        tokens.push_back(token);
      }
      if (node == PhraseMatcher::root) return;
    }
  }

  template <class = void>
  std::int32_t begun(State const& state) const {
    return data_ == nullptr ? 0 : data_->matcher.depth(state.node);
  }
  bool trivial() const { return data_ == nullptr; }
  std::int32_t met(State const& state) const { return state.items; }
  std::int32_t count() const { return data_ == nullptr ? 0 : static_cast<std::int32_t>(data_->items.size()); }
  /// Phrases may overlap, but each required token takes a position of its own, and so do the ends of copies.
  template <class = void>
  std::int32_t remaining(State const& state) const {
    if (data_ == nullptr) return 0;
    auto longest = std::int32_t{0}, together = std::int32_t{0};
    std::map<Token, std::int32_t> needed;
    for (auto const& kind : data_->kinds) {
      auto missing = std::int32_t{0};
      for (auto bit = kind.first; bit < kind.first + kind.copies; ++bit) missing += state.met.has(bit) ? 0 : 1;
      if (missing == 0) continue;
      longest = (std::max)(longest, kind.shortest + missing - 1);
      for (auto const token : kind.phrases.front()) {
        auto least = (std::numeric_limits<std::int32_t>::max)();
        for (auto const& phrase : kind.phrases)
          least = (std::min)(least, static_cast<std::int32_t>(std::count(phrase.begin(), phrase.end(), token)));
        needed[token] = (std::max)(needed[token], least);
      }
    }
    for (auto const& [token, count] : needed) together += count;
    return (std::max)(0, (std::max)(longest, together) - data_->matcher.depth(state.node));
  }
  template <class = void>
  std::string text() const {
    std::string all;
    for (std::size_t i = 0; i < items().size(); ++i) {
      auto const name = data_->name + "[" + std::to_string(i) + "]";
      auto const& phrases = items()[i];
      all.append(i == 0 ? "" : ", ");
      if (phrases.size() == 1) all.append(name + " ").append(detail::text(phrases[0]));
      else all.append(detail::text_of(name, phrases));
    }
    return all;
  }
  template <class = void>
  void insert_into(TokenSet& set) const {
    for (auto const& item : items())
      for (auto const& phrase : item)
        for (auto const token : phrase)
          if (token >= 0) set.insert(token);
  }
  /// The items as given.
  template <class = void>
  std::vector<std::vector<Phrase>> const& items() const {
    static std::vector<std::vector<Phrase>> const none;
    return data_ == nullptr ? none : data_->items;
  }

 private:
  /// If every phrase of two items begins the sentence, or ends it, one position must serve both.
  template <class = void>
  void check_edges(Vocabulary const& vocabulary) const {
    auto const same = [](auto x, auto x_end, auto y, auto y_end) {
      for (; x != x_end && y != y_end; ++x, ++y)
        if (*x != *y) return false;
      return true;
    };
    check_edge(
        "begins", [&](Phrase const& phrase) { return phrase.front() == vocabulary.bos; },
        [&](Phrase const& a, Phrase const& b) { return same(a.begin(), a.end(), b.begin(), b.end()); });
    check_edge(
        "ends", [&](Phrase const& phrase) { return vocabulary.ends(phrase.back()); },
        [&](Phrase const& a, Phrase const& b) { return same(a.rbegin(), a.rend(), b.rbegin(), b.rend()); });
  }
  template <class At, class Together>
  void check_edge(std::string const& does, At&& at_edge, Together&& together) const {
    auto const& d = *data_;
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < d.items.size(); ++i) {
      if (!std::all_of(d.items[i].begin(), d.items[i].end(), at_edge)) continue;
      for (auto const j : before) {
        auto possible = false;
        for (auto const& a : d.items[i])
          for (auto const& b : d.items[j]) possible |= together(a, b);
        require(possible && d.items[i] != d.items[j], d.name + "[" + std::to_string(i) + "]",
                detail::text(d.items[i][0]),
                does + " the sentence, and so does " + d.name + "[" + std::to_string(j) + "]");
      }
      before.push_back(i);
    }
  }

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::shared_ptr<detail::AnyOfTables const> data_;
};

}  // namespace sluice::inline v0
