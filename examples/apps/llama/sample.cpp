// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/sample.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <llama/run.hpp>
#include <string_view>

namespace generate {

int run_sample(Options const& o, Engine& engine, sluice::Grammar const& grammar) {
  sluice::LengthLimits const length{.min = o.min_length, .max = o.max_length};
  if (o.blockwise())
    return run(o, engine, grammar,
               sluice::Blockwise<sluice::acceptance::Sampling>{.block = o.block,
                                                               .accept = {{.temperature = o.temperature,
                                                                           .top_k = o.top_k,
                                                                           .top_p = o.top_p,
                                                                           .min_p = o.min_p,
                                                                           .typical = o.typical}},
                                                               .length = length,
                                                               .adaptive = o.adaptive,
                                                               .branches = o.branches});
  auto samplers = o.samplers;
  if (samplers.dry.multiplier > 0)
    samplers.dry.breakers =
        sluice::SequenceBreakers::from_text(engine.tokenizer().token_bytes(), o.breakers, [&](std::string_view rest) {
          return engine.tokenizer().tokens(rest, false);
        });
  return run(o, engine, grammar, samplers.sample, samplers.processors());
}

}  // namespace generate
