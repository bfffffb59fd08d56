// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <llama/run.hpp>

namespace generate {

int run_greedy(Options const& o, Engine& engine, sluice::Grammar const& grammar) {
  sluice::LengthLimits const length{.min = o.min_length, .max = o.max_length};
  if (o.blockwise())
    return run(o, engine, grammar,
               sluice::Blockwise<>{.block = o.block, .length = length, .adaptive = o.adaptive, .branches = o.branches});
  return run(o, engine, grammar, sluice::Greedy{.length = length});
}

}  // namespace generate
