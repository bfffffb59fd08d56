// SPDX-License-Identifier: Apache-2.0
/// \file
/// Texts of the words of a lexicon alone.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A word, and one way to spell it. A word with several has several of these.
struct Spelling {
  std::string word;
  std::vector<Token> tokens;
};

/// Texts consist of the words of a lexicon, with separators between them: a Rule, for CtcBeamSearch, and any search by Ruled. A text ends
/// after a word, or after a separator. Separators may also stand first, last, and several together.
///
/// Without a separator, words follow each other directly, and the first token of a word must tell that it begins one (as `_` of
/// SentencePiece): a token that may also go on where a word may end is refused.
///
/// A trie, shared by all copies: 20 bytes for each of its nodes. A prefix costs a set of the vocabulary's tokens.
class Lexicon {
 public:
  /// Where in a word a text ends. 0: between words; -1: it is none of words.
  struct State {
    std::int32_t node = 0;
    bool over = false;  // an eos was fed
    Vocabulary const* vocabulary = nullptr;
  };

  /// Allows everything.
  Lexicon() = default;
  /// \param separator  stands between words; -1: nothing does
  /// \throws std::invalid_argument  naming the word: without tokens, with the separator in it, or, without separator, where the words
  ///     cannot be told apart
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  template <class = void>
  explicit Lexicon(std::vector<Spelling> spellings, Token separator = -1) {
    auto data = std::make_shared<Data>();
    data->separator = separator, data->spellings = std::move(spellings);
    for (auto const& one : data->spellings) {
      require(!one.tokens.empty(), "lexicon: word", one.word, "has a spelling without tokens");
      for (auto const token : one.tokens) {
        require(token >= 0 && token != separator, "lexicon: word", one.word,
                "is spelt with token " + std::to_string(token) + ", which is no part of a word");
        data->largest = (std::max)(data->largest, token);
      }
    }
    data->build();
    data_ = std::move(data);
    if (separator < 0) check_starts();
  }

  bool trivial() const { return data_ == nullptr; }
  Token separator() const { return data_ == nullptr ? -1 : data_->separator; }
  std::vector<Spelling> const& spellings() const { return data_->spellings; }

  /// \throws std::invalid_argument  naming a word with a token that the vocabulary lacks, or never generates
  template <class = void>
  State initial(Sentence const& sentence) const {
    auto const& vocabulary = *sentence.vocabulary;
    if (trivial()) return {.vocabulary = &vocabulary};
    require(separator() < vocabulary.size, "separator", separator(), outside(vocabulary));
    require(separator() < 0 || !vocabulary.ends(separator()), "separator", separator(),
            "ends a text (the blank, or eos)");
    if (data_->largest < vocabulary.size && !any_used(vocabulary.eos) && !any_used(vocabulary.never))
      return {.vocabulary = &vocabulary};
    for (auto const& one : data_->spellings)
      for (auto const token : one.tokens) {
        auto const what = "cannot be spelt: token " + std::to_string(token) + " ";
        require(token < vocabulary.size, "lexicon: word", one.word, what + outside(vocabulary));
        require(!vocabulary.ends(token), "lexicon: word", one.word, what + "ends a text (the blank, or eos)");
        require(std::find(vocabulary.never.begin(), vocabulary.never.end(), token) == vocabulary.never.end(),
                "lexicon: word", one.word, what + "is never generated");
      }
    return {.vocabulary = &vocabulary};
  }
  template <class = void>
  State next(State state, Token token) const {
    if (trivial()) return state;
    if (state.over || state.node < 0) state.node = -1;
    else if (state.vocabulary->ends(token)) state.over = true;
    else state.node = step(state.node, token).node;
    return state;
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  template <class = void>
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t) const {
    if (trivial()) return nullptr;
    auto set = std::make_shared<TokenSet>(state.vocabulary->size);
    if (state.node < 0 || state.over) return set;
    auto const ends = may_end(state.node);
    insert_children(*set, state.node);
    if (ends && separator() >= 0) set->insert(separator());
    if (ends && separator() < 0) insert_children(*set, 0);
    if (ends) set->insert(state.vocabulary->eos);
    return set;
  }
  template <class = void>
  void require_possible(State const& state, Output const& output, std::int32_t) const {
    require(state.node >= 0 && !state.over, "prefix", std::to_string(output.prefix) + " tokens",
            "is not a beginning of words of the lexicon");
  }

  /// Where a token leads. For language models over the words.
  struct Step {
    std::int32_t node = -1;  ///< -1: nowhere
    bool closes = false;     ///< a word is over
  };
  template <class = void>
  Step step(std::int32_t node, Token token) const {
    if (node < 0) return {};
    auto const ends = may_end(node);
    if (token == separator()) return ends ? Step{0, node != 0} : Step{};
    auto const found = child(node, token);
    if (found >= 0 || separator() >= 0 || node == 0 || !ends) return {found, false};
    auto const begun = child(0, token);
    return {begun, begun >= 0};
  }
  /// Whether a text may end at a node: between words, or at the end of one.
  bool may_end(std::int32_t node) const { return node == 0 || !words(node).empty(); }
  /// The spellings that end at a node, as indices of spellings().
  template <class = void>
  std::span<std::int32_t const> words(std::int32_t node) const {
    auto const& one = data_->nodes[static_cast<std::size_t>(node)];
    return std::span(data_->order).subspan(one.first_word, one.words);
  }
  std::int32_t nodes() const { return static_cast<std::int32_t>(data_->nodes.size()); }
  /// The first child of a node, and how many it has; they have numbers above its own.
  std::pair<std::int32_t, std::int32_t> children(std::int32_t node) const {
    auto const& one = data_->nodes[static_cast<std::size_t>(node)];
    return {static_cast<std::int32_t>(one.child), static_cast<std::int32_t>(one.children)};
  }

 private:
  struct Node {
    Token token = -1;
    std::uint32_t child = 0, children = 0, first_word = 0, words = 0;
  };
  struct Data {
    std::vector<Spelling> spellings;
    std::vector<std::int32_t> order;  // of spellings, by their tokens
    std::vector<Node> nodes;          // the children of a node are consecutive, sorted by their token
    Token separator = -1, largest = -1;

    template <class = void>
    void build() {
      order.resize(spellings.size());
      std::iota(order.begin(), order.end(), 0);
      auto const tokens = [this](std::size_t i) -> std::vector<Token> const& {
        return spellings[static_cast<std::size_t>(order[i])].tokens;
      };
      std::sort(order.begin(), order.end(), [this](std::int32_t a, std::int32_t b) {
        auto const &x = spellings[static_cast<std::size_t>(a)].tokens,
                   &y = spellings[static_cast<std::size_t>(b)].tokens;
        return x != y ? x < y : a < b;
      });
      nodes.push_back({});
      std::vector<std::size_t> firsts{0}, lasts{order.size()}, depths{0};  // of each node
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        auto first = firsts[n];
        auto const last = lasts[n], depth = depths[n];
        nodes[n].first_word = static_cast<std::uint32_t>(first);
        while (first < last && tokens(first).size() == depth) ++first, ++nodes[n].words;
        nodes[n].child = static_cast<std::uint32_t>(nodes.size());
        while (first < last) {
          auto const token = tokens(first)[depth];
          auto end = first + 1;
          while (end < last && tokens(end)[depth] == token) ++end;
          nodes.push_back({.token = token});
          ++nodes[n].children;
          firsts.push_back(first), lasts.push_back(end), depths.push_back(depth + 1);
          first = end;
        }
      }
    }
  };

  static std::string outside(Vocabulary const& vocabulary) {
    return "is outside the vocabulary of " + std::to_string(vocabulary.size);
  }
  std::span<Node const> children_of(std::int32_t node) const {
    auto const& one = data_->nodes[static_cast<std::size_t>(node)];
    return std::span(data_->nodes).subspan(one.child, one.children);
  }
  template <class = void>
  std::int32_t child(std::int32_t node, Token token) const {
    auto const all = children_of(node);
    auto const found = std::lower_bound(all.begin(), all.end(), token,
                                        [](Node const& one, Token wanted) { return one.token < wanted; });
    if (found == all.end() || found->token != token) return -1;
    return static_cast<std::int32_t>(&*found - data_->nodes.data());
  }
  void insert_children(TokenSet& set, std::int32_t node) const {
    for (auto const& one : children_of(node)) set.insert(one.token);
  }
  template <class = void>
  bool any_used(std::vector<Token> const& tokens) const {
    for (auto const& one : data_->nodes)
      if (std::find(tokens.begin(), tokens.end(), one.token) != tokens.end()) return true;
    return false;
  }
  template <class = void>
  void check_starts() const {
    for (std::int32_t node = 1; node < nodes(); ++node)
      if (may_end(node))
        for (auto const& one : children_of(node))
          require(child(0, one.token) < 0, "lexicon: word",
                  data_->spellings[static_cast<std::size_t>(words(node)[0])].word,
                  "token " + std::to_string(one.token) +
                      " goes on from it to a longer word, and begins words: give a separator");
  }

  std::shared_ptr<Data const> data_;
};

}  // namespace sluice::inline v0
