// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/blockwise/blockwise.hpp>
#include <sluice/search/sample/sample.hpp>

#include <llama/run.hpp>

namespace generate {

int run_sample(Options const& o, Engine& engine, sluice::Grammar const& grammar) {
  sluice::LengthLimits const length{.min = o.min_length, .max = o.max_length};
  if (o.blockwise())
    return run(o, engine, grammar,
               sluice::Blockwise<sluice::Sampling>{.block = o.block,
                                                   .accept = {o.temperature, o.top_k, o.top_p, o.min_p, o.typical},
                                                   .length = length});
  return run(o, engine, grammar,
             sluice::Sample{.temperature = o.temperature,
                            .top_k = o.top_k,
                            .top_p = o.top_p,
                            .min_p = o.min_p,
                            .typical = o.typical,
                            .samples = o.n_best,
                            .length = length});
}

}  // namespace generate
