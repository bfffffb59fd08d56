// SPDX-License-Identifier: Apache-2.0
/// \file
/// Constraints on an output, as an automaton over its tokens: words and phrases that must all occur, in any order or the given one,
/// each as one of several; phrases that must not; several automata combined. Banks: how a beam is divided among hypotheses
/// by how many of their constraints they have met.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/search/detail/any_of_tables.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
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
  SLUICE_LAZY explicit AnyOf(std::vector<std::vector<Phrase>> items, std::string name = "any") {
    if (items.empty()) return;
    data_ = std::make_shared<detail::AnyOfTables const>(std::move(items), std::move(name));
  }

  SLUICE_LAZY AnyOf(std::initializer_list<std::vector<Phrase>> items)
      : AnyOf(std::vector<std::vector<Phrase>>(items)) {}

  /// \throws std::invalid_argument  naming the phrase: an item without phrases, an empty phrase, a token outside the
  ///     vocabulary or never generated, eos before the end or bos after the beginning of a phrase; more than `most`
  ///     items; two items that can only begin (or end) the sentence, with different words
  SLUICE_LAZY State initial(Sentence const& sentence) const {
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

  SLUICE_LAZY State next(State state, Token token) const {
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

  SLUICE_LAZY std::int32_t progress(State const& state) const {
    return data_ == nullptr ? 0 : state.credit + data_->matcher.depth(state.node);
  }
  std::int32_t total() const { return data_ == nullptr ? 0 : data_->total; }
  bool complete(State const& state) const { return state.items == count(); }
  bool dead(State const&) const { return false; }

  SLUICE_LAZY void wanted(State const& state, std::vector<Token>& tokens) const {
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

  SLUICE_LAZY std::int32_t begun(State const& state) const {
    return data_ == nullptr ? 0 : data_->matcher.depth(state.node);
  }
  bool trivial() const { return data_ == nullptr; }
  std::int32_t met(State const& state) const { return state.items; }
  std::int32_t count() const { return data_ == nullptr ? 0 : static_cast<std::int32_t>(data_->items.size()); }
  /// Phrases may overlap, but each required token takes a position of its own, and so do the ends of copies.
  SLUICE_LAZY std::int32_t remaining(State const& state) const {
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
  SLUICE_LAZY std::string text() const {
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
  SLUICE_LAZY void insert_into(TokenSet& set) const {
    for (auto const& item : items())
      for (auto const& phrase : item)
        for (auto const token : phrase)
          if (token >= 0) set.insert(token);
  }
  /// The items as given.
  SLUICE_LAZY std::vector<std::vector<Phrase>> const& items() const {
    static std::vector<std::vector<Phrase>> const none;
    return data_ == nullptr ? none : data_->items;
  }

 private:
  /// If every phrase of two items begins the sentence, or ends it, one position must serve both.
  SLUICE_LAZY void check_edges(Vocabulary const& vocabulary) const {
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

SLUICE_NAMES(begun)
SLUICE_NAMES(remaining)
SLUICE_NAMES(trivial)
SLUICE_NAMES(met)
SLUICE_NAMES(count)
SLUICE_NAMES(text)
SLUICE_NAMES(forbidden)
SLUICE_NAMES(allowed)

namespace sluice::inline v0 {

// clang-format off
/// Follows one output token by token and reports how much of a constraint is met. `State` is a small value, copied
/// along with its hypothesis. Phrases, OrderedPhrases, AnyOf, Forbidden and Constraints are such automata; users can
/// write their own (a grammar, a regular expression).
///
///  - `initial(sentence)`: the state before the first token of the output (bos has been read, if it matters); throws
///    std::invalid_argument for a constraint that is invalid for this sentence, which then ends with
///    Failure::bad_request;
///  - `next(state, token)`: the state after `token`, which is forced or generated, eos included;
///  - `progress(state)`: how much is met, from 0 to `total()`. Hypotheses with equal progress share a bank of the beam;
///  - `wanted(state, tokens)`: appends the tokens that raise progress, once each;
///  - `complete(state)`: everything is met. Only such hypotheses may end;
///  - `dead(state)`: it can never be complete.
///
/// Optional (the compiler rejects members with these names and other signatures):
///  - `begun(state)`: how much of the progress belongs to an unfinished phrase that may be abandoned; otherwise 0. In a
///    Product only the longest such prefix of all counts, so that one token may serve several;
///  - `forbidden(state, tokens)`: appends the tokens that lead to a dead state, where they are few; `allowed(state)`: a
///    TokenSet const* of those that do not, where they are few (nullptr: all). With neither, tokens are tried and
///    dropped, and a hypothesis dies if all listed tokens are dropped;
///  - `met(state)` of `count()`: the number of constraints met, for Hypothesis::constraints_met; otherwise progress of
///    total;
///  - `remaining(state)`: a lower bound on the tokens needed for the rest; otherwise 0. A request with room for fewer
///    is refused;
///  - `text()`: the constraints in words, for that message;
///  - `trivial()`: whether there is no constraint at all; the search is then the plain one;
///  - `insert_into(set)`: adds to a TokenSet the tokens without which the constraints cannot be met; they are added to
///    a request's shortlist.
template <class A>
concept ConstraintAutomaton = std::copyable<typename A::State> &&
  requires(A const& a, typename A::State const& state, Sentence const& sentence, Token token,
           std::vector<Token>& tokens) {
    { a.initial(sentence) } -> std::same_as<typename A::State>;
    { a.next(state, token) } -> std::same_as<typename A::State>;
    { a.progress(state) } -> std::convertible_to<std::int32_t>;
    { a.total() } -> std::convertible_to<std::int32_t>;
    a.wanted(state, tokens);
    { a.complete(state) } -> std::convertible_to<bool>;
    { a.dead(state) } -> std::convertible_to<bool>;
  };
// clang-format on

namespace detail {

// clang-format off
template <class A>
concept NamesBegun = requires(A const& a, typename A::State const& state) {
  { a.begun(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesForbidden = requires(A const& a, typename A::State const& state, std::vector<Token>& tokens) {
  a.forbidden(state, tokens);
};
template <class A>
concept NamesAllowed = requires(A const& a, typename A::State const& state) {
  { a.allowed(state) } -> std::convertible_to<TokenSet const*>;
};
template <class A>
concept NamesMet = requires(A const& a, typename A::State const& state) {
  { a.met(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesCount = requires(A const& a) { { a.count() } -> std::convertible_to<std::int32_t>; };
template <class A>
concept NamesRemaining = requires(A const& a, typename A::State const& state) {
  { a.remaining(state) } -> std::convertible_to<std::int32_t>;
};
template <class A>
concept NamesText = requires(A const& a) { { a.text() } -> std::convertible_to<std::string>; };
template <class A>
concept NamesTrivial = requires(A const& a) { { a.trivial() } -> std::convertible_to<bool>; };
// clang-format on

/// Rejects members with the name of an optional one but another signature: they would never be called.
template <ConstraintAutomaton A>
consteval bool automaton_names() {
  static_assert(NamesBegun<A> || !stray_begun<A>(),
                "sluice: an automaton's `begun` must be const, take a State const& and return an int32_t");
  static_assert(NamesForbidden<A> || !stray_forbidden<A>(),
                "sluice: an automaton's `forbidden` must be const and take (State const&, std::vector<Token>&)");
  static_assert(NamesAllowed<A> || !stray_allowed<A>(),
                "sluice: an automaton's `allowed` must be const, take a State const& and return a TokenSet const*");
  static_assert(NamesMet<A> || !stray_met<A>(),
                "sluice: an automaton's `met` must be const, take a State const& and return an int32_t");
  static_assert(NamesCount<A> || !stray_count<A>(),
                "sluice: an automaton's `count` must be const, take nothing and return an int32_t");
  static_assert(NamesRemaining<A> || !stray_remaining<A>(),
                "sluice: an automaton's `remaining` must be const, take a State const& and return an int32_t");
  static_assert(NamesText<A> || !stray_text<A>(),
                "sluice: an automaton's `text` must be const, take nothing and return a std::string");
  static_assert(NamesTrivial<A> || !stray_trivial<A>(),
                "sluice: an automaton's `trivial` must be const, take nothing and return a bool");
  static_assert(InsertingSearch<A> || !stray_insert_into<A>(),
                "sluice: an automaton's `insert_into` must be const and take a TokenSet&");
  return true;
}

template <class A>
bool trivial(A const& a) {
  if constexpr (NamesTrivial<A>) return a.trivial();
  else return false;
}
template <class A>
std::int32_t constraints_met(A const& a, typename A::State const& state) {
  if constexpr (NamesMet<A>) return a.met(state);
  else return a.progress(state);
}
template <class A>
std::int32_t constraints_total(A const& a) {
  if constexpr (NamesCount<A>) return a.count();
  else return a.total();
}
template <class A>
std::int32_t constraints_remaining(A const& a, typename A::State const& state) {
  if constexpr (NamesRemaining<A>) return a.remaining(state);
  else return 0;
}
template <class A>
std::int32_t constraints_begun(A const& a, typename A::State const& state) {
  if constexpr (NamesBegun<A>) return a.begun(state);
  else return 0;
}
template <class A>
std::string constraints_text(A const& a) {
  if constexpr (NamesText<A>) return a.text();
  else return {};
}
template <class A>
void constraints_insert_into(A const& a, TokenSet& set) {
  if constexpr (InsertingSearch<A>) a.insert_into(set);
}

}  // namespace detail

/// The number of the `width` places of a beam that each bank gets.
enum class Banks : std::uint8_t {
  even,   ///< in rounds, from the top bank down, one place for every bank that has a candidate left
  paper,  ///< Post and Vilar 2018, section 3.2: equal shares, the remainder to the top bank; places that a bank cannot
          ///< use go to the nearest that can
  sockeye,  ///< Sockeye's version of `paper`: one pass from the top, which may leave places unused
  fairseq,  ///< no sizes: the best of every bank, from the top bank down, then the second best of every bank, and so on
  equal,    ///< width / banks each, not redistributed (grid beam search)
};

/// Every phrase must occur, each after the one before it, with anything in between. Phrases that are met stay met; a
/// phrase that breaks off falls back to its own longest prefix (Knuth, Morris and Pratt 1977). Progress: the tokens of
/// the phrases met, plus the length of the next phrase's prefix that ends the output. next() is O(1) amortised.
class OrderedPhrases {
 public:
  struct State {
    std::int32_t phrase = 0;  // the next to match
    std::int32_t depth = 0;   // its tokens matched so far
    std::int32_t credit = 0;  // tokens of the phrases met
  };

  OrderedPhrases() = default;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  SLUICE_LAZY explicit OrderedPhrases(std::vector<Phrase> phrases, std::string name = "ordered") {
    if (phrases.empty()) return;
    auto data = std::make_shared<Data>();
    data->phrases = std::move(phrases), data->name = std::move(name);
    for (auto const& phrase : data->phrases) {
      data->total += static_cast<std::int32_t>(phrase.size());
      data->borders.push_back(borders(phrase));
    }
    data_ = std::move(data);
  }
  SLUICE_LAZY OrderedPhrases(std::initializer_list<Phrase> phrases) : OrderedPhrases(std::vector<Phrase>(phrases)) {}

  /// \throws std::invalid_argument  naming the phrase: an empty one, a token outside the vocabulary or never generated,
  ///     eos anywhere but at the end, bos anywhere but at the beginning
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    for (std::size_t i = 0; i < phrases().size(); ++i) {
      auto const& phrase = phrases()[i];
      auto const name = data_->name + "[" + std::to_string(i) + "]";
      detail::check_phrase(sentence, name, phrase);
      require(i + 1 == phrases().size() || !sentence.vocabulary->ends(phrase.back()), name, detail::text(phrase),
              "ends the sentence, but a phrase is to follow");
      require(i == 0 || phrase.front() != sentence.vocabulary->bos, name, detail::text(phrase),
              "begins the sentence, but a phrase is to come before");
    }
    return next({}, sentence.vocabulary->bos);
  }

  SLUICE_LAZY State next(State state, Token token) const {
    if (at(state.phrase) >= phrases().size()) return state;
    auto const& phrase = phrases()[at(state.phrase)];
    while (phrase[at(state.depth)] != token) {
      if (state.depth == 0) return state;
      state.depth = data_->borders[at(state.phrase)][at(state.depth) - 1];
    }
    if (at(++state.depth) == phrase.size()) state.credit += state.depth, state.depth = 0, ++state.phrase;
    return state;
  }

  std::int32_t progress(State const& state) const { return state.credit + state.depth; }
  std::int32_t total() const { return data_ == nullptr ? 0 : data_->total; }
  SLUICE_LAZY bool complete(State const& state) const { return state.phrase == count(); }
  bool dead(State const&) const { return false; }
  SLUICE_LAZY void wanted(State const& state, std::vector<Token>& tokens) const {
    if (!complete(state)) tokens.push_back(phrases()[at(state.phrase)][at(state.depth)]);
  }

  std::int32_t begun(State const& state) const { return state.depth; }
  std::int32_t remaining(State const& state) const { return total() - progress(state); }
  bool trivial() const { return data_ == nullptr; }
  std::int32_t met(State const& state) const { return state.phrase; }
  SLUICE_LAZY std::int32_t count() const { return static_cast<std::int32_t>(phrases().size()); }
  SLUICE_LAZY void insert_into(TokenSet& set) const {
    for (auto const& phrase : phrases())
      for (auto const token : phrase)
        if (token >= 0) set.insert(token);
  }
  SLUICE_LAZY std::string text() const { return detail::text_of(data_ == nullptr ? "" : data_->name, phrases()); }
  /// The phrases as given.
  SLUICE_LAZY std::vector<Phrase> const& phrases() const {
    static std::vector<Phrase> const none;
    return data_ == nullptr ? none : data_->phrases;
  }

 private:
  struct Data {
    std::vector<Phrase> phrases;
    std::vector<std::vector<std::int32_t>> borders;  // of each phrase
    std::string name;
    std::int32_t total = 0;
  };

  /// [i]: the length of the longest proper prefix of the first i + 1 tokens that is also their suffix.
  SLUICE_LAZY static std::vector<std::int32_t> borders(Phrase const& phrase) {
    std::vector<std::int32_t> border(phrase.size());
    auto k = std::int32_t{0};
    for (std::size_t i = 1; i < phrase.size(); ++i) {
      while (k > 0 && phrase[at(k)] != phrase[i]) k = border[at(k) - 1];
      if (phrase[at(k)] == phrase[i]) ++k;
      border[i] = k;
    }
    return border;
  }
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::shared_ptr<Data const> data_;
};

/// Every phrase must occur, in any order; one that is listed m times must occur at m positions. AnyOf with one phrase
/// per item: see there for overlaps, cost and errors. Post and Vilar (2018) call these constraints: fairseq's
/// `--constraints unordered`, Sockeye's `constraints`.
class Phrases : public AnyOf {
 public:
  Phrases() = default;
  SLUICE_LAZY explicit Phrases(std::vector<Phrase> const& phrases, std::string name = "phrases")
      : AnyOf(items(phrases), std::move(name)) {}
  SLUICE_LAZY Phrases(std::initializer_list<Phrase> phrases) : Phrases(std::vector<Phrase>(phrases)) {}

 private:
  SLUICE_LAZY static std::vector<std::vector<Phrase>> items(std::vector<Phrase> const& phrases) {
    std::vector<std::vector<Phrase>> items;
    items.reserve(phrases.size());
    for (auto const& phrase : phrases) items.push_back({phrase});
    return items;
  }
};

namespace detail {

/// Adds the tokens that are in one set and not in the other.
SLUICE_LAZY void insert_difference(TokenSet const& in, TokenSet const& not_in, std::vector<Token>& tokens) {
  auto token = Token{0};
  for (auto const word : in.words())
    for (auto bit = 0; bit < 64; ++bit, ++token)
      if ((word >> bit & 1) != 0 && !not_in.contains(token)) tokens.push_back(token);
}

}  // namespace detail

/// The conjunction of several automata. Its progress is the sum of what each has met for good, plus the longest
/// unfinished prefix of any one of them: the same tokens may begin phrases of several, of which only one will be
/// completed.
template <ConstraintAutomaton... As>
class Product {
  static_assert((detail::automaton_names<As>() && ...));

 public:
  using Wrapped = std::tuple<As...>;
  using State = std::tuple<typename As::State...>;

  Product() = default;
  explicit Product(As... all) : all_(std::move(all)...) {}

  State initial(Sentence const& sentence) const {
    return std::apply([&](auto const&... a) { return State(a.initial(sentence)...); }, all_);
  }
  State next(State const& state, Token token) const {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      return State(std::get<I>(all_).next(std::get<I>(state), token)...);
    });
  }
  std::int32_t progress(State const& state) const {
    return begun(state) + sum([&]<std::size_t I> {
             auto const& part = std::get<I>(state);
             return std::get<I>(all_).progress(part) - detail::constraints_begun(std::get<I>(all_), part);
           });
  }
  std::int32_t begun(State const& state) const {
    return most([&]<std::size_t I> { return detail::constraints_begun(std::get<I>(all_), std::get<I>(state)); });
  }
  std::int32_t total() const {
    return sum([&]<std::size_t I> { return std::get<I>(all_).total(); });
  }
  bool complete(State const& state) const {
    return every([&]<std::size_t I> { return std::get<I>(all_).complete(std::get<I>(state)); });
  }
  bool dead(State const& state) const {
    return !every([&]<std::size_t I> { return !std::get<I>(all_).dead(std::get<I>(state)); });
  }
  /// The wanted tokens of all parts that raise the sum and lead none to a dead state.
  void wanted(State const& state, std::vector<Token>& tokens) const {
    auto const first = tokens.size();
    visit([&]<std::size_t I> { std::get<I>(all_).wanted(std::get<I>(state), tokens); });
    auto kept = first;
    auto const begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    for (auto i = first; i < tokens.size(); ++i) {
      auto const token = tokens[i];
      auto const known = tokens.begin() + static_cast<std::ptrdiff_t>(kept);
      if (std::find(begin, known, token) != known) continue;
      if (auto const after = next(state, token); progress(after) > progress(state) && !dead(after))
        tokens[kept++] = token;
    }
    tokens.resize(kept);
  }
  /// The set of the first part that has one; tokens of it that other parts do not allow are forbidden.
  TokenSet const* allowed(State const& state) const requires(detail::NamesAllowed<As> || ...) {
    TokenSet const* first = nullptr;
    visit([&]<std::size_t I> {
      if (first == nullptr) first = allowed_by<I>(state);
    });
    return first;
  }
  void forbidden(State const& state, std::vector<Token>& tokens) const
      requires((detail::NamesForbidden<As> || ...) || (detail::NamesAllowed<As> || ...)) {
    TokenSet const* first = nullptr;
    visit([&]<std::size_t I> {
      if constexpr (detail::NamesForbidden<Part<I>>) std::get<I>(all_).forbidden(std::get<I>(state), tokens);
      if (auto const* const set = allowed_by<I>(state); set != nullptr) {
        if (first == nullptr) first = set;
        else detail::insert_difference(*first, *set, tokens);
      }
    });
  }
  std::int32_t met(State const& state) const {
    return sum([&]<std::size_t I> { return detail::constraints_met(std::get<I>(all_), std::get<I>(state)); });
  }
  std::int32_t count() const {
    return sum([&]<std::size_t I> { return detail::constraints_total(std::get<I>(all_)); });
  }
  bool trivial() const {
    return every([&]<std::size_t I> { return detail::trivial(std::get<I>(all_)); });
  }
  std::int32_t remaining(State const& state) const {
    return most([&]<std::size_t I> { return detail::constraints_remaining(std::get<I>(all_), std::get<I>(state)); });
  }
  std::string text() const {
    std::string all;
    visit([&]<std::size_t I> {
      auto const part = detail::constraints_text(std::get<I>(all_));
      all += (all.empty() || part.empty() ? "" : ", ") + part;
    });
    return all;
  }
  void insert_into(TokenSet& set) const {
    visit([&]<std::size_t I> { detail::constraints_insert_into(std::get<I>(all_), set); });
  }

 private:
  template <std::size_t I>
  using Part = std::tuple_element_t<I, std::tuple<As...>>;

  template <std::size_t I>
  TokenSet const* allowed_by(State const& state) const {
    if constexpr (detail::NamesAllowed<Part<I>>) return std::get<I>(all_).allowed(std::get<I>(state));
    else return nullptr;
  }
  template <class F>
  static auto each(F&& f) {
    return f(std::index_sequence_for<As...>{});
  }
  template <class F>
  static void visit(F&& f) {
    each([&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); });
  }
  template <class F>
  static bool every(F&& f) {
    return each([&]<std::size_t... I>(std::index_sequence<I...>) {
      return (static_cast<bool>(f.template operator()<I>()) && ...);
    });
  }
  template <class F>
  static std::int32_t sum(F&& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::int32_t{0} + ... + static_cast<std::int32_t>(f.template operator()<I>()));
    }
    (std::index_sequence_for<As...>{});
  }
  template <class F>
  static std::int32_t most(F&& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::max)({std::int32_t{0}, static_cast<std::int32_t>(f.template operator()<I>())...});
    }
    (std::index_sequence_for<As...>{});
  }

  std::tuple<As...> all_;
};

/// The phrases that one output must and must not contain.
struct PhraseLists {
  std::vector<Phrase> all{};               ///< all of these, in any order; one listed twice must occur twice (Phrases)
  std::vector<Phrase> ordered{};           ///< all of these, in this order, with anything between (OrderedPhrases)
  std::vector<std::vector<Phrase>> any{};  ///< one phrase of each of these lists (AnyOf)
  std::vector<Phrase> none{};              ///< none of these (Forbidden)
};

/// The product of Phrases, AnyOf, OrderedPhrases and Forbidden. One occurrence in the output may serve `all`, `any` and
/// `ordered` at the same time. Copies share the tables built from the lists.
class Constraints : public Product<Phrases, AnyOf, OrderedPhrases, Forbidden> {
  using Base = Product<Phrases, AnyOf, OrderedPhrases, Forbidden>;

 public:
  Constraints() = default;
  SLUICE_LAZY explicit Constraints(PhraseLists lists)
      : Base(Phrases(lists.all, "all"), AnyOf(lists.any, "any"), OrderedPhrases(lists.ordered, "ordered"),
             Forbidden(lists.none, "none")),
        lists_(std::make_shared<PhraseLists const>(std::move(lists))) {}

  /// \throws std::invalid_argument  what the parts throw, and a phrase that is both required and forbidden
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    auto state = Base::initial(sentence);
    if (lists_ == nullptr) return state;
    check(lists_->all, "all"), check(lists_->ordered, "ordered");
    for (std::size_t i = 0; i < lists_->any.size(); ++i)
      if (std::ranges::all_of(lists_->any[i], [this](Phrase const& phrase) { return forbids(phrase) != nullptr; }))
        check(lists_->any[i], "any[" + std::to_string(i) + "]");
    return state;
  }

  PhraseLists const& lists() const {
    static PhraseLists const none;
    return lists_ == nullptr ? none : *lists_;
  }

 private:
  Phrase const* forbids(Phrase const& phrase) const {
    for (auto const& bad : lists_->none)
      if (detail::contains(phrase, bad)) return &bad;
    return nullptr;
  }
  SLUICE_LAZY void check(std::span<Phrase const> phrases, std::string const& name) const {
    for (std::size_t i = 0; i < phrases.size(); ++i)
      if (auto const* const bad = forbids(phrases[i]))
        require(false, name + "[" + std::to_string(i) + "]", detail::text(phrases[i]),
                "is demanded, and forbidden by none: " + detail::text(*bad));
  }

  std::shared_ptr<PhraseLists const> lists_;
};

}  // namespace sluice::inline v0
