// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random constrained searches, and checks of their results.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>

#include <support/catch.hpp>
#include <support/decoding.hpp>
#include <support/naive_constraints.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

inline LengthPenalty random_penalty(std::mt19937_64& random) {
  LengthPenalty penalty;
  auto const part = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  penalty.kind = static_cast<LengthPenalty::Kind>(random() % 3);
  penalty.alpha = random() % 3 == 0 ? 1 : 2 * part() - 0.5;
  penalty.beta = 6 * part();
  if (random() % 4 == 0) penalty.word_penalty = part() - 0.5;
  return penalty;
}

/// A random beam search that passes check().
inline BeamSearch random_beam(std::mt19937_64& random, std::int32_t widest, std::int32_t longest = 12) {
  for (;;) {
    BeamSearch search{.width = between(random, 1, widest)};
    search.n_best = between(random, 1, search.width);
    search.length.max = between(random, 1, longest);
    search.length.min = random() % 3 == 0 ? between(random, 0, 3) : 0;
    search.penalty = random_penalty(random);
    search.finished = static_cast<FinishedHypotheses>(random() % 4);
    search.early_stopping.rule =
        random() % 2 == 0 ? EarlyStopping::Rule::count : static_cast<EarlyStopping::Rule>(random() % 5);
    if (random() % 4 == 0) search.early_stopping.finished = between(random, 1, 9);
    if (random() % 4 == 0) search.early_stopping.patience = 0.3 + between(random, 0, 19) / 10.0;
    search.at_maximum = static_cast<AtMaximum>(random() % 5);
    search.surplus = random() % 2 == 0;
    search.prefix_scored = random() % 4 != 0;
    if (random() % 4 == 0) search.candidates = search.width + between(random, 0, 8);
    if (random() % 3 == 0) search.stage = Stage::before_softmax;
    if (random() % 4 == 0) search.pruning.absolute_threshold = between(random, 0, 49) / 10.0;
    if (random() % 6 == 0) search.pruning.relative_threshold = 0.02;
    if (random() % 6 == 0) search.pruning.relative_local_threshold = 0.05;
    if (random() % 4 == 0) search.pruning.max_per_parent = between(random, 1, 4);
    if (random() % 6 == 0) search.guard_prefix = true;
    try {
      search.check();
      return search;
    } catch (std::invalid_argument const&) {
    }
  }
}

/// A search that exposes its state before and after each answer.
template <class S>
struct Spy {
  S search{};
  std::function<void(typename S::State& before, typename S::State const& after, Expansion const& answer)> look{};

  struct State {
    typename S::State inner, before;
  };
  std::int32_t slot_count() const { return search.slot_count(); }
  void begin(State& s, Sentence const& sentence) const { search.begin(s.inner, sentence); }
  void plan(State& s, Plan& plan) const { search.plan(s.inner, plan); }
  bool advance(State& s, Expansion const& answer) const {
    s.before = s.inner;
    auto const over = search.advance(s.inner, answer);
    look(s.before, s.inner, answer);
    return over;
  }
  Progress progress(State const& s) const { return search.progress(s.inner); }
  void finish(State const& s, Result& result) const { search.finish(s.inner, result); }
};

inline std::string text(BeamSearch const& s) {
  return "width " + std::to_string(s.width) + ", n_best " + std::to_string(s.n_best) + ", length " +
         std::to_string(s.length.min) + " to " + std::to_string(s.length.max) + ", finished " +
         std::to_string(static_cast<int>(s.finished)) + ", at maximum " +
         std::to_string(static_cast<int>(s.at_maximum)) + ", stop " +
         std::to_string(static_cast<int>(s.early_stopping.rule)) + " " + std::to_string(s.early_stopping.finished) +
         ", candidates " + std::to_string(s.candidates) + ", pruning " + std::to_string(s.pruning.absolute_threshold) +
         " " + std::to_string(s.pruning.relative_threshold) + " " + std::to_string(s.pruning.relative_local_threshold) +
         " " + std::to_string(s.pruning.max_per_parent);
}
inline std::string text(ConstrainedBeamSearch<> const& s) {
  return text(s.beam) + ", banks " + std::to_string(static_cast<int>(s.banks)) + ", replace " +
         std::to_string(s.replace_impossible) + ", " + text(s.constraints.lists());
}

/// Checks that complete hypotheses come first and are complete, and that incomplete ones are listed only where allowed.
inline void check_constraints(Result const& result, PhraseLists const& lists, bool list_incomplete = false) {
  REQUIRE(result.ok());
  auto incomplete = false;
  for (std::size_t i = 0; i < result.hypotheses.size(); ++i) {
    auto const& h = result.hypotheses[i];
    INFO("hypothesis " << i << ": " << text(h.tokens));
    CHECK(h.constraints_met == naive_met(lists, h.tokens));
    CHECK(h.constraints_total == naive_count(lists));
    if (h.constraints_met == h.constraints_total) {
      CHECK_FALSE(incomplete);
    } else {
      incomplete = true;
      CHECK_FALSE(h.finished);
      if (!list_incomplete) CHECK(result.hypotheses.size() == 1);
    }
  }
}

}  // namespace sluice::test
