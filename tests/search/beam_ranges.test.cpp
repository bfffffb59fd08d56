// SPDX-License-Identifier: Apache-2.0
// The ranges of beam options, up to the last allowed value, and the defaults.
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/presets.hpp>

#include <support/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

using namespace sluice;

namespace {

constexpr auto infinite = std::numeric_limits<double>::infinity();
constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The option that a search refuses; empty if it refuses none.
template <class S>
std::string refused(S const& search) {
  try {
    search.check();
  } catch (std::invalid_argument const& error) {
    auto const what = std::string(error.what()).substr(8);  // after "sluice: "
    return what.substr(0, what.find(" = "));
  }
  return "";
}

}  // namespace

TEST_CASE("a beam search refuses what lies outside the range of an option, and nothing else",
          "[beam_search][options]") {
  using Rule = EarlyStopping::Rule;
  auto const count = [](FinishedHypotheses finished, Rule rule) {
    return refused(BeamSearch{.finished = finished, .early_stopping = {.rule = rule}});
  };
  CHECK(refused(BeamSearch{.width = 1}) == "");
  CHECK(refused(BeamSearch{.width = 0}) == "width");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 2}) == "");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 3}) == "n_best");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 0}) == "n_best");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 4, .early_stopping = {.patience = 2}}) == "");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 5, .early_stopping = {.patience = 2}}) == "n_best");
  CHECK(refused(BeamSearch{.width = 2, .n_best = 2, .early_stopping = {.finished = 1}}) == "");
  CHECK(refused(BeamSearch{.width = 3, .candidates = 3}) == "");
  CHECK(refused(BeamSearch{.width = 3, .candidates = 2}) == "candidates");
  CHECK(refused(BeamSearch{.width = 3, .finished = FinishedHypotheses::shrink, .candidates = 3}) == "candidates");
  CHECK(refused(BeamSearch{.candidates = -1}) == "candidates");
  for (auto const bad : {-0.5, infinite, not_a_number})
    CHECK(refused(BeamSearch{.sibling_penalty = bad}) == "sibling_penalty");
  for (auto const finished : {FinishedHypotheses::shrink, FinishedHypotheses::stay, FinishedHypotheses::leave_first}) {
    for (auto const rule : {Rule::top_ended, Rule::heuristic, Rule::never_early})
      CHECK(count(finished, rule) == "early_stopping.rule");
    CHECK(count(finished, Rule::exact) == (finished == FinishedHypotheses::stay ? "early_stopping.rule" : ""));
    CHECK(count(finished, Rule::count) == "");
  }
  for (auto const rule : {Rule::count, Rule::top_ended, Rule::exact, Rule::heuristic, Rule::never_early})
    CHECK(count(FinishedHypotheses::set_aside, rule) == "");
  CHECK(refused(BeamSearch{.early_stopping = {.finished = -1}}) == "early_stopping.finished");
  for (auto const bad : {0.0, infinite, not_a_number})
    CHECK(refused(EarlyStopping{.patience = bad}) == "early_stopping.patience");
  CHECK(refused(BeamSearch{.early_stopping = {.patience = -1}}) == "early_stopping.patience");
  CHECK(refused(BeamSearch{.penalty = {.beta = -1}}) == "penalty.beta");
  CHECK(refused(BeamSearch{.length = {.min = -1}}) == "length.min");
  // A threshold on the total does not work with scores that stay in the beam, or with ranks that are not
  // log-probabilities.
  for (Pruning const total : {Pruning{.absolute_threshold = 1}, Pruning{.relative_threshold = 0.5}}) {
    CHECK(refused(BeamSearch{.pruning = total}) == "");
    CHECK(refused(BeamSearch{.pruning = total, .finished = FinishedHypotheses::stay}) == "pruning");
    CHECK(refused(BeamSearch{.pruning = total, .sibling_penalty = 1}) == "pruning");
  }
  CHECK(refused(BeamSearch{.pruning = {.relative_local_threshold = 0.5}, .finished = FinishedHypotheses::stay}) == "");
  CHECK(refused(BeamSearch{.pruning = {.max_per_parent = 0}}) == "pruning.max_per_parent");
}

TEST_CASE("pruning refuses what lies outside the range of a threshold", "[pruning][options]") {
  CHECK(refused(Pruning{}) == "");
  CHECK(refused(Pruning{.absolute_threshold = 0, .below_finished = 0}) == "");
  CHECK(refused(Pruning{.max_per_parent = 1}) == "");
  CHECK(refused(Pruning{.max_per_parent = 0}) == "pruning.max_per_parent");
  for (auto const bad : {-0.5, 1.0, not_a_number}) {
    CHECK(refused(Pruning{.relative_threshold = bad}) == "pruning.relative_threshold");
    CHECK(refused(Pruning{.relative_local_threshold = bad}) == "pruning.relative_local_threshold");
  }
  for (auto const bad : {-0.5, not_a_number}) {
    CHECK(refused(Pruning{.absolute_threshold = bad}) == "pruning.absolute_threshold");
    CHECK(refused(Pruning{.below_finished = bad}) == "pruning.below_finished");
  }
  CHECK_FALSE(Pruning{}.by_total());
  CHECK(Pruning{.absolute_threshold = 2}.margin() == 2);
  CHECK(Pruning{.absolute_threshold = 2, .relative_threshold = std::exp(-1.0)}.margin() == 1);
  CHECK(Pruning{.absolute_threshold = 0.5, .relative_threshold = std::exp(-1.0)}.margin() == 0.5);
}

TEST_CASE("so many must end: as told, or patience times the width, rounded, one at least", "[stop][options]") {
  CHECK(EarlyStopping{}.needed(5) == 5);
  CHECK(EarlyStopping{.finished = 1, .patience = 2}.needed(5) == 1);
  CHECK(EarlyStopping{.patience = 2}.needed(5) == 10);
  CHECK(EarlyStopping{.patience = 0.5}.needed(3) == 2);
  CHECK(EarlyStopping{.patience = 0.1}.needed(4) == 1);
}

TEST_CASE("what a beam search is where nothing is said", "[beam_search][options]") {
  BeamSearch const beam;
  CHECK((beam.width == 5 && beam.slot_count() == 5 && beam.n_best == 1 && beam.candidates == 0 &&
         beam.sibling_penalty == 0));
  CHECK((!beam.surplus && beam.prefix_scored && !beam.guard_prefix && beam.early_stopping.finished == 0));
  BestFirstBeam const best_first;
  CHECK(
      (best_first.width == 5 && best_first.n_best == 1 && best_first.slot_count() == 11 && best_first.candidates == 0));
  CHECK((best_first.prefix_scored && !best_first.guard_prefix));
  DiverseBeamSearch const diverse;
  CHECK((diverse.groups == 2 && diverse.slot_count() == 10 && diverse.n_best == 1 && diverse.penalty == 0.5));
  CHECK(BestFirstBeam{.width = 3, .states = 4}.slot_count() == 4);
}

TEST_CASE("best first and diverse groups refuse what lies outside the range of an option", "[best_first][diverse]") {
  CHECK(refused(BestFirstBeam{.width = 1}) == "");
  CHECK(refused(BestFirstBeam{.width = 0}) == "width");
  CHECK(refused(BestFirstBeam{.width = 2, .n_best = 2, .candidates = 2, .states = 2}) == "");
  CHECK(refused(BestFirstBeam{.width = 2, .n_best = 3}) == "n_best");
  CHECK(refused(BestFirstBeam{.n_best = 0}) == "n_best");
  CHECK(refused(BestFirstBeam{.width = 2, .candidates = 1}) == "candidates");
  CHECK(refused(BestFirstBeam{.states = 1}) == "states");
  CHECK(refused(BestFirstBeam{.states = -1}) == "states");
  CHECK(refused(BestFirstBeam{.length = {.max = -1}}) == "length.max");
  CHECK(refused(BestFirstBeam{.penalty = {.beta = -1}}) == "penalty.beta");
  CHECK(refused(BestFirstBeam{.pruning = {.relative_local_threshold = 0.5}}) == "pruning.relative_local_threshold");
  CHECK(refused(BestFirstBeam{.pruning = {.below_finished = 5}}) == "pruning.below_finished");
  CHECK(refused(BestFirstBeam{.pruning = {.max_per_parent = 0}}) == "pruning.max_per_parent");

  BeamSearch const two{.width = 2, .n_best = 2};
  CHECK(refused(DiverseBeamSearch{.search = two, .groups = 1, .penalty = 0, .n_best = 2}) == "");
  CHECK(refused(DiverseBeamSearch{.search = two, .groups = 0}) == "groups");
  CHECK(refused(DiverseBeamSearch{.search = two, .n_best = 4}) == "");
  CHECK(refused(DiverseBeamSearch{.search = two, .n_best = 5}) == "n_best");
  CHECK(refused(DiverseBeamSearch{.search = two, .n_best = 0}) == "n_best");
  for (auto const bad : {-0.5, infinite, not_a_number})
    CHECK(refused(DiverseBeamSearch{.search = two, .penalty = bad}) == "penalty");
  CHECK(refused(DiverseBeamSearch{.search = {.width = 0}}) == "width");
  CHECK(refused(DiverseBeamSearch{.search = {.width = 2, .n_best = 1}}) == "search.n_best");
}

TEST_CASE("best first stands in for beams whose rules prove the same, and for no others", "[best_first][options]") {
  using Rule = EarlyStopping::Rule;
  auto const refuses = [](BeamSearch const& beam) {
    try {
      BestFirstBeam::as_beam(beam);
    } catch (std::invalid_argument const&) {
      return true;
    }
    return false;
  };
  for (auto const finished : {FinishedHypotheses::shrink, FinishedHypotheses::leave_first})
    CHECK(refuses({.finished = finished, .early_stopping = {.rule = Rule::exact}}));
  CHECK(refuses({.early_stopping = {.rule = Rule::exact}, .sibling_penalty = 1}));
  CHECK(refuses({.width = 0, .early_stopping = {.rule = Rule::exact}}));
  CHECK(refuses({.early_stopping = {.rule = Rule::exact, .patience = 0}}));
  CHECK(refuses({.early_stopping = {.rule = Rule::exact}, .sibling_penalty = -1}));
  // For each rule: with a length penalty, with a word penalty, with neither; for one and for two outputs.
  LengthPenalty const none{.kind = LengthPenalty::Kind::none}, zero{.alpha = 0}, mean{},
      word{.alpha = 0, .word_penalty = 1};
  for (auto const rule : {Rule::count, Rule::top_ended, Rule::exact, Rule::heuristic, Rule::never_early})
    for (auto const& penalty : {none, zero, mean, word})
      for (auto const n_best : {1, 2}) {
        auto const unworded = penalty.word_penalty == 0;
        auto const plain = unworded && (penalty.alpha == 0 || penalty.kind == LengthPenalty::Kind::none);
        auto const proves = rule == Rule::exact || (rule == Rule::top_ended && plain && n_best == 1) ||
                            (rule == Rule::heuristic && plain) || (rule == Rule::never_early && unworded);
        CHECK(refuses({.n_best = n_best, .penalty = penalty, .early_stopping = {.rule = rule}}) == !proves);
      }
}
