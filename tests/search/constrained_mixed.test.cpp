// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/decode/server.hpp>
#include <sluice/model/ensemble.hpp>
#include <sluice/output/shortlist_projection.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>
#include <support/hidden_model.hpp>
#include <support/naive_constraints.hpp>
#include <support/output_layer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Constrained = ConstrainedBeamSearch<>;
using Requests = std::vector<TableRequest<Constrained>>;

ListShape const mixed{.last = 9, .longest = 3, .edges = true, .all = 3, .ordered = 2, .any = 1, .none = 2};

/// Requests with constraints, prompts and prefixes of many kinds; some without any, some with their own search.
Requests random_requests(std::mt19937_64& random, std::size_t count, Token last = 9) {
  Requests requests;
  auto const token = [&] { return between(random, 3, last); };
  for (std::size_t i = 0; i < count; ++i) {
    auto& request = requests.emplace_back();
    request.source = random();
    auto shape = mixed;
    shape.last = last;
    if (random() % 4 != 0)
      request.search =
          Constrained{.beam = random_beam(random, 6, 16), .constraints = Constraints(random_lists(random, shape))};
    if (request.search) request.search->beam.length.max = between(random, 6, 18);
    if (request.search && random() % 8 == 0) request.search->constraints = {};
    if (request.search && random() % 3 == 0)
      request.search->banks =
          request.search->beam.finished == FinishedHypotheses::set_aside ? Banks::fairseq : Banks::sockeye;
    if (random() % 3 == 0) {
      request.prompt.push_back(bos);
      for (auto n = between(random, 0, 3); n > 0; --n) request.prompt.push_back(token());
    }
    if (random() % 3 == 0)
      for (auto n = between(random, 1, 3); n > 0; --n) request.prefix.push_back(token());
  }
  return requests;
}

void check_same(std::vector<Result> const& a, std::vector<Result> const& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("request " << i << ": " << a[i].message << " | " << b[i].message);
    CHECK(identical(a[i], b[i]));
    CHECK(a[i].message == b[i].message);
  }
}

/// Checks the results; returns how many met constraints that they had.
std::size_t complete(std::vector<Result> const& results, Requests const& requests) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!requests[i].search) continue;
    auto const& lists = requests[i].search->constraints.lists();
    if (!results[i].ok() || naive_count(lists) == 0) continue;
    INFO("request " << i << ", " << text(*requests[i].search));
    check_constraints(results[i], lists);
    for (auto const& h : results[i].hypotheses) {
      if (naive_clean(lists, requests[i].prefix)) CHECK(naive_clean(lists, h.tokens));
      count += h.constraints_met == h.constraints_total ? 1 : 0;
    }
  }
  return count;
}

Constrained const usual{.beam = {.width = 4, .n_best = 4, .length = {.max = 12}},
                        .constraints = Constraints({.all = {{5}, {6, 7}}})};

}  // namespace

TEST_CASE("no batch and no schedule changes a constrained result", "[constrained_mixed]") {
  std::size_t met = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 10);
    auto const requests = random_requests(random, 16);
    std::vector<Result> alone;
    for (auto const& request : requests) {
      alone.push_back(run<plain>(table, Requests{request}, usual).at(0));
      alone.back().id = alone.size() - 1;
    }
    met += complete(alone, requests);
    for_pairs_of_abilities([&]<Abilities A>() {
      for (std::size_t const size : {1u, 5u, 64u}) {
        check_same(run<A>(table, requests, usual, Batched{.size = size}), alone);
        check_same(run<A>(table, requests, usual, Streaming{.size = size, .refill_below = 1}), alone);
      }
      check_same(run<A>(table, requests, usual,
                        Streaming{.size = 7, .refill_below = 0.5, .order = Streaming::Order::shortest_only}),
                 alone);
      check_same(run<A>(table, requests, usual, Streaming{.size = 9, .refill_below = 1, .max_rows = 11}), alone);
    });
  }
  CHECK(met > 50);
}

TEST_CASE("the order of the requests changes no constrained result", "[constrained_mixed]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    auto const table = random_table(random, 10);
    auto requests = random_requests(random, 12);
    auto results = run<everything>(table, requests, usual, Streaming{.size = 4, .refill_below = 1});
    std::ranges::reverse(requests), std::ranges::reverse(results);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].id = i;
    check_same(run<everything>(table, requests, usual, Streaming{.size = 5, .refill_below = 0.5}), results);
  }
}

TEST_CASE("a request that makes no sense fails alone, and says what is wrong", "[constrained_mixed]") {
  auto const table = Table{.size = 10, .scale = 5};
  struct Bad {
    PhraseLists lists;
    std::string list, phrase;
  };
  std::vector<Bad> const bad{
      {{.all = {{4}, {5, 10}}}, "all[1]", "[5 10]"},
      {{.all = {{-3}}}, "all[0]", "[-3]"},
      {{.all = {{4}, {}}}, "all[1]", "[]"},
      {{.ordered = {{}, {4}}}, "ordered[0]", "[]"},
      {{.ordered = {{4}, {5, 99}}}, "ordered[1]", "[5 99]"},
      {{.ordered = {{4, eos}, {5}}}, "ordered[0]", "[4 2]"},
      {{.any = {{{4}}, {}}}, "any[1]", "[]"},
      {{.any = {{{4}, {}}}}, "any[0][1]", "[]"},
      {{.any = {{{4}, {77}}}}, "any[0][1]", "[77]"},
      {{.none = {{4}, {}}}, "none[1]", "[]"},
      {{.none = {{4}, {1000}}}, "none[1]", "[1000]"},
      {{.all = {{3}, {4, 5, 6}}, .none = {{7}, {5, 6}}}, "all[1]", "[4 5 6]"},
      {{.ordered = {{4}}, .none = {{4}}}, "ordered[0]", "[4]"},
      {{.any = {{{4}, {5}}}, .none = {{4}, {5}}}, "any[0]", "[4]"},
      {{.all = {{4, eos, 5}}}, "all[0]", "[4 2 5]"},
      {{.all = {{4, bos}}}, "all[0]", "[4 1]"},
      {{.all = {{pad}}}, "all[0]", "[0]"},
      {{.all = {{3, 4, 5, 6}, {7, 8, 9}, {5, 5, 5, 5, 5, 5}}}, "constraints = 12", "all[1] [7 8 9]"},
      {{.all = std::vector<Phrase>(257, Phrase{4})}, "all", "257"}};
  Requests good(bad.size() * 2, {.source = 1});
  for (std::size_t i = 0; i < good.size(); ++i) good[i].source = i;
  auto const expected = run<everything>(table, good, usual);
  auto requests = good;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    requests[2 * i].search = usual;
    requests[2 * i].search->constraints = Constraints(bad[i].lists);
  }
  for (std::size_t const size : {1u, 7u, 100u}) {
    auto const results = run<everything>(table, requests, usual, Streaming{.size = size, .refill_below = 1});
    for (std::size_t i = 0; i < bad.size(); ++i) {
      INFO("case " << i << ": " << results[2 * i].message);
      CHECK(results[2 * i].failure == Failure::bad_request);
      CHECK(results[2 * i].hypotheses.empty());
      CHECK(results[2 * i].message.find(bad[i].list) != std::string::npos);
      CHECK(results[2 * i].message.find(bad[i].phrase) != std::string::npos);
      CHECK(identical(results[2 * i + 1], expected[2 * i + 1]));
    }
  }
}

TEST_CASE("a rule bans what it bans, but a constraint wins", "[constrained_mixed]") {
  using Both = Processed<Constrained>;
  auto const table = Table{.size = 10, .scale = 4, .eos_bias = -3, .order = 1};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Both search{usual, LogitsProcessorList(NoRepeatNgram{2}, ForbidTokens{{5, 9}})};
    search.search.constraints = Constraints({.all = {{5}, {6, 7}, {6, 7}}});
    auto const result = run_one<everything>(table, seed, search);
    check_constraints(result, search.search.constraints.lists());
    for (auto const& h : result.hypotheses) {
      CHECK(h.constraints_met == 3);
      std::map<std::pair<Token, Token>, int> bigrams;
      for (std::size_t i = 1; i < h.tokens.size(); ++i) ++bigrams[{h.tokens[i - 1], h.tokens[i]}];
      for (auto const& [pair, count] : bigrams)
        if (pair.second != 7 && pair.second != 6) CHECK(count == 1);
      CHECK(std::ranges::count(h.tokens, 9) == 0);
      CHECK(std::ranges::count(h.tokens, 5) >= 1);
    }
  }
  using Alone = Processed<BeamSearch>;
  using Free = Processed<Constrained>;
  auto const beam = usual.beam;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    CHECK(identical(run_one<everything>(table, seed, Free{{.beam = beam}, NoRepeatNgram{2}}),
                    run_one<everything>(table, seed, Alone{beam, NoRepeatNgram{2}})));
}

TEST_CASE("an ensemble meets constraints, in any batch", "[constrained_mixed]") {
  std::mt19937_64 random(5);
  auto const requests = random_requests(random, 24);
  TableModel<> first(Table{.size = 10, .scale = 6}), second(Table{.size = 10, .scale = 3, .order = 1});
  Ensemble<TableModel<>, TableModel<>> both(first, second);
  auto const one = decode(both, requests, usual, Batched{.size = 1});
  CHECK(complete(one, requests) > 5);
  check_same(decode(both, requests, usual, Batched{.size = 9}), one);
  check_same(decode(both, requests, usual, Streaming{.size = 5, .refill_below = 1}), one);
}

TEST_CASE("projections give the tokens that are wanted, in any batch", "[constrained_mixed]") {
  constexpr std::int32_t size = 150;
  std::size_t met = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    OutputLayer const layer(seed, size, 8);
    HiddenModel<> model(size, 8);
    auto requests = random_requests(random, 20, size - 1);
    auto const check = [&](auto const& projection) {
      auto const one = decode(model, requests, usual, Batched{.size = 1}, projection);
      met += complete(one, requests);
      check_same(decode(model, requests, usual, Batched{.size = 7}, projection), one);
      check_same(decode(model, requests, usual, Streaming{.size = 6, .refill_below = 1}, projection), one);
    };
    check(layer.dense());
    check(layer.clustered({.always = {eos}}));
    for (auto& request : requests)
      if (random() % 4 != 0) {
        request.shortlist.emplace(size);
        for (auto n = between(random, 1, 9); n > 0; --n) request.shortlist->insert(between(random, 3, size - 1));
      }
    check(layer.dense());
    check(ShortlistProjection(layer.view(), layer.bias));
  }
  CHECK(met > 200);
}

TEST_CASE("a shortlist that lacks a constraint's tokens is joined by them", "[constrained_mixed]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    auto const lists = random_lists(random, {.last = 29, .all = 2, .ordered = 1, .any = 1});
    Requests with(1, {.source = seed});
    with[0].search = usual, with[0].search->constraints = Constraints(lists);
    with[0].search->beam.length.max = 30;
    with[0].shortlist.emplace(), with[0].shortlist->insert(Tokens{3, 4});
    auto joined = with;
    for (auto const& list : {lists.all, lists.ordered})
      for (auto const& phrase : list) joined[0].shortlist->insert(phrase);
    for (auto const& item : lists.any)
      for (auto const& phrase : item) joined[0].shortlist->insert(phrase);
    TableModel<> model(Table{.size = 30, .scale = 5});
    auto const result = decode(model, with, usual);
    check_same(result, decode(model, joined, usual));
    REQUIRE(result[0].ok());
    for (auto const& h : result[0].hypotheses)
      for (auto const token : h.tokens) CHECK((token == eos || joined[0].shortlist->contains(token)));
    CHECK(satisfies(lists, result[0].hypotheses.at(0).tokens));
  }
}

TEST_CASE("bos in a phrase takes no probability in a shortlist", "[constrained_mixed]") {
  TableModel<> model(Table{.size = 12}, {.impossible = false});  // bos is the most probable token, but never generated
  Requests requests(2, {.source = 4});
  for (auto& request : requests) {
    request.search = usual;
    request.shortlist.emplace(), request.shortlist->insert(Tokens{3, 4, 5});
  }
  requests[0].search->constraints = Constraints({.all = {{bos, 5}}});
  requests[1].search->constraints = Constraints({.all = {{5}}}), requests[1].prefix = {5};
  auto const results = decode(model, requests, usual);
  auto const& with = results[0].hypotheses.at(0);
  auto const& without = results[1].hypotheses.at(0);
  REQUIRE(with.tokens.at(0) == 5);
  CHECK_THAT(static_cast<double>(with.log_probs[0]), WithinAbs(static_cast<double>(without.log_probs.at(0)), 1e-5));
}

TEST_CASE("a server serves constrained requests beside others", "[constrained_mixed]") {
  std::mt19937_64 random(11);
  auto const table = random_table(random, 10);
  auto const requests = random_requests(random, 40);
  TableModel<everything> model(table);
  auto const expected = decode(model, requests, usual);
  Server server(model, usual, Streaming{.size = 6, .refill_below = 1});
  std::vector<std::future<Result>> futures;
  for (auto const& request : requests) futures.push_back(server.submit(request));
  std::vector<Result> results;
  for (auto& future : futures) results.push_back(future.get());
  check_same(results, expected);
  CHECK(complete(results, requests) > 10);
}
