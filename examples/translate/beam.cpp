// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/beam/beam_search.hpp>

#include <translate/beam.hpp>
#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_beam(Options const& options, Models& models, Masks const& masks) {
  return make_workers(options, models, sluice::Ruled<sluice::BeamSearch, Masks>{make_beam_search(options), masks});
}

}  // namespace translate
