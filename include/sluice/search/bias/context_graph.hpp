// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that an output should rather contain, as an automaton over tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/common/phrase.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A phrase with its boost, in nats: what its occurrence adds to the log-probability of an output.
struct BiasedPhrase {
  std::vector<Phrase> spellings{};    ///< any of these counts as the phrase: cases, other cuts of a tokeniser
  std::optional<float> per_token{};   ///< each token earns this; default: ContextOptions::per_token
  std::optional<float> whole{};       ///< instead: the phrase earns this, spread evenly over a spelling's tokens
  std::vector<float> token_boosts{};  ///< instead: one per token; every spelling then has so many tokens
};

/// Which phrases are paid where several end at one token.
enum class Matches : std::uint8_t {
  all,      ///< each of them; a phrase of which several spellings end there only once, for its longest one
  longest,  ///< only those of the longest spelling
};

/// The options of a ContextGraph.
struct ContextOptions {
  float per_token = 1;  ///< the boost of a token where the phrase does not say; finite
  Matches matches = Matches::all;
};

/// An Aho-Corasick automaton (1975) over tokens, with boosts. Immutable: share one between requests and threads.
///
/// An output has earned credit() for what it has begun, and paid() for what each of its tokens completed. The credit of
/// a state is the largest sum of boosts of a beginning of a phrase that the output ends in, or 0. A step from state s to
/// state t adds paid(t) + credit(t) - credit(s). So what was given for a beginning is taken back when it does not go on,
/// and a negative boost is charged where its phrase is complete. A phrase is paid each time it occurs.
///
/// Built in O(n log n) for n tokens of phrases; 24 bytes for each distinct beginning.
class ContextGraph {
 public:
  using State = std::int32_t;
  static constexpr State root = 0;

  /// Without phrases.
  ContextGraph() : ContextGraph(std::vector<BiasedPhrase>{}) {}
  /// \throws std::invalid_argument  naming the phrase: no spellings or an empty one, a negative token, a boost that is
  ///     NaN or infinite, two kinds of boosts, a number of token_boosts that is not the number of tokens
  template <class = void>
  explicit ContextGraph(std::vector<BiasedPhrase> const& phrases, ContextOptions const& options = {}) {
    require(std::isfinite(options.per_token), "options.per_token", options.per_token, "must be a number");
    std::vector<Spelling> all;
    std::vector<double> sums;  // of the boosts, per spelling: up to and including each token
    for (std::size_t i = 0; i < phrases.size(); ++i) read(phrases[i], i, options.per_token, all, sums);
    for (auto const& one : all)
      for (auto const token : *one.tokens) used_.push_back({token, one.phrase, one.number});
    std::sort(used_.begin(), used_.end());
    used_.erase(
        std::unique(used_.begin(), used_.end(), [](Used const& a, Used const& b) { return a.token == b.token; }),
        used_.end());
    std::sort(all.begin(), all.end(), [](Spelling const& a, Spelling const& b) {
      return *a.tokens != *b.tokens ? *a.tokens < *b.tokens : a.phrase < b.phrase;
    });
    build(all, sums, phrases.size(), options.matches);
    for (auto node = first_[root]; node < first_[root + 1]; ++node)
      from_root_.push_back({token_[at(node)], gain(node)});
  }

  /// The state after a token, from any state.
  State next(State state, Token token) const {
    for (;; state = fail_[at(state)]) {
      auto const found = child(state, token);
      if (found != root || state == root) return found;
    }
  }
  float credit(State state) const { return credit_[at(state)]; }
  float paid(State state) const { return paid_[at(state)]; }

  /// Appends one edit for each token that continues a phrase from here, of what it adds beside -credit(state), which
  /// every token adds. O(c log r + r) for c such tokens after the root's and r tokens that begin phrases.
  template <class = void>
  void edit(State state, std::vector<Edit>& edits) const {
    auto const begin = static_cast<std::ptrdiff_t>(edits.size());
    edits.insert(edits.end(), from_root_.begin(), from_root_.end());
    auto const beyond = begin + std::ssize(from_root_);
    auto const by_token = [](Edit const& x, Edit const& y) { return x.token < y.token; };
    for (auto from = state; from != root; from = fail_[at(from)])
      for (auto node = first_[at(from)]; node < first_[at(from) + 1]; ++node) {
        auto const token = token_[at(node)];
        auto deeper = state;  // a state that has an arc for this token too
        while (deeper != from && child(deeper, token) == root) deeper = fail_[at(deeper)];
        if (deeper == from) edits.push_back({token, gain(node)});
      }
    // A deeper state's edit takes the place of the root's.
    auto kept = beyond;
    for (auto i = beyond; i < std::ssize(edits); ++i) {
      auto const edit = edits[static_cast<std::size_t>(i)];
      auto const end = edits.begin() + beyond;
      auto const same = std::lower_bound(edits.begin() + begin, end, edit, by_token);
      if (same != end && same->token == edit.token) *same = edit;
      else edits[static_cast<std::size_t>(kept++)] = edit;
    }
    edits.resize(static_cast<std::size_t>(kept));
  }

  bool empty() const { return token_.size() == 1; }
  /// The number of distinct beginnings of phrases, and one.
  std::size_t state_count() const { return token_.size(); }

  /// \throws std::invalid_argument  naming the spelling that has a token outside the vocabulary or an eos
  template <class = void>
  void check(Vocabulary const& vocabulary) const {
    if (used_.empty()) return;
    auto const& last = used_.back();
    if (!vocabulary.contains(last.token))
      require(false, name(last), last.token, "is outside the vocabulary of " + std::to_string(vocabulary.size));
    for (auto const eos : vocabulary.eos) {
      auto const found = std::lower_bound(used_.begin(), used_.end(), Used{eos, 0, 0});
      if (found != used_.end() && found->token == eos)
        require(false, name(*found), eos, "is an end of sentence, which no phrase may have");
    }
  }

 private:
  struct Spelling {
    Phrase const* tokens;
    std::size_t sum;  // its first in the sums
    std::int32_t phrase, number;
  };
  struct Used {
    Token token;
    std::int32_t phrase, spelling;  // one that has it
    friend bool operator<(Used const& a, Used const& b) {
      return a.token != b.token     ? a.token < b.token
             : a.phrase != b.phrase ? a.phrase < b.phrase
                                    : a.spelling < b.spelling;
    }
  };

  static std::size_t at(State state) { return static_cast<std::size_t>(state); }
  static std::string name(Used const& used) {
    return "phrases[" + std::to_string(used.phrase) + "].spellings[" + std::to_string(used.spelling) + "]";
  }
  float gain(State state) const { return paid(state) + credit(state); }
  /// The state that a state's own arc leads to, or root.
  State child(State state, Token token) const {
    auto const begin = token_.begin() + first_[at(state)], end = token_.begin() + first_[at(state) + 1];
    auto const found = std::lower_bound(begin, end, token);
    return found == end || *found != token ? root : static_cast<State>(found - token_.begin());
  }

  template <class = void>
  static void read(BiasedPhrase const& phrase, std::size_t index, float usual, std::vector<Spelling>& all,
                   std::vector<double>& sums) {
    auto const here = [&](char const* member) { return "phrases[" + std::to_string(index) + "]." + member; };
    auto const& boosts = phrase.token_boosts;
    auto const refuse = [&](bool bad, char const* member, auto const& value, char const* rule) {
      if (bad) require(false, here(member), value, rule);
    };
    refuse(phrase.spellings.empty(), "spellings", "[]", "is empty");
    refuse(phrase.whole && phrase.per_token, "whole", phrase.whole.value_or(0), "and per_token exclude each other");
    refuse(!boosts.empty() && (phrase.whole || phrase.per_token), "token_boosts", boosts.size(),
           "excludes whole and per_token");
    auto const each = phrase.per_token.value_or(usual), whole = phrase.whole.value_or(0);
    refuse(!std::isfinite(each), "per_token", each, "must be a number");
    refuse(!std::isfinite(whole), "whole", whole, "must be a number");
    for (auto const boost : boosts) refuse(!std::isfinite(boost), "token_boosts", boost, "must be a number");
    for (std::size_t n = 0; n < phrase.spellings.size(); ++n) {
      auto const& tokens = phrase.spellings[n];
      auto const which = [&] { return here("spellings") + "[" + std::to_string(n) + "]"; };
      if (tokens.empty()) require(false, which(), "[]", "is empty");
      if (*std::min_element(tokens.begin(), tokens.end()) < 0)
        require(false, which(), detail::text(tokens), "has a negative token");
      if (!boosts.empty() && boosts.size() != tokens.size())
        require(false, which(), detail::text(tokens), "needs as many tokens as token_boosts");
      all.push_back({&tokens, sums.size(), static_cast<std::int32_t>(index), static_cast<std::int32_t>(n)});
      auto sum = 0.0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        auto const share = static_cast<double>(i + 1) / static_cast<double>(tokens.size());
        if (phrase.whole) sum = static_cast<double>(whole) * share;
        else sum += static_cast<double>(boosts.empty() ? each : boosts[i]);
        sums.push_back(sum);
      }
      if (std::abs(sum) > 1e30) require(false, which(), sum, "sums up to more than 1e30");
    }
  }

  /// Breadth first: a state is a range of the sorted spellings, and the children of a state are consecutive.
  template <class = void>
  void build(std::vector<Spelling> const& all, std::vector<double> const& sums, std::size_t phrases, Matches matches) {
    struct Range {
      std::size_t begin, end, ended, depth;  // [begin, ended): the spellings that end here
    };
    std::vector<Range> ranges{{0, all.size(), 0, 0}};
    std::vector<State> shorter{root};              // the longest proper suffix at which a spelling ends, or root
    std::vector<std::size_t> counted(phrases, 0);  // [phrase]: the last state that paid it
    token_ = {-1}, fail_ = {root}, paid_ = {0}, credit_ = {0};
    for (State state = root; at(state) < ranges.size(); ++state) {
      auto const range = ranges[at(state)];
      first_.push_back(static_cast<State>(token_.size()));
      for (auto i = range.ended; i < range.end;) {
        auto const token = (*all[i].tokens)[range.depth];
        Range next{i, i, i, range.depth + 1};
        auto own = 0.0;
        for (; next.end < range.end && (*all[next.end].tokens)[range.depth] == token; ++next.end)
          if (all[next.end].tokens->size() == next.depth) next.ended = next.end + 1;
          else own = (std::max)(own, sums[all[next.end].sum + range.depth]);
        auto const fail = state == root ? root : this->next(fail_[at(state)], token);
        auto const node = ranges.size();
        ranges.push_back(next), token_.push_back(token), fail_.push_back(fail);
        shorter.push_back(ranges[at(fail)].ended > ranges[at(fail)].begin ? fail : shorter[at(fail)]);
        credit_.push_back((std::max)(static_cast<float>(own), credit_[at(fail)]));
        auto sum = 0.0;
        auto const ends = next.ended > next.begin;
        for (auto s = static_cast<State>(node); ends && s != root; s = shorter[at(s)]) {
          for (auto j = ranges[at(s)].begin; j < ranges[at(s)].ended; ++j)
            if (auto& last = counted[static_cast<std::size_t>(all[j].phrase)]; std::exchange(last, node) != node)
              sum += sums[all[j].sum + ranges[at(s)].depth - 1];
          if (matches == Matches::longest) break;
        }
        paid_.push_back(ends ? static_cast<float>(sum) : paid_[at(fail)]);
        i = next.end;
      }
    }
    first_.push_back(static_cast<State>(token_.size()));
  }

  std::vector<Token> token_;  // [state]: its last; the children of a state are sorted by it
  std::vector<State> first_;  // [state]: its first child; the next state's is the end
  std::vector<State> fail_;   // [state]: the longest proper suffix that is a beginning too
  std::vector<float> paid_, credit_;
  std::vector<Edit> from_root_;  // by token
  std::vector<Used> used_;       // by token
};

}  // namespace sluice::inline v0
