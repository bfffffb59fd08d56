// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrases that an output should rather contain, as an automaton over tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/bias/biased_phrase.hpp>
#include <sluice/search/bias/detail/biased_spellings.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An Aho-Corasick automaton (1975) over tokens, with boosts. Immutable: share one between requests and threads.
///
/// An output has earned credit() for what it has begun, and paid() for what each of its tokens completed. The credit of
/// a state is the largest sum of boosts of a beginning of a phrase that the output ends in, or 0. A step from state s to
/// state t adds paid(t) + credit(t) - credit(s). So what was given for a beginning is taken back when it does not go on,
/// and a negative boost is charged where its phrase is complete. A phrase is paid each time it occurs, unless
/// ContextOptions::once.
///
/// Built in O(n log n) for n tokens of phrases; 24 bytes for each distinct beginning.
class ContextGraph {
 public:
  using State = std::int32_t;
  static constexpr State root = 0;

  /// A phrase that a token completes, and what it is paid.
  struct Completed {
    std::int32_t phrase;
    float boost;
  };

  /// Without phrases.
  template <class = void>
  ContextGraph() : ContextGraph(std::vector<BiasedPhrase>{}) {}
  /// \throws std::invalid_argument  naming the phrase: no spellings or an empty one, a negative token, a boost that is
  ///     NaN or infinite, two kinds of boosts, a number of token_boosts that is not the number of tokens; a negative lead
  template <class = void>
  explicit ContextGraph(std::vector<BiasedPhrase> const& phrases, ContextOptions const& options = {})
      : options_(options) {
    require(std::isfinite(options.per_token), "options.per_token", options.per_token, "must be a number");
    require(options.lead >= 0, "options.lead", options.lead, "must not be negative");
    detail::BiasedSpellings const spellings(phrases, options.per_token);
    used_ = spellings.used();
    build(spellings, phrases.size());
    auto const list = [&](std::vector<Edit>& edits, float& most, State node, float gain) {
      if (gain != 0) edits.push_back({token_[at(node)], gain}), most = (std::max)(most, gain);
    };
    std::vector<Edit> begin, last;
    for (auto node = first_[root]; node < first_[root + 1]; ++node)
      list(begin, begin_most_, node, paid(node) + credit(node)), list(last, last_most_, node, paid(node));
    begin_ = SharedEdits(std::move(begin)), last_ = SharedEdits(std::move(last));
  }

  ContextOptions const& options() const { return options_; }
  /// The state that a token leads to, from any state: what it completes is paid there.
  template <class = void>
  State arrive(State state, Token token) const {
    for (;; state = fail_[at(state)]) {
      auto const found = child(state, token);
      if (found != root || state == root) return found;
    }
  }
  /// The state after a token: that of arrive(), unless Matches::first begins anew.
  template <class = void>
  State next(State state, Token token) const {
    return settle(arrive(state, token));
  }
  State settle(State arrived) const { return over_.empty() || over_[at(arrived)] == 0 ? arrived : root; }
  float credit(State state) const { return credit_[at(state)]; }
  float paid(State arrived) const { return paid_[at(arrived)]; }

  /// Appends one edit for each token that continues or begins a phrase, of what it adds beside -credit(state), which
  /// every token adds. `last`: the output ends after it, so that nothing is lent. Those that begin phrases come first,
  /// then the others, both by token. O(c log r + r) for c tokens that continue one and r that begin one.
  template <class = void>
  SortedEdits edit(State state, std::vector<Edit>& edits, bool last = false) const {
    auto const& roots = shared_edits(last).edits;
    edits.insert(edits.end(), roots.begin(), roots.end());
    return go_on(state, edits, roots.size(), last ? last_most_ : begin_most_,
                 [&](State arrived) { return paid(arrived) + (last ? 0 : credit(arrived)); });
  }
  /// The edits of tokens that begin a phrase.
  SharedEdits const& shared_edits(bool last = false) const { return last ? last_ : begin_; }
  /// The same as edit() but for shared_edits(), some of which those appended replace.
  template <class = void>
  void edit_further(State state, std::vector<Edit>& edits, bool last = false) const {
    go_on(state, edits, 0, 0, [&](State arrived) { return paid(arrived) + (last ? 0 : credit(arrived)); });
  }
  /// The same with another gain: gain(state that a token arrives at).
  template <class Gain>
  SortedEdits edit(State state, std::vector<Edit>& edits, Gain const& gain) const {
    auto const before = edits.size();
    auto most = 0.0f;
    for (auto node = first_[root]; node < first_[root + 1]; ++node)
      if (auto const add = gain(node); add != 0) edits.push_back({token_[at(node)], add}), most = (std::max)(most, add);
    return go_on(state, edits, edits.size() - before, most, gain);
  }

  bool empty() const { return token_.size() == 1; }
  /// The number of distinct beginnings of phrases, and one.
  std::size_t state_count() const { return token_.size(); }
  /// An upper bound on what one token adds; >= 0.
  float most_per_token() const { return most_; }
  /// ContextOptions::once: calls f(completed) for every phrase that ends at a state: longer spellings first, and a phrase
  /// again for each spelling of another length.
  template <class F>
  void for_each_completed(State arrived, F&& f) const {
    if (done_.empty()) return;
    for (auto s = done_[at(arrived)] == done_[at(arrived) + 1] ? shorter_[at(arrived)] : arrived; s != root;
         s = shorter_[at(s)]) {
      for (auto i = done_[at(s)]; i < done_[at(s) + 1]; ++i) f(completed_[i]);
      if (options_.matches != Matches::all) return;
    }
  }
  /// ContextOptions::once: the phrase for whose beginning credit() is given; -1: none.
  std::int32_t owner(State state) const { return owner_[at(state)]; }

  /// \throws std::invalid_argument  naming the spelling that has a token outside the vocabulary or an eos
  template <class = void>
  void check(Vocabulary const& vocabulary) const {
    if (used_.empty()) return;
    auto const& last = used_.back();
    if (!vocabulary.contains(last.token))
      require(false, last.name(), last.token, "is outside the vocabulary of " + std::to_string(vocabulary.size));
    for (auto const eos : vocabulary.eos) {
      auto const found = std::lower_bound(used_.begin(), used_.end(), Used{eos, 0, 0});
      if (found != used_.end() && found->token == eos)
        require(false, found->name(), eos, "is an end of sentence, which no phrase may have");
    }
  }

 private:
  using Used = detail::BiasedSpellings::Used;

  static std::size_t at(State state) { return static_cast<std::size_t>(state); }
  /// The state that a state's own arc leads to, or root.
  State child(State state, Token token) const {
    auto const begin = token_.begin() + first_[at(state)], end = token_.begin() + first_[at(state) + 1];
    auto const found = std::lower_bound(begin, end, token);
    return found == end || *found != token ? root : static_cast<State>(found - token_.begin());
  }

  /// Adds the edits of tokens that continue a phrase to the last `roots` ones: they take their places.
  template <class Gain>
  SortedEdits go_on(State state, std::vector<Edit>& edits, std::size_t roots, float most, Gain const& gain) const {
    auto const from_root = static_cast<std::ptrdiff_t>(edits.size());
    auto const by_token = [](Edit const& x, Edit const& y) { return x.token < y.token; };
    for (auto from = state; from != root; from = fail_[at(from)])
      for (auto node = first_[at(from)]; node < first_[at(from) + 1]; ++node) {
        auto const token = token_[at(node)];
        auto deeper = state;  // a state that has an arc for this token too
        while (deeper != from && child(deeper, token) == root) deeper = fail_[at(deeper)];
        if (deeper != from) continue;
        Edit const edit{token, gain(node)};
        auto const end = edits.begin() + from_root;
        auto const same = std::lower_bound(end - static_cast<std::ptrdiff_t>(roots), end, edit, by_token);
        if (same != end && same->token == token) *same = edit, most = (std::max)(most, edit.add);
        else edits.push_back(edit);
      }
    auto const second = std::ssize(edits) - from_root;
    if (fail_[at(state)] != root) std::sort(edits.begin() + from_root, edits.end(), by_token);
    return {static_cast<std::int32_t>(roots), static_cast<std::int32_t>(second), most};
  }

  /// Breadth first: a state is a range of the sorted spellings, and the children of a state are consecutive.
  template <class = void>
  void build(detail::BiasedSpellings const& spellings, std::size_t phrases) {
    auto const& all = spellings.all;
    auto const& sums = spellings.sums;
    struct Range {
      std::size_t begin, end, ended, depth;  // [begin, ended): the spellings that end here
    };
    std::vector<Range> ranges{{0, all.size(), 0, 0}};
    shorter_ = {root};
    std::vector<std::size_t> counted(phrases, 0);  // [phrase]: the last state that paid it
    token_ = {-1}, fail_ = {root}, paid_ = {0}, credit_ = {0}, owner_ = {-1};
    if (options_.matches == Matches::first) over_ = {0};
    for (State state = root; at(state) < ranges.size(); ++state) {
      auto const range = ranges[at(state)];
      first_.push_back(static_cast<State>(token_.size()));
      for (auto i = range.ended; i < range.end;) {
        auto const token = (*all[i].tokens)[range.depth];
        Range next{i, i, i, range.depth + 1};
        auto own = 0.0;
        std::int32_t owner = -1;
        for (; next.end < range.end && (*all[next.end].tokens)[range.depth] == token; ++next.end)
          if (all[next.end].tokens->size() == next.depth) next.ended = next.end + 1;
          else if (auto const sum = sums[all[next.end].sum + range.depth]; sum > own)
            own = sum, owner = all[next.end].phrase;
        auto const fail = state == root ? root : this->arrive(fail_[at(state)], token);
        auto const node = ranges.size();
        ranges.push_back(next), token_.push_back(token), fail_.push_back(fail);
        shorter_.push_back(ranges[at(fail)].ended > ranges[at(fail)].begin ? fail : shorter_[at(fail)]);
        auto const ends = next.ended > next.begin;
        if (!over_.empty()) over_.push_back(ends || shorter_.back() != root ? 1 : 0);
        auto const lent = next.depth > static_cast<std::size_t>(options_.lead) ? static_cast<float>(own) : 0.0f;
        credit_.push_back((std::max)(lent, credit_[at(fail)]));
        owner_.push_back(lent >= credit_[at(fail)] ? owner : owner_[at(fail)]);
        if (!over_.empty() && over_.back() != 0) credit_.back() = 0;
        auto sum = 0.0, risen = 0.0;
        auto const longest = ends ? static_cast<State>(node) : options_.once ? shorter_.back() : root;
        for (auto s = longest; s != root; s = shorter_[at(s)]) {
          for (auto j = ranges[at(s)].begin; j < ranges[at(s)].ended; ++j)
            if (auto& last = counted[static_cast<std::size_t>(all[j].phrase)]; std::exchange(last, node) != node) {
              auto const boost = sums[all[j].sum + ranges[at(s)].depth - 1];
              sum += boost, risen += (std::max)(boost, 0.0);
            }
          if (options_.matches != Matches::all) break;
        }
        paid_.push_back(ends ? static_cast<float>(sum) : paid_[at(fail)]);
        auto const most = options_.once ? risen + static_cast<double>(credit_.back())
                                        : static_cast<double>(paid_.back() + credit_.back() - credit(state));
        most_ = (std::max)(most_, static_cast<float>(most));
        i = next.end;
      }
    }
    first_.push_back(static_cast<State>(token_.size()));
    if (!options_.once) shorter_.clear(), owner_.clear();
    else
      for (auto const& range : ranges) {
        done_.push_back(completed_.size());
        for (auto j = range.begin; j < range.ended; ++j)
          completed_.push_back({all[j].phrase, static_cast<float>(sums[all[j].sum + range.depth - 1])});
      }
    if (options_.once) done_.push_back(completed_.size());
    most_ *= 1.000001f;  // sums in float are rounded
  }

  ContextOptions options_;
  std::vector<Token> token_;  // [state]: its last; the children of a state are sorted by it
  std::vector<State> first_;  // [state]: its first child; the next state's is the end
  std::vector<State> fail_;   // [state]: the longest proper suffix that is a beginning too
  std::vector<float> paid_, credit_;
  std::vector<std::uint8_t> over_;   // [state]: whether a spelling ends there; of Matches::first
  std::vector<State> shorter_;       // [state]: the longest proper suffix at which a spelling ends, or root
  std::vector<std::int32_t> owner_;  // this, the last and the next two: of ContextOptions::once
  std::vector<std::size_t> done_;    // [state]: the first in completed_ of the spellings that end there
  std::vector<Completed> completed_;
  SharedEdits begin_, last_;
  std::vector<Used> used_;                           // by token
  float most_ = 0, begin_most_ = 0, last_most_ = 0;  // of any token, and of begin_ and last_
};

}  // namespace sluice::inline v0
