// SPDX-License-Identifier: Apache-2.0
// A search that takes for granted that log-probabilities only fall is refused under a rule that adds to them.
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
