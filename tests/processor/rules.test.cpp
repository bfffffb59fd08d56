// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Phrases = std::vector<std::vector<Token>>;

bool contains(std::vector<Token> const& tokens, std::vector<Token> const& phrase) {
  return std::search(tokens.begin(), tokens.end(), phrase.begin(), phrase.end()) != tokens.end();
}

std::vector<Token> random_tokens(std::mt19937_64& random, int low, int high, int length) {
  std::vector<Token> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(std::uniform_int_distribution(low, high)(random));
  return tokens;
}

/// Decodes 20 sentences, with and without a prefix, under a rule.
template <Search S>
std::vector<Result> under(LogitsProcessorList const& rule, Table const& table, S const& search,
                          std::vector<Token> const& prefix = {}) {
  using Both = Processed<S>;
  std::vector<TableRequest<Both>> requests;
  for (std::uint64_t seed = 0; seed < 20; ++seed) requests.push_back({.source = seed, .prefix = prefix});
  return run<everything>(table, requests, Both{search, rule}, Batched{.size = 7});
}

}  // namespace

TEST_CASE("a phrase matcher finds exactly what a search in the text finds", "[phrase_matcher]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    Phrases phrases;
    auto const count = std::uniform_int_distribution(1, 5)(random);
    for (int i = 0; i < count; ++i)
      phrases.push_back(random_tokens(random, 3, 5, std::uniform_int_distribution(1, 4)(random)));
    PhraseMatcher const matcher(phrases);
    auto const text = random_tokens(random, 3, 6, 15);
    auto state = PhraseMatcher::root;
    std::vector<Token> so_far;
    for (auto const token : text) {
      std::set<Token> completing;
      for (Token next = 3; next < 7; ++next) {
        so_far.push_back(next);
        for (auto const& phrase : phrases)
          if (so_far.size() >= phrase.size() && std::equal(phrase.rbegin(), phrase.rend(), so_far.rbegin()))
            completing.insert(next);
        so_far.pop_back();
      }
      std::multiset<Token> completions;
      matcher.for_each_completion(state, [&](Token next) { completions.insert(next); });
      CHECK(completions == std::multiset<Token>(completing.begin(), completing.end()));
      so_far.push_back(token);
      state = matcher.next(state, token);
      std::multiset<std::size_t> expected, found;
      for (std::size_t p = 0; p < phrases.size(); ++p)
        if (so_far.size() >= phrases[p].size() && std::equal(phrases[p].rbegin(), phrases[p].rend(), so_far.rbegin()))
          expected.insert(p);
      for (auto s = state; s != PhraseMatcher::root; s = matcher.fallback(s))
        for (auto const p : matcher.phrases(s)) found.insert(static_cast<std::size_t>(p));
      CHECK(found == expected);
      CHECK(matcher.ends(state) == !expected.empty());
    }
  }
  CHECK_THROWS_AS(PhraseMatcher(Phrases{{3}, {}}), std::invalid_argument);
}

TEST_CASE("forbidden tokens never come, forbidden first tokens not first", "[rules]") {
  Table const table{.size = 9, .scale = 3, .eos_bias = -2, .eos_slope = 0.3};
  auto const first_of_all =
      under(ForbidFirst{{3, 4, 5}}, table, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 12}});
  auto later = false;
  for (auto const& result : first_of_all)
    for (auto const& h : result.hypotheses) {
      CHECK((h.tokens[0] < 3 || h.tokens[0] > 5));
      later = later || std::any_of(h.tokens.begin(), h.tokens.end(), [](Token t) { return t >= 3 && t <= 5; });
    }
  CHECK(later);
  for (auto const& result : under(ForbidFirst{{3, 4, 5}}, table, Greedy{.length = {.max = 12}}, {3, 4}))
    CHECK((result.hypotheses[0].tokens[2] < 3 || result.hypotheses[0].tokens[2] > 5));
  for (auto const& result :
       under(ForbidTokens{{6, 7}}, table, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 12}}))
    for (auto const& h : result.hypotheses)
      for (auto const t : h.tokens) CHECK((t != 6 && t != 7));
}

TEST_CASE("a forbidden phrase never comes, also across the end of a prefix", "[rules]") {
  std::mt19937_64 random(2);
  Table const table{.size = 7, .scale = 2, .eos_bias = -2, .eos_slope = 0.2, .order = 2};
  for (int round = 0; round < 60; ++round) {
    Phrases phrases;
    for (int i = 0; i < 3; ++i)
      phrases.push_back(random_tokens(random, 3, 6, std::uniform_int_distribution(1, 3)(random)));
    std::erase_if(phrases, [](auto const& p) { return p == std::vector<Token>{3}; });
    auto const prefix = round % 2 == 0 ? std::vector<Token>{} : std::vector<Token>{3, 4};
    for (auto const& result :
         under(Forbidden(phrases), table, BeamSearch{.width = 3, .n_best = 3, .length = {.max = 14}}, prefix))
      for (auto const& h : result.hypotheses)
        for (auto const& phrase : phrases)
          CHECK((contains(h.tokens, phrase) == contains(prefix, phrase) || !contains(h.tokens, phrase)));
  }
}

TEST_CASE("no n-gram comes twice, also across the end of a prefix", "[rules]") {
  Table const table{.size = 6, .scale = 1, .eos_bias = -3, .eos_slope = 0.1, .order = 1};
  for (std::int32_t n = 1; n <= 3; ++n)
    for (auto const& prefix : {std::vector<Token>{}, std::vector<Token>{3, 4, 3}}) {
      if (n == 1 && !prefix.empty()) continue;  // the prefix repeats itself
      for (auto const& result :
           under(NoRepeatNgram{n}, table, BeamSearch{.width = 4, .n_best = 4, .length = {.max = 20}}, prefix))
        for (auto const& h : result.hypotheses) {
          std::set<std::vector<Token>> seen;
          for (auto i = h.tokens.begin(); h.tokens.end() - i >= n; ++i) CHECK(seen.insert({i, i + n}).second);
        }
    }
  // After 3 4 3, a 4 would complete the second 3 4: it occurs without the rule, but not with it.
  Table const eager{.size = 6, .scale = 6, .eos_bias = -6, .eos_slope = 0, .order = 1};
  auto differs = false;
  auto const free = under(NoRepeatNgram{0}, eager, Greedy{.length = {.max = 8}}, {3, 4, 3});
  auto const ruled = under(NoRepeatNgram{2}, eager, Greedy{.length = {.max = 8}}, {3, 4, 3});
  for (std::size_t i = 0; i < free.size(); ++i) {
    differs = differs || free[i].hypotheses[0].tokens[3] == 4;
    CHECK(ruled[i].hypotheses[0].tokens[3] != 4);
  }
  CHECK(differs);
}

TEST_CASE("penalty and bias change the scores as they say", "[rules]") {
  Table const table{.size = 8, .scale = 4, .eos_bias = -2, .eos_slope = 0.3};
  std::vector<double> line(8);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    // Done by hand: greedy over log-probabilities edited after the softmax.
    std::vector<Token> tokens;
    double sum = 0;
    while (tokens.size() < 10 && (tokens.empty() || tokens.back() != eos)) {
      table.log_probs(seed, tokens, line);
      auto best = -1e9;
      Token choice = 0;
      for (Token v = 2; v < 8; ++v) {
        auto x = line[static_cast<std::size_t>(v)];
        if (std::find(tokens.begin(), tokens.end(), v) != tokens.end()) x *= 1.7;  // log-probabilities are negative
        if (v == 5) x += 0.8;
        if (x > best) best = x, choice = v;
      }
      tokens.push_back(choice), sum += best;
    }
    using Both = Processed<Greedy>;
    Both const search{{.length = {.max = 10}}, LogitsProcessorList(RepetitionPenalty{1.7f}, TokenBias{{{5, 0.8f}}})};
    auto const result = run_one<everything>(table, seed, search);
    REQUIRE(result.ok());
    CHECK(result.hypotheses[0].tokens == tokens);
    CHECK(std::abs(result.hypotheses[0].log_prob - sum) < 1e-4);
  }
}

TEST_CASE("a rule never changes what a forced prefix costs", "[rules]") {
  Table const table{.size = 8};
  auto const free = under(ForbidTokens{}, table, BeamSearch{.length = {.max = 9}}, {3, 4, 5});
  auto const ruled = under(ForbidTokens{{3, 4, 5}}, table, BeamSearch{.length = {.max = 9}}, {3, 4, 5});
  for (std::size_t i = 0; i < free.size(); ++i) {
    auto const& a = free[i].hypotheses[0];
    auto const& b = ruled[i].hypotheses[0];
    CHECK(std::vector<float>(a.log_probs.begin(), a.log_probs.begin() + 3) ==
          std::vector<float>(b.log_probs.begin(), b.log_probs.begin() + 3));
  }
}

TEST_CASE("where every token is forbidden the sentence fails and says so", "[rules]") {
  Table const table{.size = 6};
  ForbidTokens const all{{0, 1, 2, 3, 4, 5}};
  for (auto const& result : under(all, table, BeamSearch{})) CHECK(result.failure == Failure::no_token_left);
  for (auto const& result : under(all, table, Greedy{})) CHECK(result.failure == Failure::no_token_left);
}

TEST_CASE("rules give the same under any set of abilities and any batch", "[rules]") {
  Table const table{.size = 9, .scale = 2, .eos_bias = -2, .eos_slope = 0.2, .order = 3};
  using Rule = LogitsProcessorList;
  using Both = Processed<BeamSearch>;
  Both const search{{.width = 4, .n_best = 4, .length = {.max = 15}},
                    Rule(NoRepeatNgram{2}, Forbidden(Phrases{{3, 4}, {5}}), RepetitionPenalty{1.3f})};
  auto const decode_all = [&]<Abilities A>(std::size_t batch) {
    std::vector<TableRequest<Both>> requests;
    for (std::uint64_t seed = 0; seed < 24; ++seed)
      requests.push_back({.source = seed, .prefix = seed % 3 == 0 ? std::vector<Token>{6, 7} : std::vector<Token>{}});
    return run<A>(table, requests, search, Batched{.size = batch});
  };
  auto const expected = decode_all.operator()<everything>(1);
  for_pairs_of_abilities([&]<Abilities A>() {
    for (std::size_t batch : {1u, 5u, 24u}) {
      auto const found = decode_all.template operator()<A>(batch);
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(identical(found[i], expected[i]));
    }
  });
}

namespace {

/// Forbids a token outside the vocabulary once the output has two tokens.
struct Broken {
  struct State {};
  State initial(Sentence const&) const { return {}; }
  State next(State, Token) const { return {}; }
  void edit(State, Output const& output, std::vector<Edit>& edits) const {
    if (output.tokens.size() == 2 && output.tokens[0] % 2 == 0) edits.push_back({9999, 0, 1});
  }
};

}  // namespace

TEST_CASE("a rule that breaks fails its own sentence only, also among groups of beams", "[rules]") {
  Table const eager{.size = 9, .scale = 3, .eos_bias = -6, .eos_slope = 0.3};
  auto const both = [&]<class S>(S const& search) {
    std::vector<TableRequest<Processed<S>>> requests;
    std::vector<TableRequest<S>> plain_requests;
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      requests.push_back({.source = seed}), plain_requests.push_back({.source = seed});
    auto const ruled = run<everything>(eager, requests, Processed<S>{search, Broken{}}, Batched{.size = 40});
    auto const free = run<everything>(eager, plain_requests, search, Batched{.size = 40});
    std::size_t failed = 0;
    for (std::size_t i = 0; i < ruled.size(); ++i) {
      failed += ruled[i].failure == Failure::search;
      if (ruled[i].ok()) CHECK(identical(ruled[i], free[i]));
      else CHECK(ruled[i].message.find("9999") != std::string::npos);
    }
    CHECK(failed > 0);
    CHECK(failed < ruled.size());
  };
  both(Greedy{.length = {.max = 8}});
  both(DiverseBeamSearch{.search = {.width = 1, .n_best = 1, .length = {.max = 8}}, .groups = 2});
}

/// A search whose options decide which abilities it needs.
struct Choosing : Greedy {
  bool blocks = false;
  Abilities needs() const { return {.blocks = blocks}; }
};

TEST_CASE("a search under a rule needs what it needs alone", "[rules]") {
  using Known = Processed<Blockwise<>>;
  STATIC_REQUIRE(detail::KnownNeeds<Known>);
  STATIC_REQUIRE(needs<Known>() == needs<Blockwise<>>());
  using Told = Processed<Choosing>;
  STATIC_REQUIRE(!detail::KnownNeeds<Told>);
  Told told;
  CHECK(needs(told) == Abilities{});
  told.search.blocks = true;
  CHECK(needs(told) == Abilities{.blocks = true});
  STATIC_REQUIRE(takes_prefix<Processed<ForcedScore>>());
  STATIC_REQUIRE(!takes_prefix<Told>());
}

TEST_CASE("rules refuse what makes no sense", "[rules]") {
  Table const table{.size = 6};
  using Both = Processed<Greedy>;
  auto const result = run_one<everything>(table, 1, Both{{}, ForbidTokens{{17}}});
  CHECK(result.failure == Failure::bad_request);
  CHECK(result.message.find("17") != std::string::npos);
  CHECK_THROWS_AS((check(Processed<Greedy>{{}, NoRepeatNgram{-1}})), std::invalid_argument);
  CHECK_THROWS_AS((check(Processed<Greedy>{{}, LogitsProcessorList(ForbidTokens{}, RepetitionPenalty{0})})),
                  std::invalid_argument);
}
