// SPDX-License-Identifier: Apache-2.0
// A search that takes for granted that log-probabilities only fall is refused under a rule that adds to scores.
#include <sluice/processor/logits_processor.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/sluice.hpp>

int main() {
#ifndef MUST_FAIL
  using Search = sluice::BeamSearch;
#else
  using Search = sluice::BestFirstBeam;
#endif
  sluice::Ruled<Search, sluice::Rules<sluice::TokenBias, sluice::GreenList>> const search;
  search.check();
}
