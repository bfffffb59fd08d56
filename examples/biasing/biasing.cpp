// SPDX-License-Identifier: Apache-2.0
// biasing: names that the model hardly knows, made likelier where they fit, without forcing them.
#include <sluice/processor/hotwords.hpp>

#include "../bigrams.hpp"

#include <iostream>

int main() {
  Bigrams model("we met anna . we met anna today . we met peter . we saw anna . anna met peter . new york is far . "
                "we saw new shoes .",
                {".", "jork"});
  auto const phrase = [&](std::string const& text) { return sluice::BiasedPhrase{.spellings = {model.tokens(text)}}; };
  auto const hear = [&](std::vector<sluice::BiasedPhrase> const& phrases) {
    return sluice::Bias(phrases, {.per_token = 3});
  };

  sluice::BeamSearch const search{.width = 4, .length = {.max = 8}, .penalty = {.alpha = 0}};
  std::vector<sluice::Request<std::monostate, sluice::BeamSearch>> requests;
  requests.push_back({.processors = hear({})});
  requests.push_back({.processors = hear({phrase("saw new york")})});
  requests.push_back({.processors = hear({phrase("met peter"), phrase("peter")})});
  requests.push_back({.processors = hear({phrase("saw jork far")})});  // fits nowhere: what was lent is taken back
  for (auto const& result : sluice::decode(model, requests, search)) {
    auto const& best = result.hypotheses.at(0);
    std::cout << model.text(best.tokens) << "  " << best.score << '\n';
  }
  return 0;
}
