// SPDX-License-Identifier: Apache-2.0
// Constrained searches of the compiled library.
#include <sluice/catalogue/catalogue_beam.hpp>
#include <sluice/decode/detail/searches_of.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include <memory>

namespace sluice::inline v0::detail {

template std::unique_ptr<AnySearches> make_searches(ConstrainedBeamSearch<Constraints>);
template std::unique_ptr<AnySearches> make_searches(CatalogueBeam);

}  // namespace sluice::inline v0::detail
