// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/greedy.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_greedy(Options const& options, Models& models, Restrictions const& restrictions) {
  // Probabilities are needed only if a penalty depends on them or they are printed.
  sluice::Greedy const search{.length = {.min = options.min_length, .max = options.max_length},
                              .scores =
                                  options.repetition_penalty != 1 || !options.trace.empty() || options.confidence};
  return make_workers(options, models, search, restrictions.processors);
}

}  // namespace translate
