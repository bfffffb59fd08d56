// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam_search.hpp>

#include <translate/beam.hpp>
#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_beam(Options const& options, Models& models, Restrictions const& restrictions) {
  return make_workers(options, models, make_beam_search(options), restrictions.processors);
}

}  // namespace translate
