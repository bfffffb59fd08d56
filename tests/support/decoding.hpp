// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decoding with a checked table, and the properties of every result.
#pragma once

#include <sluice/core/request.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>

#include <support/brute_force.hpp>
#include <support/catch.hpp>
#include <support/slot_checker.hpp>
#include <support/table_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

inline constexpr Abilities plain{}, everything{.ragged = true, .blocks = true, .roll_back = true};

/// A table with all abilities. It claims those it is told to claim and refuses any row that breaks the contract of
/// slots. One type, and so one decoder per search, serves all claims.
using TableChecker = CheckedModel<TableModel<everything>>;

/// The same with the claim as part of the type: a decoder for each.
template <Abilities A = plain>
using CheckedTable = SlotChecker<TableModel<everything>, A>;

template <class S>
using TableRequest = Request<std::uint64_t, S>;

/// Decodes with a checked table; fails the test if the contract of slots was broken or a slot leaked.
template <class S, class P = Batched>
std::vector<Result> run(Abilities claimed, Table const& table, std::vector<TableRequest<S>> requests, S const& search,
                        P const& schedule = {}, TableOptions const& options = {}, Counters* counters = nullptr) {
  TableChecker model(TableModel<everything>(table, options), claimed);
  auto const count = requests.size();
  auto results = decode(model, std::move(requests), search, schedule);
  CHECK(model.report() == "");
  if (counters != nullptr) *counters = model.counters();
  REQUIRE(results.size() == count);
  for (std::size_t i = 0; i < count; ++i) CHECK(results[i].id == i);
  return results;
}

template <Abilities A = plain, class S, class P = Batched>
std::vector<Result> run(Table const& table, std::vector<TableRequest<S>> requests, S const& search,
                        P const& schedule = {}, TableOptions const& options = {}, Counters* counters = nullptr) {
  return run(A, table, std::move(requests), search, schedule, options, counters);
}

/// Decodes one sentence.
template <Abilities A = plain, class S>
Result run_one(Table const& table, std::uint64_t seed, S const& search, TableOptions const& options = {}) {
  return run<A>(table, std::vector<TableRequest<S>>{{.source = seed}}, search, Batched{}, options).at(0);
}

/// Calls f.template operator()<A>() for all eight sets of abilities.
template <class F>
void for_all_abilities(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f.template operator()<Abilities{.ragged = (I & 1) != 0, .blocks = (I & 2) != 0, .roll_back = (I & 4) != 0}>(),
     ...);
  }
  (std::make_index_sequence<8>());
}

/// The same for four of them, which contain all combinations of any two abilities: half the compile time.
template <class F>
void for_pairs_of_abilities(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f.template operator()<Abilities{.ragged = (I & 1) != 0, .blocks = (I & 2) != 0, .roll_back = I == 1 || I == 2}>(),
     ...);
  }
  (std::make_index_sequence<4>());
}

inline bool same_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Whether two hypotheses are the same sequence with the same numbers, bit for bit, whichever search found them.
inline bool same_output(Hypothesis const& a, Hypothesis const& b) {
  return a.tokens == b.tokens && a.finished == b.finished && same_bits(a.log_prob, b.log_prob) &&
         same_bits(a.score, b.score) && std::ranges::equal(a.log_probs, b.log_probs, [](float x, float y) {
           return same_bits(static_cast<double>(x), static_cast<double>(y));
         });
}
/// The same, plus what a search reports about its own work: constraints, blocks.
inline bool identical(Hypothesis const& a, Hypothesis const& b) {
  return same_output(a, b) && a.constraints_met == b.constraints_met && a.constraints_total == b.constraints_total &&
         a.blocks == b.blocks;
}

/// The message of the exception behind a failure; empty if there is none.
inline std::string cause(Result const& result) {
  if (!result.cause) return {};
  try {
    std::rethrow_exception(result.cause);
  } catch (std::exception const& error) {
    return std::string("exception: ") + error.what();
  } catch (...) {
    return "an exception of another kind";
  }
}

/// Whether two results have the same outputs, or failed in the same way: for two searches that must agree.
inline bool same_outputs(Result const& a, Result const& b) {
  return a.failure == b.failure && a.message == b.message && cause(a) == cause(b) &&
         std::ranges::equal(a.hypotheses, b.hypotheses, [](auto const& x, auto const& y) { return same_output(x, y); });
}
/// Whether two results are equal in all members, bit for bit, except for the id.
inline bool identical(Result const& a, Result const& b) {
  return same_outputs(a, b) &&
         std::ranges::equal(a.hypotheses, b.hypotheses, [](auto const& x, auto const& y) { return identical(x, y); });
}

/// Checks that a result's numbers match its tokens: log_probs the table, log_prob the log_probs; that the list is
/// sorted and without duplicates; that only the last token may be eos.
inline void check_result(Result const& result, Table const& table, std::uint64_t seed,
                         std::vector<Token> const& prompt = {}) {
  REQUIRE(result.ok());
  std::vector<double> line(static_cast<std::size_t>(table.size));
  for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
    auto const& h = result.hypotheses[i];
    INFO("hypothesis " << i << ": " << text(h.tokens));
    REQUIRE(h.log_probs.size() == h.tokens.size());
    auto context = prompt;
    double sum = 0;
    for (std::size_t t = 0; t < h.tokens.size(); ++t) {
      REQUIRE((h.tokens[t] >= 0 && h.tokens[t] < table.size));
      table.log_probs(seed, context, line);
      auto const expected = line[static_cast<std::size_t>(h.tokens[t])];
      auto const error = std::abs(static_cast<double>(h.log_probs[t]) - expected);
      if (!(error <= 2e-5)) CHECK(static_cast<double>(h.log_probs[t]) == expected);
      sum += static_cast<double>(h.log_probs[t]);
      if (t + 1 < h.tokens.size()) CHECK_FALSE(table.ends(h.tokens[t]));
      context.push_back(h.tokens[t]);
    }
    if (!(std::abs(sum - h.log_prob) <= 1e-9 * (1 + std::abs(sum)))) CHECK(h.log_prob == sum);
    if (!table.endless()) CHECK(h.finished == (!h.tokens.empty() && table.ends(h.tokens.back())));
    if (i > 0) CHECK(result.hypotheses[i - 1].score >= h.score);
    for (std::size_t j = 0; j < i; ++j) CHECK(result.hypotheses[j].tokens != h.tokens);
  }
}

/// Checks an n-best list against the expected one. Sequences with nearly the same score may change places.
inline void check_n_best(Result const& result, std::vector<Sequence> const& expected, double tolerance = 1e-4) {
  REQUIRE(result.ok());
  REQUIRE(result.hypotheses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto const& h = result.hypotheses[i];
    INFO("hypothesis " << i << ": " << text(h.tokens) << ", expected " << text(expected[i].tokens));
    if (std::abs(h.score - expected[i].score) > tolerance) CHECK(h.score == expected[i].score);
    if (h.tokens == expected[i].tokens) {
      CHECK(h.finished == expected[i].finished);
      continue;
    }
    auto const neighbour = [&](std::size_t j) {
      return j < expected.size() && std::abs(expected[j].score - expected[i].score) <= tolerance;
    };
    if (!neighbour(i - 1) && !neighbour(i + 1) && i + 1 < expected.size()) CHECK(h.tokens == expected[i].tokens);
  }
}

/// A random table.
inline Table random_table(std::mt19937_64& random, std::int32_t size) {
  auto const pick = [&](auto... x) {
    double const values[]{static_cast<double>(x)...};
    return values[random() % sizeof...(x)];
  };
  return {.size = size,
          .scale = pick(1, 4, 8, 15),
          .eos_bias = pick(-4, -2, 0, 1),
          .eos_slope = pick(0, 0.25, 1),
          .order = static_cast<std::int32_t>(pick(-1, -1, 0, 2))};
}

/// The same with 5 to `most` tokens, and logits below a limit of 1 to `scale`; sometimes without eos, or with ties.
inline Table any_table(std::mt19937_64& random, std::int32_t most, std::int32_t scale) {
  auto const below = [&](std::int32_t n) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
  };
  Table table;
  table.size = 5 + below(most - 4);
  table.scale = 1 + below(scale);
  table.eos_bias = -below(3), table.eos_slope = 0.2;
  table.order = below(4) - 1;
  table.has_eos = below(8) != 0;
  if (below(4) == 0) table.levels = 3;
  return table;
}

}  // namespace sluice::test
