// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/forced_score.hpp>

#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_score(Options const& options, Models& models, sluice::Structure const& structure) {
  sluice::ForcedScore const search{.penalty = {.alpha = options.length_penalty.value_or(1)}};
  return make_workers(options, models, search, structure);
}

}  // namespace translate
