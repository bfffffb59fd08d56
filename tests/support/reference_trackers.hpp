// SPDX-License-Identifier: Apache-2.0
/// \file
/// How other engines track constraints, with their defects: automata to compare the library's own with.
#pragma once

#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::test {

using PhraseList = std::vector<std::vector<Token>>;

/// Sockeye 1.18: the phrases in a row, with each token met or not. Inside a phrase only its next token counts: any
/// other token undoes the phrase, and is not tried again as the beginning of one. Outside, a token opens the first
/// phrase that begins with it.
class SockeyeTracker {
 public:
  struct State {
    std::vector<bool> met;
    std::int32_t inside = -1;  // the position of the last token met, while its phrase continues
  };

  SockeyeTracker() = default;
  explicit SockeyeTracker(PhraseList const& phrases) {
    for (auto const& phrase : phrases)
      for (std::size_t i = 0; i < phrase.size(); ++i) places_.push_back({phrase[i], i == 0, i + 1 == phrase.size()});
  }

  State initial(Sentence const& sentence) const { return next(before(), sentence.vocabulary->bos); }
  State before() const { return {std::vector<bool>(places_.size()), -1}; }

  State next(State state, Token token) const {
    if (state.inside >= 0) {
      if (place(state.inside + 1).token == token) meet(state, state.inside + 1);
      else undo(state);
      return state;
    }
    for (std::int32_t i = 0; i < total(); ++i)
      if (place(i).first && place(i).token == token && !state.met[static_cast<std::size_t>(i)]) {
        meet(state, i);
        break;
      }
    return state;
  }

  std::int32_t progress(State const& state) const {
    return static_cast<std::int32_t>(std::ranges::count(state.met, true));
  }
  std::int32_t total() const { return static_cast<std::int32_t>(places_.size()); }
  bool complete(State const& state) const { return progress(state) == total(); }
  bool dead(State const&) const { return false; }
  void wanted(State const& state, std::vector<Token>& tokens) const {
    if (state.inside >= 0) return tokens.push_back(place(state.inside + 1).token);
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i].first && !state.met[i] && std::ranges::find(tokens, places_[i].token) == tokens.end())
        tokens.push_back(places_[i].token);
  }

 private:
  struct Place {
    Token token;
    bool first, last;  // of its phrase
  };
  Place const& place(std::int32_t i) const { return places_[static_cast<std::size_t>(i)]; }
  void meet(State& state, std::int32_t i) const {
    state.met[static_cast<std::size_t>(i)] = true;
    state.inside = place(i).last ? -1 : i;
  }
  void undo(State& state) const {
    for (auto i = std::exchange(state.inside, -1);; --i) {
      state.met[static_cast<std::size_t>(i)] = false;
      if (place(i).first) return;
    }
  }

  std::vector<Place> places_;
};

/// fairseq's `--constraints unordered`: a trie whose nodes count how often they were generated. A token that breaks a
/// phrase off is tried again at the root, but against the counts before the broken phrase is undone.
class FairseqUnordered {
 public:
  struct State {
    std::int32_t node = 0;
    std::vector<std::int32_t> generated, completed;  // [node]
  };

  FairseqUnordered() : FairseqUnordered(PhraseList{}) {}
  explicit FairseqUnordered(PhraseList const& phrases) {
    std::vector<Node> nodes(1);
    for (auto const& phrase : phrases) {
      std::size_t node = 0;
      ++nodes[0].below;
      for (auto const token : phrase) {
        auto const [child, fresh] = nodes[node].children.try_emplace(token, static_cast<std::int32_t>(nodes.size()));
        auto const to = static_cast<std::size_t>(child->second);
        if (fresh) nodes.push_back({.parent = static_cast<std::int32_t>(node)});
        ++nodes[to].below;
        node = to;
      }
      ++nodes[node].ends;
      total_ += static_cast<std::int32_t>(phrase.size());
    }
    nodes_ = std::make_shared<std::vector<Node> const>(std::move(nodes));
  }

  State initial(Sentence const&) const { return before(); }
  State before() const {
    std::vector<std::int32_t> const zeros(nodes_->size());
    return {0, zeros, zeros};
  }

  State next(State state, Token token) const {
    auto const old = state.node;
    auto const child = open_child(state, old, token);
    state.node = child > 0 ? child : open_child(state, 0, token);
    if (state.node > 0) ++at(state.generated, state.node);
    if (child > 0) return state;
    for (auto n = old; n > 0; n = node(n).parent) {
      if (at(state.completed, n) < node(n).ends) {
        ++at(state.completed, n);
        break;
      }
      --at(state.generated, n);
    }
    return state;
  }

  std::int32_t progress(State const& state) const { return sum(state.generated); }
  std::int32_t total() const { return total_; }
  std::int32_t met(State const& state) const {
    auto const here = state.completed[static_cast<std::size_t>(state.node)] < node(state.node).ends;
    return sum(state.completed) + (here ? 1 : 0);
  }
  std::int32_t count() const { return node(0).below; }
  bool complete(State const& state) const { return met(state) == count(); }
  bool dead(State const&) const { return false; }
  /// Includes tokens that raise nothing: the first token of a phrase that is met, or of a phrase other than the open
  /// one.
  void wanted(State const& state, std::vector<Token>& tokens) const {
    for (auto const& [token, child] : node(0).children) tokens.push_back(token);
    for (auto const& [token, child] : node(state.node).children)
      if (!node(0).children.contains(token)) tokens.push_back(token);
  }

 private:
  struct Node {
    std::map<Token, std::int32_t> children{};
    std::int32_t parent = 0;
    std::int32_t below = 0;  // phrases that pass through or end here
    std::int32_t ends = 0;   // phrases that end here
  };
  Node const& node(std::int32_t i) const { return (*nodes_)[static_cast<std::size_t>(i)]; }
  static std::int32_t& at(std::vector<std::int32_t>& counts, std::int32_t i) {
    return counts[static_cast<std::size_t>(i)];
  }
  /// The child, unless it has already been generated as often as is useful; otherwise the root.
  std::int32_t open_child(State const& state, std::int32_t from, Token token) const {
    auto const child = node(from).children.find(token);
    if (child == node(from).children.end()) return 0;
    auto const generated = state.generated[static_cast<std::size_t>(child->second)];
    return generated < node(child->second).below ? child->second : 0;
  }
  static std::int32_t sum(std::vector<std::int32_t> const& counts) {
    std::int32_t sum = 0;
    for (auto const count : counts) sum += count;
    return sum;
  }

  std::shared_ptr<std::vector<Node> const> nodes_;
  std::int32_t total_ = 0;
};

/// fairseq's `--constraints ordered`: one sequence and a position in it. Anything may come between two phrases; a
/// mismatch within a phrase forgets everything before it.
class FairseqOrdered {
 public:
  using State = std::int32_t;  // the position of the last token met

  FairseqOrdered() = default;
  explicit FairseqOrdered(PhraseList const& phrases) {
    for (auto const& phrase : phrases)
      for (std::size_t i = 0; i < phrase.size(); ++i) places_.push_back({phrase[i], i + 1 == phrase.size()});
  }

  State initial(Sentence const&) const { return before(); }
  State before() const { return -1; }
  State next(State state, Token token) const {
    if (complete(state)) return state;
    if (place(state + 1).token == token) return state + 1;
    if (state < 0 || place(state).last) return state;
    return token == place(0).token ? 0 : -1;
  }
  std::int32_t progress(State state) const { return state + 1; }
  std::int32_t total() const { return static_cast<std::int32_t>(places_.size()); }
  std::int32_t met(State state) const {
    return static_cast<std::int32_t>(
        std::count_if(places_.begin(), places_.begin() + state + 1, [](Place const& place) { return place.last; }));
  }
  std::int32_t count() const { return met(total() - 1); }
  bool complete(State state) const { return state + 1 == total(); }
  bool dead(State) const { return false; }
  /// Includes the very first token, to start again.
  void wanted(State state, std::vector<Token>& tokens) const {
    if (state > 0) tokens.push_back(place(0).token);
    if (!complete(state) && (state <= 0 || place(state + 1).token != place(0).token))
      tokens.push_back(place(state + 1).token);
  }

 private:
  struct Place {
    Token token;
    bool last;  // of its phrase
  };
  Place const& place(std::int32_t i) const { return places_[static_cast<std::size_t>(i)]; }

  std::vector<Place> places_;
};

}  // namespace sluice::test
