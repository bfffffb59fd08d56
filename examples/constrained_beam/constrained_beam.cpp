// SPDX-License-Identifier: Apache-2.0
// constrained_beam: phrases that an output must hold, or must not.
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/constraints.hpp>

#include "../bigrams.hpp"

#include <iostream>

int main() {
  Bigrams model("we ran far . we ran far today . we ran ten miles . we drove far . we drove ten miles today .");
  using Search = sluice::ConstrainedBeamSearch<>;
  auto const must = [](sluice::PhraseLists lists) {
    return Search{.beam = {.width = 10, .length = {.max = 8}, .penalty = {.alpha = 0}},
                  .constraints = sluice::Constraints(std::move(lists))};
  };
  auto const ran = model.tokens("ran"), today = model.tokens("today"), ten_miles = model.tokens("ten miles");

  std::vector<sluice::Request<std::monostate, Search>> requests;
  requests.push_back({.search = must({})});                                            // none: a beam search
  requests.push_back({.search = must({.all = {ten_miles, ran}})});                     // both, in any order
  requests.push_back({.search = must({.ordered = {ran, today}})});                     // in this order
  requests.push_back({.search = must({.any = {{ten_miles, today}}, .none = {ran}})});  // one of two, and never "ran"
  for (auto const& result : sluice::decode(model, requests, Search{})) {
    auto const& best = result.hypotheses.front();
    std::cout << model.text(best.tokens) << "  (" << best.constraints_met << " of " << best.constraints_total << ")\n";
  }
  return 0;
}
