// SPDX-License-Identifier: Apache-2.0
// The rules by which a result may differ from a reference, and what the tests call the same: that they refuse.
#include <support/catch.hpp>
#include <support/decoding.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <oracle_check/following.hpp>
#include <oracle_check/last_step.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;
using namespace oracle_check;

namespace {

/// Ends; its score is its log-probability, as if all were of one length.
Hypothesis ended(std::vector<Token> const& tokens, double score) {
  return {.tokens = tokens, .log_probs = {}, .log_prob = score, .score = score, .finished = true};
}

}  // namespace

TEST_CASE("what fairseq may lose at the last step is the tail of what ends there, and nothing else", "[oracle_rules]") {
  // Phrase [7], at most 4 tokens, a beam of 5.
  Result const ours{
      .hypotheses = {ended({7, 3, 3, 2}, -1), ended({7, 2}, -2), ended({3, 7, 3, 2}, -3), ended({3, 3, 7, 2}, -4)}};
  auto const lost = [&](Result const& result, std::vector<std::size_t> const& kept) {
    std::vector<Expected> list;
    for (auto const i : kept) list.push_back({ours.hypotheses[i].tokens, ours.hypotheses[i].score});
    return lost_at_last_step(result, list, 5, 4, [](auto const& tokens) { return std::ranges::count(tokens, 7) > 0; });
  };
  CHECK(lost(ours, {0, 1, 2}) == "last step: fairseq loses 1 of 3 complete hypotheses of maximum length");
  CHECK(lost(ours, {0, 1}) == "last step: fairseq loses 2 of 3 complete hypotheses of maximum length");
  CHECK(lost(ours, {0, 1, 2, 3}).empty());  // nothing is lost
  CHECK(lost(ours, {0, 2, 3}).empty());     // what is missing ended before
  CHECK(lost(ours, {0, 1, 3}).empty());     // it is better than one that was kept
  CHECK(lost(ours, {1, 2, 3}).empty());
  CHECK(lost(ours, {1}).empty());        // the best has the first place
  CHECK(lost(ours, {1, 0, 2}).empty());  // another order
  CHECK(lost(ours, {}).empty());
  auto const other = [&](std::function<void(Result&)> const& change) {
    auto result = ours;
    change(result);
    return lost(result, {0, 1});
  };
  CHECK_FALSE(other([](Result&) {}).empty());
  CHECK(other([](Result& r) { r.hypotheses[3].tokens = {3, 3, 3, 2}; }).empty());  // incomplete
  CHECK(other([](Result& r) { r.hypotheses[3].finished = false; }).empty());
  CHECK(other([](Result& r) { r.hypotheses[1].score -= 0.01; }).empty());
  CHECK(other([](Result& r) { r.hypotheses[0].tokens[1] = 4; }).empty());
  CHECK(other([](Result& r) {
          for (int i = 0; i < 2; ++i) r.hypotheses.push_back(r.hypotheses[3]);
        }).empty());
  CHECK(other([](Result& r) { r.fail(Failure::model, "broken"); }).empty());
}

TEST_CASE("two searches part where their automata differ, or for no reason", "[oracle_rules]") {
  std::vector<Phrase> const phrases{{4, 5}};
  Look const root{{}, 0, 0, {4}, {4}}, step{{4}, 1, 1, {5}, {5}}, stumble{{4, 4}, 1, 0, {5}, {4}};
  Look const further{{4, 4, 5}, 2, 0, {}, {4}}, aside{{4, 4, 3}, 0, 0, {4}, {4}};
  std::vector<Look> const common{root, step, stumble};
  auto const with = [&](Look const& look) {
    auto walk = common;
    walk.push_back(look);
    return walk;
  };
  auto const ours = with(further), original = with(aside);
  REQUIRE(parting(ours, original) == &ours[2]);
  CHECK(text(ours[2]) == "credit: of what ends in [4 4] it counts 0, not 1");
  CHECK(own_is_right(ours[2], phrases, 8, in_any_order));
  CHECK(parting(ours, ours) == nullptr);  // they do not part
  auto const late = with({{4, 4, 3, 3}, 0, 0, {4}, {4}}), longer = with({{4, 4, 3, 3, 3}, 0, 0, {4}, {4}});
  CHECK(parting(late, longer) == nullptr);  // they do, two steps after the automata differed
  CHECK(parting({root, step, aside}, {root, step, further}) == nullptr);
  // Ours wrong: another count, a token too many, one too few.
  CHECK_FALSE(own_is_right({{4, 4}, 2, 0, {5}, {4}}, phrases, 8, in_any_order));
  CHECK_FALSE(own_is_right({{4, 4}, 1, 0, {4, 5}, {4}}, phrases, 8, in_any_order));
  CHECK_FALSE(own_is_right({{4, 4}, 1, 0, {}, {4}}, phrases, 8, in_any_order));
}

TEST_CASE("identical results are equal in everything but the id", "[oracle_rules]") {
  auto const cause = [](char const* what) { return std::make_exception_ptr(std::runtime_error(what)); };
  Result const one{.id = 1,
                   .hypotheses = {{.tokens = {3, 2},
                                   .log_probs = {-1, -2},
                                   .log_prob = -3,
                                   .score = -1.5,
                                   .finished = true,
                                   .constraints_met = 1,
                                   .constraints_total = 2,
                                   .blocks = {2}}},
                   .failure = Failure::late,
                   .message = "late",
                   .cause = cause("a")};
  auto const changed = [&](std::function<void(Result&)> const& change) {
    auto other = one;
    other.id = 2;
    other.cause = cause("a");
    change(other);
    return other;
  };
  CHECK(identical(one, changed([](Result&) {})));
  std::vector<std::function<void(Result&)>> const outputs{[](Result& r) { r.hypotheses[0].tokens[0] = 4; },
                                                          [](Result& r) { r.hypotheses[0].log_probs[1] = -2.5F; },
                                                          [](Result& r) { r.hypotheses[0].log_probs.pop_back(); },
                                                          [](Result& r) { r.hypotheses[0].log_prob = -2; },
                                                          [](Result& r) { r.hypotheses[0].score = -2; },
                                                          [](Result& r) { r.hypotheses[0].finished = false; },
                                                          [](Result& r) { r.hypotheses.clear(); },
                                                          [](Result& r) { r.failure = Failure::none; },
                                                          [](Result& r) { r.message += "!"; },
                                                          [](Result& r) { r.cause = {}; },
                                                          [&](Result& r) { r.cause = cause("b"); }};
  for (auto const& change : outputs) {
    CHECK_FALSE(identical(one, changed(change)));
    CHECK_FALSE(same_outputs(one, changed(change)));
  }
  std::vector<std::function<void(Result&)>> const work{[](Result& r) { r.hypotheses[0].constraints_met = 2; },
                                                       [](Result& r) { r.hypotheses[0].constraints_total = 1; },
                                                       [](Result& r) {
                                                         r.hypotheses[0].blocks = {1, 1};
                                                       }};
  for (auto const& change : work) {
    CHECK_FALSE(identical(one, changed(change)));
    CHECK(same_outputs(one, changed(change)));
  }
}
