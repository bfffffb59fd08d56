// SPDX-License-Identifier: Apache-2.0
// An optional member of an automaton that has another signature is refused: it would never be called.
#include <sluice/core/search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/sluice.hpp>

struct Automaton {
  using State = int;
  State initial(sluice::Sentence const&) const { return 0; }
  State next(State state, sluice::Token) const { return state; }
  std::int32_t progress(State) const { return 0; }
  std::int32_t total() const { return 0; }
  void wanted(State, std::vector<sluice::Token>&) const {}
  bool complete(State) const { return true; }
  bool dead(State) const { return false; }
#ifndef MUST_FAIL
  std::int32_t remaining(State) const { return 0; }
#else
  std::int32_t remaining() const { return 0; }
#endif
};

int main() {
  sluice::ConstrainedBeamSearch<Automaton> const search;
  search.check();
}
