// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

using Constrained = ConstrainedBeamSearch<>;

bool begins(Tokens const& whole, Tokens const& part) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

struct Case {
  Table table;
  TableRequest<Constrained> request;
  PhraseLists lists;
};

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Case c{.table = random_table(random, between(random, 6, 10)), .request = {}, .lists = {}};
  c.lists = random_lists(
      random, {.last = c.table.size - 1, .edges = seed % 4 == 0, .all = 2, .ordered = 1, .any = 1, .none = 1});
  Constrained search{.beam = random_beam(random, 6), .constraints = Constraints(c.lists)};
  search.beam.length.max = between(random, 6, 14);
  search.beam.pruning.absolute_threshold = Pruning::off;
  search.banks = static_cast<Banks>(random() % 3);
  search.list_incomplete = random() % 4 == 0;
  c.request = {.source = random(), .search = search};
  if (random() % 3 == 0) c.request.prefix = {3, 4, 3};
  return c;
}

}  // namespace

TEST_CASE("the settled beginning of a constrained search grows and comes", "[constrained_settled]") {
  std::size_t grown = 0, results = 0;
  for (std::uint64_t seed = 0; seed < times(1500u); ++seed) {
    auto const c = random_case(seed);
    TableModel<everything> model(c.table);
    Decoder decoder(model, *c.request.search);
    decoder.submit(c.request);
    Tokens last;
    INFO("seed " << seed << ", " << text(*c.request.search));
    while (decoder.step())
      decoder.settled([](std::uint64_t) { return true; },
                      [&](std::uint64_t, std::span<Token const> tokens) {
                        Tokens const now(tokens.begin(), tokens.end());
                        CHECK(begins(now, last));
                        grown += now.size() > last.size() ? 1 : 0;
                        last = now;
                      });
    Result result;
    REQUIRE(decoder.poll(result));
    if (!result.ok()) continue;
    results += result.hypotheses.size();
    for (auto const& h : result.hypotheses) CHECK(begins(h.tokens, last));
  }
  CHECK(grown > times(1000u));
  CHECK(results > times(1500u));
}

TEST_CASE("a constrained search that is withdrawn gives what there is", "[constrained_settled]") {
  std::size_t complete = 0, incomplete = 0;
  for (std::uint64_t seed = 0; seed < times(500u); ++seed) {
    auto const c = random_case(seed);
    auto const& search = *c.request.search;
    INFO("seed " << seed << ", " << text(search));
    for (std::size_t steps = 1;; ++steps) {
      TableModel<everything> model(c.table);
      Decoder decoder(model, search);
      decoder.submit(c.request);
      for (std::size_t i = 0; i < steps; ++i) decoder.step();
      if (decoder.running() == 0) break;
      Tokens settled;
      decoder.settled([](std::uint64_t) { return true; },
                      [&](std::uint64_t, std::span<Token const> t) { settled.assign(t.begin(), t.end()); });
      REQUIRE(decoder.cancel(0));
      Result result;
      REQUIRE(decoder.poll(result));
      CHECK(result.failure == Failure::cancelled);
      if (search.constraints.trivial()) continue;
      REQUIRE_FALSE(result.hypotheses.empty());
      CHECK(std::ssize(result.hypotheses) <= search.beam.n_best);
      auto left = false;
      for (auto const& h : result.hypotheses) {
        CHECK(begins(h.tokens, settled));
        CHECK(h.log_probs.size() == h.tokens.size());
        CHECK(h.constraints_met == naive_met(c.lists, h.tokens));
        CHECK(h.constraints_total == naive_count(c.lists));
        auto const whole = h.constraints_met == h.constraints_total;
        if (left) CHECK_FALSE(whole);
        if (!whole) CHECK_FALSE(h.finished);
        left = left || !whole;
        ++(whole ? complete : incomplete);
      }
      if (left && !search.list_incomplete) CHECK(result.hypotheses.size() == 1);
    }
  }
  CHECK(complete > times(200u));
  CHECK(incomplete > times(200u));
}
