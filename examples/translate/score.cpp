// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/greedy/forced_score.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_score(Options const& options, Models& models) {
  return make_workers(options, models, sluice::ForcedScore{.penalty = {.alpha = options.length_penalty.value_or(1)}});
}

}  // namespace translate
