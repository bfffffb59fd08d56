// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Matching brackets 3 and 4, at most two deep, around anything.
struct BracketRules {
  using State = std::int32_t;  // depth; -1: dead
  static constexpr Token open = 3, close = 4;
  static constexpr std::int32_t most = 1, stages = 3;

  static State next(State depth, Token token) {
    if (depth < 0) return -1;
    if (token == open) return depth == 2 ? -1 : depth + 1;
    return token == close ? depth - 1 : depth;
  }
  static std::int32_t progress(State depth) { return depth == 0 ? 1 : 0; }
  static bool complete(State depth) { return depth == 0; }
  static bool dead(State depth) { return depth < 0; }
};

/// At least one digit (3, 4), then a unit (5), and nothing else.
struct QuantityRules {
  using State = std::int32_t;  // 0: nothing, 1: digits, 2: unit, 3: end, -1: dead
  static constexpr std::int32_t most = 2, stages = 4;

  static State next(State state, Token token) {
    if (token == eos) return state == 2 ? 3 : -1;
    if (token == 5) return state == 1 ? 2 : -1;
    return (token == 3 || token == 4) && (state == 0 || state == 1) ? 1 : -1;
  }
  static std::int32_t progress(State state) { return std::clamp(state, 0, 2); }
  static bool complete(State state) { return state >= 2; }
  static bool dead(State state) { return state < 0; }
};

/// The automaton of some rules over tokens below 8.
template <class R>
struct Automaton {
  using State = typename R::State;
  State initial(Sentence const&) const { return 0; }
  State next(State state, Token token) const { return R::next(state, token); }
  std::int32_t progress(State state) const { return R::progress(state); }
  std::int32_t total() const { return R::most; }
  bool complete(State state) const { return R::complete(state); }
  bool dead(State state) const { return R::dead(state); }
  void wanted(State state, std::vector<Token>& tokens) const {
    for (Token t = eos; t < 8; ++t)
      if (progress(next(state, t)) > progress(state)) tokens.push_back(t);
  }
};
template <class R>
struct Forbidding : Automaton<R> {
  void forbidden(std::int32_t state, std::vector<Token>& tokens) const {
    for (Token t = eos; t < 8; ++t)
      if (this->dead(this->next(state, t))) tokens.push_back(t);
  }
};
template <class R>
struct Allowing : Automaton<R> {
  std::shared_ptr<std::array<TokenSet, R::stages>> sets = [] {
    auto all = std::make_shared<std::array<TokenSet, R::stages>>();
    for (std::size_t s = 0; s < all->size(); ++s)
      for (Token t = eos; t < 8; ++t)
        if (!R::dead(R::next(static_cast<std::int32_t>(s), t))) (*all)[s].insert(t);
    return all;
  }();
  TokenSet const* allowed(std::int32_t state) const {
    return state < 0 ? nullptr : &(*sets)[static_cast<std::size_t>(state)];
  }
};

template <class R>
bool accepts(Tokens const& tokens) {
  std::int32_t state = 0;
  for (auto const token : tokens) state = R::next(state, token);
  return R::complete(state);
}

/// Searches for the best accepted output, and checks what narrow beams find.
template <class R, class A>
void check_automaton() {
  static_assert(ConstraintAutomaton<A>);
  std::size_t found = 0, narrow = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, between(random, 6, 7));
    auto const max = table.size == 6 ? 6 : 5;
    auto all = all_sequences(table, seed, {.maximum = max});
    ConstrainedBeamSearch<A> search{.beam = {.penalty = random_penalty(random)}};
    search.beam.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.beam.length.max = max, search.prune_finished = Pruning::off;
    search.banks = random() % 2 == 0 ? Banks::even : Banks::paper;
    search.replace_impossible = random() % 2 == 0;
    std::optional<double> best;
    for (auto const& s : all)
      if (accepts<R>(s.tokens)) {
        auto const score = search.beam.penalty.score(s.log_prob, static_cast<std::int32_t>(s.tokens.size()));
        best = std::max(best.value_or(score), score);
      }
    REQUIRE(best);
    INFO("seed " << seed << ", " << text(search.beam));
    search.beam.width = 3 * static_cast<std::int32_t>(all.size());
    auto const wide = run_one(table, seed, search);
    check_result(wide, table, seed);
    REQUIRE(wide.hypotheses.size() == 1);
    CHECK(accepts<R>(wide.hypotheses[0].tokens));
    CHECK(wide.hypotheses[0].constraints_met == R::most);
    CHECK(wide.hypotheses[0].constraints_total == R::most);
    CHECK_THAT(wide.hypotheses[0].score, WithinAbs(*best, 1e-4));
    ++found;
    search.beam.width = between(random, 1, 6), search.beam.n_best = search.beam.width;
    auto const few = run_one(table, seed, search);
    check_result(few, table, seed);
    for (auto const& h : few.hypotheses) {
      INFO(detail::text(h.tokens) << " of " << few.hypotheses.size());
      CHECK(accepts<R>(h.tokens) == (h.constraints_met == h.constraints_total));
      narrow += h.finished ? 1 : 0;
      if (h.finished) CHECK(accepts<R>(h.tokens));
      // If the automaton does not say which tokens are forbidden, even eos may be missing from the listed ones.
      else if (detail::NamesForbidden<A> || detail::NamesAllowed<A>) CHECK(few.hypotheses.size() == 1);
    }
  }
  CHECK(found == 120);
  CHECK(narrow > 100);
}

/// Decodes the same sentences several times; returns the last run's allocations in steps in which nothing begins or
/// ends.
template <class S>
std::size_t allocations_when_warm(S const& search, std::size_t& counted) {
  Table const table{.size = 40, .scale = 6, .eos_bias = -3, .eos_slope = 0.2};
  TableModel<> model(table);
  model.reserve(256, 300, 256);
  Decoder decoder(model, search, Batched{.size = 8});
  Result result;
  std::size_t inside = 0;
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) decoder.submit({.source = 5});
    inside = counted = 0;
    for (auto more = true; more;) {
      auto const waiting = decoder.waiting(), running = decoder.running();
      auto const before = allocations();
      more = decoder.step();
      auto const after = allocations();
      if (decoder.waiting() == waiting && decoder.running() == running && more) inside += after - before, ++counted;
      while (decoder.poll(result)) CHECK(result.ok());
    }
  }
  return inside;
}

}  // namespace

TEST_CASE("brackets match, and the best that do are found", "[constrained_grammar]") {
  check_automaton<BracketRules, Automaton<BracketRules>>();
  check_automaton<BracketRules, Forbidding<BracketRules>>();
  check_automaton<BracketRules, Allowing<BracketRules>>();
}

TEST_CASE("an output is a quantity, and the best that is one is found", "[constrained_grammar]") {
  check_automaton<QuantityRules, Automaton<QuantityRules>>();
  check_automaton<QuantityRules, Forbidding<QuantityRules>>();
  check_automaton<QuantityRules, Allowing<QuantityRules>>();
}

TEST_CASE("an automaton of one's own goes together with the library's", "[constrained_grammar]") {
  using Both = Product<Allowing<BracketRules>, Phrases, Forbidding<BracketRules>>;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 6);
    ConstrainedBeamSearch<Both> search{.constraints = Both({}, Phrases(std::vector<Phrase>{{3, 5}, {5, 4}}), {})};
    search.beam.length.max = 6, search.prune_finished = Pruning::off;
    auto const all = all_sequences(table, seed, {.maximum = 6});
    search.beam.width = 3 * static_cast<std::int32_t>(all.size());
    auto best = -1e9;
    for (auto const& s : all)
      if (accepts<BracketRules>(s.tokens) && satisfies({.all = {{3, 5}, {5, 4}}}, s.tokens))
        best = std::max(best, search.beam.penalty.score(s.log_prob, static_cast<std::int32_t>(s.tokens.size())));
    auto const result = run_one(table, seed, search);
    check_result(result, table, seed);
    CHECK(accepts<BracketRules>(result.hypotheses.at(0).tokens));
    CHECK_THAT(result.hypotheses[0].score, WithinAbs(best, 1e-4));
  }
}

TEST_CASE("what each part of a product allows holds in the narrowest beam", "[constrained_grammar]") {
  using Both = Product<Forbidden, Allowing<BracketRules>, Allowing<QuantityRules>>;
  auto const lists = [](auto const& automaton, auto const& state) {
    TokenSet const* const allowed = automaton.allowed(state);
    std::vector<Token> forbidden;
    automaton.forbidden(state, forbidden);
    std::set<Token> left;
    for (Token t = eos; t < 8; ++t)
      if ((allowed == nullptr || allowed->contains(t)) && std::ranges::find(forbidden, t) == forbidden.end())
        left.insert(t);
    return left;
  };
  Vocabulary const vocabulary{.size = 8, .bos = bos, .eos = {eos}, .never = {pad, bos}};
  Tokens const prompt{bos};
  Sentence const sentence{.vocabulary = &vocabulary, .prompt = prompt};
  Both const both(Forbidden(std::vector<Phrase>{{3, 3}}), {}, {});
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    auto state = both.initial(sentence);
    for (int i = 0; i < 6 && !both.dead(state); ++i) {
      std::set<Token> alive;
      for (Token t = eos; t < 8; ++t)
        if (!both.dead(both.next(state, t))) alive.insert(t);
      CHECK(lists(both, state) == alive);
      state = both.next(state, static_cast<Token>(2 + random() % 6));
    }
  }
  using Guarded = Product<Allowing<BracketRules>, Forbidden>;  // one hypothesis: tokens tried and dropped would end it
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto const table = random_table(random, 7);
    ConstrainedBeamSearch<Guarded> search{.beam = {.width = 1, .length = {.max = 30}},
                                          .constraints = Guarded({}, Forbidden(std::vector<Phrase>{{6, 6}}))};
    search.beam.at_maximum = AtMaximum::truncate;
    auto const tokens = run_one(table, seed, search).hypotheses.at(0).tokens;
    CHECK((tokens.size() == 30 || accepts<BracketRules>(tokens)));
    CHECK_FALSE(occurs(tokens, {6, 6}));
  }
}

TEST_CASE("a warm step of a constrained search allocates nothing", "[constrained_grammar]") {
  std::size_t steps = 0;
  PhraseLists const lists{.all = {{5, 6}, {6, 7}, {8}},
                          .ordered = {{9, 10}, {11}},
                          .any = {{{12, 13}, {14}}, {{12, 15}}},
                          .none = {{5, 5}, {16}, {17, 18}}};
  BeamSearch const beam{.width = 6, .n_best = 6, .length = {.min = 16}};
  for (auto const finished : {FinishedHypotheses::set_aside, FinishedHypotheses::shrink, FinishedHypotheses::stay,
                              FinishedHypotheses::leave_first})
    for (auto const banks : {Banks::even, Banks::paper, Banks::sockeye, Banks::fairseq, Banks::equal}) {
      if (banks == Banks::fairseq && finished != FinishedHypotheses::set_aside) continue;
      auto options = beam;
      options.finished = finished;
      if (banks == Banks::equal) options.width = 2 * (Constraints(lists).total() + 1);
      INFO("finished " << static_cast<int>(finished) << ", banks " << static_cast<int>(banks));
      CHECK(allocations_when_warm(
                ConstrainedBeamSearch<>{.beam = options, .constraints = Constraints(lists), .banks = banks}, steps) ==
            0);
      CHECK(steps > 5);
    }
  CHECK(allocations_when_warm(grid_beam_search(2, Constraints(lists), {.length = {.min = 16}}), steps) == 0);
  CHECK(steps > 5);
  auto pruned = beam;
  pruned.pruning = {.absolute_threshold = 5, .relative_local_threshold = 0.01, .max_per_parent = 3};
  CHECK(allocations_when_warm(ConstrainedBeamSearch<>{.beam = pruned, .constraints = Constraints(lists)}, steps) == 0);
  CHECK(allocations_when_warm(ConstrainedBeamSearch<Allowing<BracketRules>>{.beam = beam}, steps) == 0);
}
