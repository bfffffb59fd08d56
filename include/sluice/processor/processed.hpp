// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rules (logits processors) for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/processor/detail/followed.hpp>
#include <sluice/processor/detail/known_ends.hpp>
#include <sluice/processor/detail/name_shared.hpp>
#include <sluice/processor/detail/restricted_guesses.hpp>
#include <sluice/processor/detail/shifted_lines.hpp>
#include <sluice/processor/detail/wrapping.hpp>
#include <sluice/processor/logits_processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Any search under a rule. The search does not know about the rule: the wrapper follows the rows that it plans (forks,
/// blocks, roll-back) and adds the rule's edits to its queries. The rule applies where a token is chosen, not where one
/// is forced or probed: a token that is a probe is never edited, so a forced prefix and constraints take precedence
/// over a ban.
///
/// Where a rule's stop() ends an output, the output is over in any search. One step later the search is told that the
/// end is certain, at log-probability 0, without a model call (a length penalty counts it, as it counts eos; where the
/// search `goes_back`, the row is run anyway). This does not apply while the search allows no end (length.min). Results
/// and settled tokens do not include that end. Outputs given to ForcedScore and similar searches are not ended.
///
/// A rule's may_follow() restricts all lines, whatever is requested from them. Guesses (Blockwise) that it forbids are
/// not verified, nor are those after them; drawn trees are verified, but without effect. Where it allows only one
/// token, that token becomes a guess, with or without a draft model. It knows how many tokens may still come if the
/// search has a LengthLimits called `length`.
///
/// Costs a copy of the tokens per fork, plus the rule's own cost per line.
template <Search S, Rule R>
struct Ruled : detail::NeedsOf<Ruled<S, R>, S> {
  S search{};
  R rule{};

  Ruled() = default;
  explicit Ruled(S plain) : search(std::move(plain)) {}
  Ruled(S plain, R its_rule) : search(std::move(plain)), rule(std::move(its_rule)) {}

  using Wrapped = S;
  static constexpr bool takes_prefix = sluice::takes_prefix<S>();
  static constexpr bool goes_back = sluice::goes_back<S>();
  static constexpr bool ends = StoppingRule<R> && !sluice::takes_prefix<S>();  ///< whether the rule's stop() is asked

  static constexpr bool chooses_probes =
      detail::chooses_probes<S>();  ///< as in the search: rules around this one edit them

  static constexpr bool restricts = RestrictingRule<R>;  ///< whether the rule's may_follow() is asked

  static constexpr bool biases = BiasingRule<R>;  ///< whether the rule's bias() is asked
  static constexpr bool assumes_falling = detail::assumes_falling<S>();
  static constexpr bool bears_bonus = detail::bears_bonus<S>();
  static_assert(!biases || !assumes_falling || bears_bonus,
                "sluice: this search proves its result by log-probabilities that only fall, and the rule adds to them: "
                "use BeamSearch or ExactSearch");
  static_assert(
      !detail::raises<R>() || !assumes_falling,
      "sluice: this search proves its result by log-probabilities that only fall, and GreenList adds to them: "
      "use BeamSearch");
  static_assert(!biases || !detail::ends_outputs<S>(),
                "sluice: a rule that adds to scores must see where outputs end: put it and the rule that ends them "
                "into one Rules<...>, or the one that ends them outside");

  using Followed = detail::Followed<R>;
  struct State {
    typename S::State inner{};
    std::vector<Followed> followed;
    Followed branch;                               // for a tree: beyond its first path
    std::vector<std::vector<Edit>> edits, boosts;  // [line]
    detail::KnownEnds ends;
    detail::ShiftedLines shifts;
    Vocabulary const* vocabulary = nullptr;
    std::vector<typename R::State> begun;  // [1]: after the forced prefix
    std::span<Token const> forced;         // the forced prefix
    std::vector<Token> output;             // scratch
    std::size_t prefix = 0;
    std::int32_t most = 0;                                 // tokens of an output, for a rule that biases
    bool unasked = false;                                  // the end at the maximum length is not asked for
    std::vector<std::shared_ptr<TokenSet const>> allowed;  // [line]
    std::vector<TokenSet> both;                            // [line]: where the search has a set of its own
    detail::RestrictedGuesses<R> guesses;
    bool begun_planning = false;
  };

  template <class M>
  void adapt(M const& model) {
    detail::adapt(search, model);
  }
  void check() const { sluice::check(search), detail::check_rule(rule); }
  std::int32_t slot_count() const { return search.slot_count(); }
  void insert_into(TokenSet& set) const requires detail::InsertingSearch<S> { search.insert_into(set); }
  void insert_into(State const& s, TokenSet& set) const requires detail::StateInsertingSearch<S> {
    search.insert_into(s.inner, set);
  }

  void begin(State& s, Sentence const& sentence) const {
    search.begin(s.inner, sentence);
    s.vocabulary = sentence.vocabulary, s.prefix = sentence.prefix.size();
    s.followed.resize(static_cast<std::size_t>(slot_count()));
    // The tokens in the first slot when the search first plans: all but the last of prompt and prefix.
    auto& first = s.followed[0];
    first.begin(sentence.prompt, rule.initial(sentence));
    if (!takes_prefix)
      for (auto const token : sentence.prefix) first.push(rule, token);
    if constexpr (detail::raises<R>())
      require(
          !rule.raising() || !detail::stops_by_proof(search), "early_stopping.rule", "exact",
          "proves its result by log-probabilities that only fall, and GreenList adds to them: stop by another rule");
    if constexpr (biases) begin_biasing(s, sentence);
    if constexpr (ends) s.ends.reset(*s.vocabulary), s.begun.assign(1, first.state()), s.forced = sentence.prefix;
    if constexpr (restricts) {
      s.guesses.begin(detail::most_tokens(search, sentence)), s.begun_planning = false;
      if constexpr (!takes_prefix)
        rule.require_possible(first.state(), output(s, first.output()), s.guesses.left(first.output().size()));
    }
    first.cut(sentence.held);
  }

  void plan(State& s, Plan& plan) const {
    if constexpr (restricts && DraftingSearch<S>) guess(s);
    search.plan(s.inner, plan);
    auto const rows = plan.rows();
    auto const slot = [&](Slot number) -> Followed& {
      return s.followed[static_cast<std::size_t>(number - plan.base())];
    };
    for (auto const& row : rows)
      if (row.from != row.to) (slot(row.to) = slot(row.from)).cut(row.length);
    auto queries = plan.queries();
    if (s.edits.size() < queries.size()) s.edits.resize(queries.size());
    if (biases && s.boosts.size() < queries.size()) s.boosts.resize(queries.size());
    if constexpr (restricts) s.allowed.resize(queries.size()), s.both.resize(queries.size());
    std::size_t line = 0;
    s.ends.clear(), s.shifts.clear();
    for (auto const& row : rows) {
      auto& kept_path = slot(row.to);
      kept_path.cut(row.length);
      auto const kept = row.kept();
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        if (i == kept) s.branch = kept_path;  // branches are not kept in the slot
        auto& followed = i < kept ? kept_path : s.branch;
        if (i >= kept) followed.cut(row.length + row.depth(i));
        followed.push(rule, row.tokens[i]);
        if (i + static_cast<std::size_t>(row.lines) < row.tokens.size()) continue;
        if (line == queries.size()) return;  // the decoding loop refuses such a plan
        auto over = false;
        if constexpr (ends) over = is_over(s, followed, queries[line]), s.ends.add(queries[line], over);
        if (over) detail::KnownEnds::ask_nothing(queries[line]);
        if (!over) edit(s, followed, queries[line], s.edits[line]);
        if constexpr (biases) bias(s, followed, queries[line], s.boosts[line], over);
        if constexpr (restricts)
          if (!over) restrict(s, followed, queries[line], line);
        ++line;
      }
    }
    if constexpr (ends && !goes_back) s.ends.take_back(plan);
  }

  bool advance(State& s, Expansion const& answer) const {
    auto known = answer;
    if constexpr (ends) known = s.ends.complete(known);
    if constexpr (biases) known = s.shifts.shift(known);
    return search.advance(s.inner, known);
  }
  Progress progress(State const& s) const { return search.progress(s.inner); }
  bool waits(State const& s) const requires WaitingSearch<S> { return search.waits(s.inner); }
  void settled(State& s, std::vector<Token>& tokens) const requires SettlingSearch<S> {
    search.settled(s.inner, tokens);
    if constexpr (ends)
      if (ends_in_eos(s, tokens) && stop_before_end(s, tokens, s.output) >= 0) tokens.pop_back();
  }
  void finish(State& s, Result& result) const {
    search.finish(s.inner, result);
    if constexpr (ends)
      for (auto& hypothesis : result.hypotheses) tell_stop(s, hypothesis);
  }
  bool draft(State& s, Draft& draft) const requires DraftingSearch<S> {
    auto const base = draft.slot;
    auto const wanted = search.draft(s.inner, draft);
    if constexpr (restricts) s.guesses.ask(rule, s.followed[static_cast<std::size_t>(draft.slot - base)], draft);
    return wanted;
  }

 private:
  Output output(State const& s, std::span<Token const> tokens) const { return {tokens, s.prefix, *s.vocabulary}; }

  void restrict(State& s, Followed const& followed, Query& query, std::size_t line) const {
    auto& set = s.allowed[line];
    set = rule.may_follow(followed.state(), s.guesses.left(followed.output().size()));
    if (set == nullptr) return;
    if (query.only != nullptr) {
      s.both[line] = *set, s.both[line].keep(*query.only);
      query.only = &s.both[line];
    } else query.only = set.get();
  }
  /// Applies the rule to the guesses and adds certain tokens: as many as fit into a block, whatever number the search
  /// wanted.
  void guess(State& s) const requires DraftingSearch<S> {
    if (!std::exchange(s.begun_planning, true)) return;  // no guesses are requested before the first plan
    Draft draft;
    if (!s.guesses.asked()) this->draft(s, draft);  // without a draft model, certain tokens still become guesses
    if (!s.guesses.asked()) return;
    auto most = 0;
    if constexpr (requires { search.block; }) most = search.block - 1;
    s.guesses.restrict(rule, *s.vocabulary, most);
  }

  bool is_over(State const& s, Followed const& followed, Query const& query) const {
    auto const tokens = followed.output();
    if (tokens.size() <= s.prefix) return false;  // nothing has been generated
    if (rule.stop(followed.state(), output(s, tokens)) < 0 || s.ends.forbidden(query)) return false;
    require(!s.vocabulary->eos.empty(), "vocabulary.eos", "none", "a rule ends an output, and there is no end to tell");
    return true;
  }

  static bool ends_in_eos(State const& s, std::vector<Token> const& generated) {
    return !generated.empty() && s.vocabulary->ends(generated.back());
  }
  /// The rule's stop for an output that is the forced prefix and `generated`, without an eos at its end: that eos is
  /// then the one that the search was told of. -1: none.
  std::int32_t stop_before_end(State const& s, std::vector<Token> const& generated, std::vector<Token>& scratch) const {
    auto const count = generated.size() - (ends_in_eos(s, generated) ? 1 : 0);
    if (count == 0) return -1;
    scratch.assign(s.forced.begin(), s.forced.end());
    auto state = s.begun.front();
    for (auto const token : std::span(generated).first(count))
      scratch.push_back(token), state = rule.next(std::as_const(state), token);
    return rule.stop(state, output(s, scratch));
  }
  void tell_stop(State& s, Hypothesis& h) const {
    if (h.stop >= 0) return;  // set by an inner rule
    h.stop = stop_before_end(s, h.tokens, s.output);
    if (h.stop < 0) return;
    h.finished = true;
    if (!ends_in_eos(s, h.tokens)) return;
    if constexpr (biases)  // what was taken back there
      if (h.log_probs.size() > 1) h.log_probs[h.log_probs.size() - 2] += h.log_probs.back();
    h.tokens.pop_back(), h.log_probs.pop_back();
    if (!h.blocks.empty() && --h.blocks.back() == 0) h.blocks.pop_back();
  }

  void begin_biasing(State& s, Sentence const& sentence) const {
    require(rule.trivial() || !detail::stops_by_proof(search), "early_stopping.rule", "exact",
            "proves its result by log-probabilities that only fall, and the rule adds to them: stop by another rule");
    s.most = takes_prefix ? static_cast<std::int32_t>(s.prefix) : detail::most_tokens(search, sentence);
    require(rule.trivial() || !assumes_falling || s.most < Limits::unlimited, "length.max", "unlimited",
            "a search that proves its result cannot bound what the rule may still add: give a maximum");
    s.unasked = detail::ends_unasked(search) && !s.vocabulary->eos.empty();
  }
  void bias(State& s, Followed const& followed, Query& query, std::vector<Edit>& edits, bool over) const {
    edits.clear();
    auto const outputs = followed.output().size();
    auto const left = s.most == Limits::unlimited ? s.most : s.most - static_cast<std::int32_t>(outputs);
    BiasPlace const place{*s.vocabulary,
                          left,
                          !takes_prefix && outputs <= s.prefix,
                          left <= (s.unasked ? 2 : 1),
                          over,
                          assumes_falling,
                          query.shared == nullptr && query.plain()};
    auto const sum = rule.bias(followed.state(), place, edits);
    auto const shifts = query.stage == Stage::after_softmax ? sum.all : 0;
    s.shifts.add(shifts), query.base += static_cast<double>(shifts), query.shift += shifts;
    if (over) return;
    if (sum.shared != nullptr) {
      query.shared = sum.shared;
      detail::name_shared_of_query(*sum.shared, query.edits, edits);
    }
    if (edits.empty()) return;
    prepend(query, edits, sum.shared == nullptr ? query.shared : nullptr);
    query.sorted = sum.sorted;
  }
  void edit(State const& s, Followed const& followed, Query& query, std::vector<Edit>& edits) const {
    if (!detail::KnownEnds::lists(query)) return;
    edits.clear();
    rule.edit(followed.state(), output(s, followed.output()), edits);
    if (edits.empty()) return;
    for (auto const& e : edits)
      require(s.vocabulary->contains(e.token), "a rule's edit", e.token, "is outside the vocabulary");
    if constexpr (!detail::chooses_probes<S>())
      std::erase_if(edits, [&](Edit const& e) {
        return std::find(query.probes.begin(), query.probes.end(), e.token) != query.probes.end();
      });
    prepend(query, edits, query.shared);
  }
  /// Puts a rule's edits in front of the query's, which already regard its shared ones.
  static void prepend(Query& query, std::vector<Edit>& edits, SharedEdits const* shared) {
    if (shared != nullptr) detail::name_shared_of_rule(*shared, query.edits, edits);
    edits.insert(edits.end(), query.edits.begin(), query.edits.end());
    query.edits = edits, query.sorted = {};
  }
};

}  // namespace sluice::inline v0
