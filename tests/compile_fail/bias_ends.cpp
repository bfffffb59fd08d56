// SPDX-License-Identifier: Apache-2.0
// A rule that takes back at the end what it lent does not see ends that a rule within makes.
#include <sluice/processor/hotwords.hpp>
#include <sluice/processor/phrase.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/processor/stop_sequences.hpp>
#include <sluice/sluice.hpp>

int main() {
#ifndef MUST_FAIL
  using Search = sluice::Ruled<sluice::Greedy, sluice::Forbidden>;
#else
  using Search = sluice::Ruled<sluice::Ruled<sluice::Greedy, sluice::StopSequences>, sluice::Forbidden>;
#endif
  sluice::Biased<Search> const search;
  search.check();
}
