// SPDX-License-Identifier: Apache-2.0
#include <sluice/search/constrained_beam_search.hpp>

#include <translate/beam.hpp>
#include <translate/whole_words.hpp>
#include <translate/workers.hpp>

#include <optional>

namespace translate {

namespace {

using Constrained = sluice::ConstrainedBeamSearch<WholeWords>;

/// Gives every sentence a search of its own, with its constraints.
struct OwnSearch {
  std::optional<std::int32_t> grid_base;
  double prune_finished;

  Constrained around(sluice::BeamSearch const& beam, WholeWords constraints) const {
    auto search = grid_base ? sluice::grid_beam_search(*grid_base, std::move(constraints), beam)
                            : Constrained{.beam = beam, .constraints = std::move(constraints)};
    search.prune_finished = prune_finished;
    return search;
  }
  template <class S>
  std::optional<S> operator()(S const& shared, Sentence const& sentence) const {
    return around(shared.beam, sentence.constraints);
  }
};

}  // namespace

std::unique_ptr<Decoders> make_constrained(Options const& options, Models& models, Restrictions const& restrictions) {
  OwnSearch const own{options.grid_base, options.prune_finished};
  auto const search = own.around(make_beam_search(options), {});
  return make_workers(options, models, search, restrictions.processors, own);
}

}  // namespace translate
