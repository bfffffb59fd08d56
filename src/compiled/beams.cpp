// SPDX-License-Identifier: Apache-2.0
// Greedy search and beams of the compiled library.
#include <sluice/decode/detail/searches_of.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/forced_score.hpp>
#include <sluice/search/greedy.hpp>

#include <memory>

namespace sluice::inline v0::detail {

template std::unique_ptr<AnySearches> make_searches(Greedy);
template std::unique_ptr<AnySearches> make_searches(ForcedScore);
template std::unique_ptr<AnySearches> make_searches(BeamSearch);
template std::unique_ptr<AnySearches> make_searches(DiverseBeamSearch);
template std::unique_ptr<AnySearches> make_searches(BestFirstBeam);
template std::unique_ptr<AnySearches> make_searches(ExactSearch);

}  // namespace sluice::inline v0::detail
