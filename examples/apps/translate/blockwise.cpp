// SPDX-License-Identifier: Apache-2.0
#include <sluice/speculative/blockwise.hpp>

#include <translate/workers.hpp>

namespace translate {

namespace {

template <sluice::Acceptance A>
std::unique_ptr<Decoders> make_accepting(A const& accept, Options const& options, Models& models,
                                         Restrictions const& restrictions) {
  sluice::Blockwise<A> const search{.block = options.block,
                                    .accept = accept,
                                    .minimum = options.minimum,
                                    .length = {.min = options.min_length, .max = options.max_length},
                                    .adaptive = options.adaptive,
                                    .branches = options.branches,
                                    .nodes = options.tree_nodes};
  return make_workers(options, models, search, restrictions.processors);
}

}  // namespace

std::unique_ptr<Decoders> make_blockwise(Options const& options, Models& models, Restrictions const& restrictions) {
  if (options.accept_top)
    return make_accepting(sluice::acceptance::TopK{*options.accept_top}, options, models, restrictions);
  // As greedy: probabilities are needed only if a penalty depends on them or they are printed.
  sluice::acceptance::Exact const exact{.scores = options.repetition_penalty != 1 || !options.trace.empty() ||
                                                  options.confidence};
  return make_accepting(exact, options, models, restrictions);
}

}  // namespace translate
