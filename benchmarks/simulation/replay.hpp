// SPDX-License-Identifier: Apache-2.0
/// \file
/// A search that follows its sentence's script.
#pragma once

#include <sluice/core/plan.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include "script.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace simulation {

/// Plans the rows of the script whose index is the request's seed, and ends after the script's number of steps. The
/// result has one hypothesis, which is empty.
struct Replay {
  Scripts const* scripts = nullptr;
  std::int32_t width = 1;  ///< the widest script's

  struct State {
    Script const* script = nullptr;
    std::int32_t step = 0;
    std::int32_t before = 1;  // rows of the previous step
    std::int32_t rows = 1;
  };

  std::int32_t slot_count() const { return width; }

  void begin(State& s, sluice::Sentence const& sentence) const {
    s.script = &scripts->all[static_cast<std::size_t>(sentence.seed)];
    s.step = 0, s.before = 1, s.rows = scripts->rows(*s.script, 0, 1);
  }
  void plan(State& s, sluice::Plan& plan) const {
    static constexpr std::array<sluice::Token, 1> token{0};
    for (std::int32_t i = 0; i < s.rows; ++i) {
      plan.row(i < s.before ? i : 0, i, s.step, token);
      plan.ask({.best = 0, .normalise = false});
    }
  }
  bool advance(State& s, sluice::Expansion const&) const {
    if (++s.step >= s.script->output) return true;
    s.before = s.rows, s.rows = scripts->rows(*s.script, s.step, s.rows);
    return false;
  }
  sluice::Progress progress(State const& s) const { return {s.step, s.rows, s.rows}; }
  void finish(State const&, sluice::Result& result) const { result.hypotheses.assign(1, {}); }
};

}  // namespace simulation
