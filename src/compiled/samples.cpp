// SPDX-License-Identifier: Apache-2.0
// Searches of the compiled library that draw, and blockwise decoding.
#include <sluice/decode/detail/searches_of.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <memory>

namespace sluice::inline v0::detail {

template std::unique_ptr<AnySearches> make_searches(Sample);
template std::unique_ptr<AnySearches> make_searches(StochasticBeam);
template std::unique_ptr<AnySearches> make_searches(Blockwise<acceptance::Exact>);

}  // namespace sluice::inline v0::detail
