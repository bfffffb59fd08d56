// SPDX-License-Identifier: Apache-2.0
// A search that takes for granted that log-probabilities only fall is refused under a rule that adds to them.
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/sluice.hpp>

int main() {
#ifndef MUST_FAIL
  using Search = sluice::BeamSearch;
#else
  using Search = sluice::Ruled<sluice::BestFirstBeam, sluice::TokenBias>;
#endif
  sluice::Biased<Search> const search;
  search.check();
}
