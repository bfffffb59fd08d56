// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrase boosting (hotwords, contextual biasing) for any search: phrases that an output should rather contain, as an automaton
/// over tokens.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/phrase.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// A phrase with its boost, in nats: what its occurrence adds to the log-probability of an output.
struct BiasedPhrase {
  std::vector<Phrase> spellings{};    ///< any of these counts as the phrase: cases, other cuts of a tokeniser
  std::optional<float> per_token{};   ///< each token earns this; default: BiasOptions::per_token
  std::optional<float> whole{};       ///< instead: the phrase earns this, spread evenly over a spelling's tokens
  std::vector<float> token_boosts{};  ///< instead: one per token; every spelling then has so many tokens
};

/// Which phrases are paid where several end at one token.
enum class Matches : std::uint8_t {
  all,      ///< each of them; a phrase of which several spellings end there only once, for its longest one
  longest,  ///< only those of the longest spelling
  first,    ///< the same, and no other phrase may have begun before that token (sherpa-onnx without its strict mode)
};

/// How phrases are paid.
struct BiasOptions {
  float per_token = 1;  ///< the boost of a token where the phrase does not say; finite
  Matches matches = Matches::all;
  bool once = false;  ///< pay each phrase only the first time that it occurs in an output
  std::int32_t lead =
      0;  ///< beginnings of so many tokens are lent nothing yet: 0, a phrase helps from its first token on;
          ///< 1, from its second on, which spares an edit for each first token; as many as phrases have,
          ///< only whole phrases count (sequence_bias of Hugging Face). >= 0
};

}  // namespace sluice::inline v0

namespace sluice::inline v0::detail {

/// The spellings of all phrases, sorted, with sums of their boosts. Points to the phrases.
struct BiasedSpellings {
  struct Spelling {
    Phrase const* tokens;
    std::size_t sum;  // its first in the sums
    std::int32_t phrase, number;
  };
  /// A token of phrases, and a spelling that has it.
  struct Used {
    Token token;
    std::int32_t phrase, spelling;
    friend bool operator<(Used const& a, Used const& b) {
      return a.token != b.token     ? a.token < b.token
             : a.phrase != b.phrase ? a.phrase < b.phrase
                                    : a.spelling < b.spelling;
    }
    SLUICE_LAZY std::string name() const {
      return "phrases[" + std::to_string(phrase) + "].spellings[" + std::to_string(spelling) + "]";
    }
  };
  std::vector<Spelling> all;
  std::vector<double> sums;  // of the boosts, per spelling: up to and including each token

  /// \throws std::invalid_argument  see Bias
  SLUICE_LAZY BiasedSpellings(std::vector<BiasedPhrase> const& phrases, float usual) {
    for (std::size_t i = 0; i < phrases.size(); ++i) read(phrases[i], i, usual);
    std::sort(all.begin(), all.end(), [](Spelling const& a, Spelling const& b) {
      return *a.tokens != *b.tokens ? *a.tokens < *b.tokens : a.phrase < b.phrase;
    });
  }

  /// Every token once, by number.
  SLUICE_LAZY std::vector<Used> used() const {
    std::vector<Used> used;
    for (auto const& one : all)
      for (auto const token : *one.tokens) used.push_back({token, one.phrase, one.number});
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end(), [](Used const& a, Used const& b) { return a.token == b.token; }),
               used.end());
    return used;
  }

 private:
  SLUICE_LAZY void read(BiasedPhrase const& phrase, std::size_t index, float usual) {
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
        require(false, which(), text(tokens), "has a negative token");
      if (!boosts.empty() && boosts.size() != tokens.size())
        require(false, which(), text(tokens), "needs as many tokens as token_boosts");
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
};

/// An Aho-Corasick automaton (1975) over tokens, with boosts (icefall's ContextGraph). Immutable.
///
/// An output has earned credit() for what it has begun, and paid() for what each of its tokens completed. The credit of
/// a state is the largest sum of boosts of a beginning of a phrase that the output ends in, or 0. A step from state s to
/// state t adds paid(t) + credit(t) - credit(s). So what was given for a beginning is taken back when it does not go on,
/// and a negative boost is charged where its phrase is complete. A phrase is paid each time it occurs, unless
/// BiasOptions::once.
class ContextGraph {
 public:
  using State = std::int32_t;
  static constexpr State root = 0;

  /// \throws std::invalid_argument  see Bias
  SLUICE_LAZY explicit ContextGraph(std::vector<BiasedPhrase> const& phrases, BiasOptions const& options = {})
      : options_(options) {
    require(std::isfinite(options.per_token), "options.per_token", options.per_token, "must be a number");
    require(options.lead >= 0, "options.lead", options.lead, "must not be negative");
    BiasedSpellings const spellings(phrases, options.per_token);
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

  BiasOptions const& options() const { return options_; }
  /// The state that a token leads to, from any state: what it completes is paid there.
  SLUICE_LAZY State arrive(State state, Token token) const {
    for (;; state = fail_[at(state)]) {
      auto const found = child(state, token);
      if (found != root || state == root) return found;
    }
  }
  /// The state after a token: that of arrive(), unless Matches::first begins anew.
  SLUICE_LAZY State next(State state, Token token) const { return settle(arrive(state, token)); }
  State settle(State arrived) const { return over_.empty() || over_[at(arrived)] == 0 ? arrived : root; }
  float credit(State state) const { return credit_[at(state)]; }
  float paid(State arrived) const { return paid_[at(arrived)]; }

  /// Appends one edit for each token that continues or begins a phrase, of what it adds beside -credit(state), which
  /// every token adds. `last`: the output ends after it, so that nothing is lent. Those that begin phrases come first,
  /// then the others, both by token. O(c log r + r) for c tokens that continue one and r that begin one.
  SLUICE_LAZY SortedEdits edit(State state, std::vector<Edit>& edits, bool last = false) const {
    auto const& roots = shared_edits(last).edits;
    edits.insert(edits.end(), roots.begin(), roots.end());
    return go_on(state, edits, roots.size(), last ? last_most_ : begin_most_,
                 [&](State arrived) { return paid(arrived) + (last ? 0 : credit(arrived)); });
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
  std::size_t state_count() const { return token_.size(); }
  /// \throws std::invalid_argument  naming the spelling that has a token outside the vocabulary or an eos
  SLUICE_LAZY void check(Vocabulary const& vocabulary) const {
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

  /// A phrase that a token completes, and what it is paid.
  struct Completed {
    std::int32_t phrase;
    float boost;
  };
  /// The edits of tokens that begin a phrase.
  SharedEdits const& shared_edits(bool last = false) const { return last ? last_ : begin_; }
  /// The same as edit() but for shared_edits(), some of which those appended replace.
  SLUICE_LAZY void edit_further(State state, std::vector<Edit>& edits, bool last = false) const {
    go_on(state, edits, 0, 0, [&](State arrived) { return paid(arrived) + (last ? 0 : credit(arrived)); });
  }
  /// An upper bound on what one token adds; >= 0.
  float most_per_token() const { return most_; }
  /// BiasOptions::once: calls f(completed) for every phrase that ends at a state: longer spellings first, and a phrase
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
  /// BiasOptions::once: the phrase for whose beginning credit() is given; -1: none.
  std::int32_t owner(State state) const { return owner_[at(state)]; }

 private:
  using Used = BiasedSpellings::Used;
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
  SLUICE_LAZY void build(BiasedSpellings const& spellings, std::size_t phrases) {
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

  BiasOptions options_;
  std::vector<Token> token_;  // [state]: its last; the children of a state are sorted by it
  std::vector<State> first_;  // [state]: its first child; the next state's is the end
  std::vector<State> fail_;   // [state]: the longest proper suffix that is a beginning too
  std::vector<float> paid_, credit_;
  std::vector<std::uint8_t> over_;   // [state]: whether a spelling ends there; of Matches::first
  std::vector<State> shorter_;       // [state]: the longest proper suffix at which a spelling ends, or root
  std::vector<std::int32_t> owner_;  // this, the last and the next two: of BiasOptions::once
  std::vector<std::size_t> done_;    // [state]: the first in completed_ of the spellings that end there
  std::vector<Completed> completed_;
  SharedEdits begin_, last_;
  std::vector<Used> used_;                           // by token
  float most_ = 0, begin_most_ = 0, last_most_ = 0;  // of any token, and of begin_ and last_
};

}  // namespace sluice::inline v0::detail

namespace sluice::inline v0 {

/// Outputs that contain these phrases score more: a logits processor for any search. What was given for a
/// beginning that does not go on is taken back, by the end of the output too, and at the maximum length.
///
/// Where edits act after the softmax (beams, Greedy), the log-probability of an output is that of the model plus the
/// boosts of the phrases that occur in it, whatever the search. Where they act before it (sampling), every step is a
/// distribution of its own, and only ratios within a step change. A search that is interrupted tells unfinished outputs
/// with what their beginnings were given.
///
/// A phrase may begin in a forced prefix, but not in the prompt. Unlike other rules it changes probes too: constraints
/// are met at the same score. ExactSearch proves its result: all outputs begin at the most that they might still be given,
/// which is taken back token by token; log-probabilities of tokens then hold that, and are rounded like it.
/// BestFirstBeam and EarlyStopping::Rule::exact are refused unless there are no phrases.
///
/// Costs one edit for every token that continues a phrase, and one addition of a vector for those that begin one (an edit for each of
/// them where an expander does not take Query::shared). Built in O(n log n) for n tokens of phrases; 24 bytes for each distinct
/// beginning. Immutable: copies are cheap and share it, between requests and threads, too.
class Bias {
 public:
  /// What an output ends in, and with BiasOptions::once the phrases that it has been paid.
  struct State {
    struct Paid {
      std::int32_t phrase;
      std::shared_ptr<Paid const> before;
    };
    detail::ContextGraph::State place = detail::ContextGraph::root;
    std::shared_ptr<Paid const> paid{};
    bool has(std::int32_t phrase) const {
      for (auto const* one = paid.get(); one != nullptr; one = one->before.get())
        if (one->phrase == phrase) return true;
      return false;
    }
  };

  static constexpr std::string_view name = "Bias";  ///< for messages

  /// Changes nothing.
  Bias() = default;
  /// \throws std::invalid_argument  naming the phrase: no spellings or an empty one, a negative token, a boost that is
  ///     NaN or infinite, two kinds of boosts, a number of token_boosts that is not the number of tokens; a negative lead
  SLUICE_LAZY explicit Bias(std::vector<BiasedPhrase> const& phrases, BiasOptions const& options = {})
      : graph_(std::make_shared<detail::ContextGraph const>(phrases, options)) {}

  bool trivial() const { return graph_ == nullptr || graph_->empty(); }

  /// \throws std::invalid_argument  naming the spelling that has a token outside the vocabulary or an eos
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    if (!trivial()) graph_->check(*sentence.vocabulary);
    return {};
  }
  State next(State state, Token token) const {
    if (!trivial()) arrive(state, graph_->arrive(state.place, token));
    return state;
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  /// What the step adds: appends it for the tokens that continue a phrase, and returns what it adds to every token.
  SLUICE_LAZY BiasSum bias(State const& state, BiasPlace const& place, std::vector<Edit>& edits) const {
    if (trivial()) return {};
    // What an output may still be given, if the search bears no other rise, before this token and after it.
    auto const most = place.falling ? graph_->most_per_token() : 0.0f;
    auto const before = most * static_cast<float>(place.falling ? place.left : 0);
    auto const after = place.last || place.over ? 0.0f : before - most;
    auto const back = place.first ? 0.0f : -lent(state) - before;
    if (place.over) return {.all = back};
    detail::SortedEdits sorted;
    detail::SharedEdits const* shared = nullptr;
    auto const fixed = state.paid == nullptr && !graph_->options().once;
    if (fixed && place.shares) {
      shared = &graph_->shared_edits(place.last);
      graph_->edit_further(state.place, edits, place.last);
    } else if (fixed) {
      sorted = graph_->edit(state.place, edits, place.last);
    } else {
      sorted = graph_->edit(state.place, edits, [&](detail::ContextGraph::State arrived) {
        auto then = state;
        auto const paid = arrive(then, arrived);
        return paid + (place.last ? 0.0f : lent(then));
      });
    }
    if (after != 0)
      for (auto const eos : place.vocabulary.eos) edits.push_back({eos, -after});
    return {back + after, sorted, shared};
  }
  /// What an output has been given for the beginning that it ends in.
  float lent(State const& state) const {
    if (trivial() || (graph_->options().once && state.has(graph_->owner(state.place)))) return 0;
    return graph_->credit(state.place);
  }
  /// What a token is paid for what it completes. With the difference of lent(), this is what a step adds.
  SLUICE_LAZY float paid(State state, Token token) const {
    return trivial() ? 0 : arrive(state, graph_->arrive(state.place, token));
  }

 private:
  /// Goes to a state; returns what is paid for it.
  SLUICE_LAZY float arrive(State& state, detail::ContextGraph::State arrived) const {
    state.place = graph_->settle(arrived);
    if (!graph_->options().once) return graph_->paid(arrived);
    auto sum = 0.0f;
    graph_->for_each_completed(arrived, [&](detail::ContextGraph::Completed const& one) {
      if (state.has(one.phrase)) return;
      sum += one.boost;
      state.paid = std::make_shared<State::Paid const>(State::Paid{one.phrase, state.paid});
    });
    return sum;
  }

  std::shared_ptr<detail::ContextGraph const> graph_;
};

}  // namespace sluice::inline v0
