// SPDX-License-Identifier: Apache-2.0
// Searches, expanders and schedules that break their contracts: they fail alone, and the message names the clause.
#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/output/log_softmax_top_k.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace misbehaviour {

Table const table{.size = 9, .scale = 5, .eos_bias = -3};

/// Greedy in slot 0 of `slots`, but what step `step` plans is something else; `forks`: into slot 1 in the step before.
struct Odd {
  std::int32_t wanted_slots = 2;
  std::int32_t step = -1;
  std::function<void(Plan&, std::int32_t held, Token& last)> instead{};
  bool forks = false;
  Greedy greedy{.length = {.max = 6}};

  struct State {
    Greedy::State inner{};
    std::int32_t steps = 0, held = 0;
    Token last = 0;
  };
  std::int32_t slot_count() const { return wanted_slots; }
  void begin(State& s, Sentence const& sentence) const {
    greedy.begin(s.inner, sentence);
    s.steps = 0, s.held = sentence.held, s.last = sentence.last;
  }
  void plan(State& s, Plan& plan) const {
    if (s.steps++ == step) return instead(plan, s.held, s.last);
    greedy.plan(s.inner, plan);
    if (forks && s.steps == step) plan.row(0, 1, s.held, {&s.last, 1}), plan.ask({});
  }
  bool advance(State& s, Expansion const& answer) const {
    ++s.held;
    if (answer.size() > 0 && !answer[0].best.empty()) s.last = answer[0].best[0].token;
    return answer.size() > 0 && greedy.advance(s.inner, answer.window(0, 1));
  }
  Progress progress(State const& s) const { return greedy.progress(s.inner); }
  void finish(State const& s, Result& result) const { greedy.finish(s.inner, result); }
};

struct Case {
  char const* name;
  std::function<void(Plan&, std::int32_t, Token&)> plan;
  char const* message;
  bool later = false;  // in the first plan something else is worse
  bool forks = false;
};

std::vector<Case> const cases{
    {"a slot of a neighbour",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(2, 2, held, {&last, 1}), p.ask({});
     },
     "row 2 -> 2: slot 2 is not one of the search's 2"},
    {"a fork to a neighbour",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 3, held, {&last, 1}), p.ask({});
     },
     "row 0 -> 3: slot 3 is not one of the search's 2"},
    {"a slot before the first",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(-1, 0, held, {&last, 1}), p.ask({});
     },
     "row -1 -> 0: slot -1 is not one of the search's 2"},
    {"rows that descend",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 1, held, {&last, 1}), p.ask({}), p.row(0, 0, held, {&last, 1}), p.ask({});
     },
     "row 0 -> 0: rows must ascend in `to`"},
    {"one slot twice",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1}), p.ask({}), p.row(0, 0, held, {&last, 1}), p.ask({});
     },
     "rows must ascend in `to`"},
    {"a row without tokens", [](Plan& p, std::int32_t held, Token&) { p.row(0, 0, held, {}), p.ask({}); },
     "row 0 -> 0: has no tokens"},
    {"a token outside the vocabulary",
     [](Plan& p, std::int32_t held, Token& last) {
       last = 9, p.row(0, 0, held, {&last, 1}), p.ask({});
     },
     "token 9 is outside the vocabulary of 9"},
    {"a negative length",
     [](Plan& p, std::int32_t, Token& last) {
       p.row(0, 0, -1, {&last, 1}), p.ask({});
     },
     "length -1 is negative"},
    {"a length beyond what the slot holds",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held + 2, {&last, 1}), p.ask({});
     },
     "holds "},
    {"a slot that holds nothing",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(1, 1, held, {&last, 1}), p.ask({});
     },
     "row 1 -> 1: slot 1 holds nothing", true},
    {"a slot released that a row goes on from",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 1, held, {&last, 1}), p.ask({}), p.release(0);
     },
     "released slot 0 is one that a row continues"},
    {"more lines than tokens",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1}, 2), p.ask({}), p.ask({});
     },
     "2 lines of 1 tokens"},
    {"no line",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1}, 0);
     },
     "0 lines of 1 tokens"},
    {"a question too many",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1}), p.ask({}), p.ask({});
     },
     "2 calls of ask() for 1 lines"},
    {"a question too few",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1});
     },
     "0 calls of ask() for 1 lines"},
    {"a probe outside the vocabulary",
     [](Plan& p, std::int32_t held, Token& last) {
       static Token const outside[] = {8, 9};
       p.row(0, 0, held, {&last, 1}), p.ask({.probes = outside});
     },
     "a probe of token 9, which is outside the vocabulary of 9"},
    {"a probe of nothing",
     [](Plan& p, std::int32_t held, Token& last) {
       static Token const outside = -1;
       p.row(0, 0, held, {&last, 1}), p.ask({.probes = {&outside, 1}});
     },
     "a probe of token -1, which"},
    {"a neighbour's slot released",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(0, 0, held, {&last, 1}), p.ask({}), p.release(2);
     },
     "released slot 2 is not one of the search's 2"},
    {"a slot that is read and forked into",
     [](Plan& p, std::int32_t held, Token& last) {
       p.row(1, 0, held, {&last, 1}), p.ask({}), p.row(0, 1, held, {&last, 1}), p.ask({});
     },
     "another row continues the slot that it forks into", true, true},
};

template <Abilities A>
std::vector<Result> among_others(Odd const& odd, Batched const& schedule = {.size = 5}) {
  std::vector<TableRequest<Odd>> requests;
  for (std::uint64_t i = 0; i < 7; ++i) requests.push_back({.source = i});
  requests[2].search = odd;
  TableModel<A> model(table);
  return decode(model, requests, Odd{}, schedule);
}

void check_neighbours(std::vector<Result> const& results, std::size_t bad) {
  REQUIRE(results.size() == 7);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (i != bad) CHECK(identical(results[i], run_one(table, i, Greedy{.length = {.max = 6}})));
}

}  // namespace misbehaviour
using namespace misbehaviour;

TEST_CASE("a plan that breaks a clause ends its sentence alone", "[misbehaviour]") {
  for (auto const& one : cases)
    for (auto const step : {0, 1, 2}) {
      if (step == 0 && one.later) continue;
      INFO(one.name << " in step " << step);
      Odd const odd{.step = step, .instead = one.plan, .forks = one.forks};
      auto const results = among_others<everything>(odd);
      CHECK(results[2].failure == Failure::search);
      CHECK_THAT(results[2].message, Catch::Contains(one.message));
      check_neighbours(results, 2);
      check_neighbours(among_others<plain>(odd), 2);
    }
}

TEST_CASE("a plan beyond what the model can ends its sentence alone", "[misbehaviour]") {
  auto const block = [](Plan& p, std::int32_t held, Token& last) {
    static Token tokens[2];
    tokens[0] = tokens[1] = last;
    p.row(0, 0, held, tokens, 1), p.ask({});
  };
  auto const blocks = among_others<plain>({.step = 1, .instead = block});
  CHECK_THAT(blocks[2].message, Catch::Contains("has 2 tokens, and the model takes no blocks"));
  check_neighbours(blocks, 2);

  auto const shorter = [](Plan& p, std::int32_t held, Token& last) { p.row(0, 0, held - 1, {&last, 1}), p.ask({}); };
  constexpr Abilities cuts{.roll_back = true};
  auto const ragged = among_others<cuts>({.step = 2, .instead = shorter});
  CHECK_THAT(ragged[2].message, Catch::Contains("the model is not ragged"));
  check_neighbours(ragged, 2);

  constexpr Abilities no_cuts{.ragged = true, .blocks = true};
  for (auto const step : {1, 2, 3}) {
    auto const back = among_others<no_cuts>({.step = step, .instead = shorter});
    CHECK(back[2].failure == Failure::search);
    auto const row = "row 0 -> 0: length " + std::to_string(step - 1) + ", and slot 0 holds " + std::to_string(step);
    CHECK_THAT(back[2].message, Catch::Contains(row + " tokens: the model does not roll back"));
    check_neighbours(back, 2);
  }
}

TEST_CASE("a result without hypotheses and without a failure is the search's", "[misbehaviour]") {
  struct Silent : Greedy {
    bool silent = true;
    void finish(State const& s, Result& result) const {
      if (!silent) Greedy::finish(s, result);
    }
  };
  std::vector<TableRequest<Silent>> requests(7);
  for (std::uint64_t i = 0; i < 7; ++i)
    requests[i].source = i, requests[i].search = Silent{{.length = {.max = 6}}, i == 2};
  TableModel<everything> model(table);
  auto const results = decode(model, requests, Silent{}, Batched{.size = 5});
  CHECK(results[2].failure == Failure::search);
  CHECK_THAT(results[2].message, Catch::Contains("`finish` wrote neither hypotheses nor a failure"));
  check_neighbours(results, 2);
  Decoder decoder(model, Silent{});  // who is cancelled need not have any
  decoder.submit({.source = 0});
  decoder.step();
  decoder.cancel(0);
  Result result;
  REQUIRE(decoder.poll(result));
  CHECK(result.failure == Failure::cancelled);
}

TEST_CASE("a first plan goes on from slot 0, or ends", "[misbehaviour]") {
  auto const other = among_others<everything>({.step = 0, .instead = [](Plan& p, std::int32_t held, Token& last) {
                                                 p.row(1, 1, held, {&last, 1}), p.ask({});
                                               }});
  CHECK_THAT(other[2].message, Catch::Contains("the first plan can continue only slot 0"));
  check_neighbours(other, 2);
  Odd idle{.step = 0, .instead = [](Plan&, std::int32_t, Token&) {}};
  auto const nothing = among_others<everything>(idle);
  CHECK(nothing[2].failure == Failure::search);
  check_neighbours(nothing, 2);
}

TEST_CASE("a search without slots is refused", "[misbehaviour]") {
  TableModel<everything> model(table);
  CHECK_THROWS_WITH(decode(model, std::vector<std::uint64_t>{1, 2, 3}, Odd{.wanted_slots = 0}),
                    Catch::Contains("slot_count = 0: a search needs at least 1"));
  auto const results = among_others<everything>({.wanted_slots = 0});
  CHECK(results[2].failure == Failure::bad_request);
  CHECK_THAT(results[2].message, Catch::Contains("slot_count = 0"));
  check_neighbours(results, 2);
}

TEST_CASE("an expander that answers too few lines is named", "[misbehaviour]") {
  struct Short {
    LogSoftmaxTopK inner{};
    Expansion expand(Scores<float> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
      auto const all = inner.expand(scores, queries, groups);
      return queries.size() > 1 ? all.window(0, queries.size() - 1) : all;
    }
  };
  TableModel<everything> model(table);
  auto const results = decode(model, std::vector<std::uint64_t>{1, 2, 3}, Greedy{}, Batched{}, Short{});
  REQUIRE(results.size() == 3);
  CHECK(results[0].failure == Failure::model);
  CHECK_THAT(results[0].message, Catch::Contains("the expander was asked for 3 lines and answered 2"));
}

namespace misbehaviour {

/// Admits and chooses what it is told to.
struct Told {
  std::function<std::size_t(std::size_t live)> admits = [](std::size_t) { return std::size_t{2}; };
  std::function<void(std::size_t live, std::vector<std::int32_t>&)> chooses = [](std::size_t live, auto& chosen) {
    for (std::size_t i = 0; i < live; ++i) chosen.push_back(static_cast<std::int32_t>(i));
  };
  std::size_t admit(std::span<Live const> live, std::span<std::int32_t const>) const { return admits(live.size()); }
  void select(std::span<Live const> live, std::vector<std::int32_t>& chosen) const { chooses(live.size(), chosen); }
};

/// Decodes six; of those that end well `well` are right, the others fail by the schedule's fault.
void check_schedule(Told const& schedule, std::size_t well, std::string const& message) {
  TableModel<everything> model(table);
  auto const results = decode(model, std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}, Greedy{}, schedule);
  REQUIRE(results.size() == 6);
  std::size_t good = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(results[i].id == i);
    if (results[i].ok()) {
      ++good;
      CHECK(identical(results[i], run_one(table, i, Greedy{})));
    } else {
      CHECK(results[i].failure == Failure::schedule);
      CHECK_THAT(results[i].message, Catch::Contains(message));
    }
  }
  CHECK(good == well);
}

}  // namespace misbehaviour

TEST_CASE("a schedule that admits no sentence loses no result", "[misbehaviour]") {
  auto calls = 0;
  check_schedule({.admits = [&](std::size_t live) { return live == 0 && calls++ < 2 ? std::size_t{2} : 0; }}, 4,
                 "the schedule admits none of the 2 waiting sentences, although none is live");
  check_schedule({.admits = [](std::size_t) { return std::size_t{0}; }}, 0, "admits none of the 6 waiting sentences");
}

TEST_CASE("a schedule that chooses no sentence, one twice, or one that is not there, loses no result",
          "[misbehaviour]") {
  check_schedule({.chooses = [](std::size_t, auto&) {}}, 0, "the schedule chose none of the 6 live sentences");
  check_schedule({.chooses = [](std::size_t, auto& chosen) { chosen.push_back(7); }}, 0,
                 "the schedule chose sentence 7 of 6");
  check_schedule({.chooses =
                      [](std::size_t, auto& chosen) {
                        chosen = {0, 0};
                      }},
                 0, "the schedule chose sentence 0 behind sentence 0: `chosen` must ascend, without repeats");
  check_schedule({.chooses =
                      [](std::size_t, auto& chosen) {
                        chosen = {0, 2, 1, 3};
                      }},
                 0, "the schedule chose sentence 1 behind sentence 2: `chosen` must ascend");
  auto steps = 0;
  check_schedule({.chooses =
                      [&](std::size_t live, auto& chosen) {
                        for (std::size_t i = 0; i < live; ++i) chosen.push_back(static_cast<std::int32_t>(i));
                        if (++steps == 3) chosen.push_back(chosen.front());
                      }},
                 0, "the schedule chose sentence 0 behind sentence 5");
  check_schedule({.admits = [](std::size_t) -> std::size_t { throw std::runtime_error("no idea"); }}, 0, "no idea");
}
