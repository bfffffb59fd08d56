// SPDX-License-Identifier: Apache-2.0
// Every plan, step and result of constrained searches with any options, against a plain account.
#include <sluice/decode/schedule.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/constrained.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>
#include <support/watched_constrained.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// A misbehaving automaton: it reports more and less progress than it may, allows few tokens, forbids some, and has
/// dead states.
struct Strange {
  struct State {
    std::int32_t even = 0, size = 0;
    Token last = -1;
  };
  std::int32_t needs = 2;
  TokenSet few{9};

  explicit Strange(std::int32_t even = 2) : needs(even) { few.insert(std::vector<Token>{eos, 3, 4, 6}); }
  State initial(Sentence const&) const { return {}; }
  State next(State s, Token token) const { return {s.even + (token % 2 == 0 && token != eos), s.size + 1, token}; }
  std::int32_t progress(State const& s) const { return s.even - (s.last == 7 ? 9 : 0); }
  std::int32_t total() const { return needs; }
  void wanted(State const& s, std::vector<Token>& tokens) const {
    if (s.even < needs) tokens.push_back(4), tokens.push_back(8);
    if (s.size % 3 == 2) tokens.push_back(5);
  }
  bool complete(State const& s) const { return s.even >= needs; }
  bool dead(State const& s) const { return s.last == 5 && s.size % 2 == 0; }
  void forbidden(State const& s, std::vector<Token>& tokens) const {
    if (s.last == 6) tokens.push_back(3), tokens.push_back(7);
  }
  TokenSet const* allowed(State const& s) const { return s.size % 4 == 3 ? &few : nullptr; }
};

/// Any options with constraints.
template <class A>
ConstrainedBeamSearch<A> any_search(std::mt19937_64& random, A constraints) {
  for (;;) {
    ConstrainedBeamSearch<A> search{.beam = random_beam(random, 9, 10), .constraints = std::move(constraints)};
    search.banks = static_cast<Banks>(random() % 5);
    if (random() % 3 == 0) search.beam.pruning = {};
    if (random() % 4 == 0) search.beam.pruning.relative_local_threshold = 0.1;
    if (random() % 4 == 0) search.beam.pruning.below_finished = between(random, 0, 8) / 4.0;
    if (random() % 6 == 0) search.beam.sibling_penalty = 0.25;
    if (search.banks == Banks::equal && random() % 2 == 0) search.beam.pruning.max_per_parent = between(random, 1, 4);
    if (search.banks == Banks::equal)
      search.beam.width = std::max(search.beam.width, search.constraints.total() + between(random, 1, 7));
    if (search.beam.candidates > 0) search.beam.candidates = std::max(search.beam.candidates, search.beam.width);
    if (random() % 16 == 0) search.beam.length.max = 0;
    search.replace_impossible = random() % 3 != 0;
    search.list_incomplete = random() % 3 == 0;
    search.prune_finished = random() % 2 == 0 ? Pruning::off : between(random, 0, 12) / 4.0;
    try {
      search.check();
      return search;
    } catch (std::invalid_argument const&) {
      constraints = std::move(search.constraints);
    }
  }
}

template <class A>
void watch(std::mt19937_64& random, Table const& table, A constraints, std::array<std::size_t, 7>& seen) {
  WatchedConstrained<A> const watched{
      {any_search(random, std::move(constraints)), [&](std::size_t kind) { ++seen[kind]; }}};
  TableRequest<WatchedConstrained<A>> request{.source = random()};
  if (random() % 3 == 0)
    for (auto n = random() % 3; n > 0; --n) request.prefix.push_back(between(random, 3, 4));
  INFO(text(watched.search.beam) << ", banks " << static_cast<int>(watched.search.banks));
  auto other = request;
  other.source = random();
  run(table, std::vector{request, other}, watched, Batched{.size = 1});  // one state for both
}

}  // namespace

TEST_CASE("every plan, step and result of a constrained search is as its account has it", "[constrained_steps]") {
  std::array<std::size_t, 7> seen{}, strange{};
  for (std::uint64_t seed = 0; seed < 700; ++seed) {
    std::mt19937_64 random(seed);
    auto table = random_table(random, between(random, 5, 9));
    if (seed % 9 == 0) table.has_eos = false;
    if (seed % 5 == 0) table.levels = 3;  // ties
    auto const lists = random_lists(
        random,
        {.last = table.size - 1, .longest = 2, .edges = seed % 4 == 0, .all = 2, .ordered = 1, .any = 1, .none = 1});
    INFO("seed " << seed << ", V " << table.size << ", " << text(lists));
    if (naive_count(lists) > 0 || !lists.none.empty()) watch(random, table, Constraints(lists), seen);
    table.size = 9;
    watch(random, table, Strange(between(random, 0, 3)), strange);
  }
  for (auto const count : seen) CHECK(count > 150);
  for (auto const count : strange) CHECK(count > 150);
}
