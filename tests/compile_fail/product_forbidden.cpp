// SPDX-License-Identifier: Apache-2.0
// So it is where the automaton is a part of a product.
#include <sluice/core/search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>
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
  void forbidden(State, std::vector<sluice::Token>&) const {}
#else
  void forbidden(State, std::vector<sluice::Token>&) {}
#endif
};

int main() {
  sluice::ConstrainedBeamSearch<sluice::Product<sluice::Phrases, Automaton>> const search;
  search.check();
}
