// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/best_first_beam.hpp>

#include <translate/beam.hpp>
#include <translate/workers.hpp>

namespace translate {

std::unique_ptr<Decoders> make_best_first(Options const& options, Models& models, Restrictions const& restrictions) {
  auto beam = make_beam_search(options);
  if (!options.preset)
    beam.early_stopping.rule = sluice::EarlyStopping::Rule::exact;  // else the preset's own, if it proves anything
  return make_workers(options, models, sluice::BestFirstBeam::as_beam(beam), restrictions.processors);
}

}  // namespace translate
