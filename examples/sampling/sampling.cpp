// SPDX-License-Identifier: Apache-2.0
// sampling: temperature, top-k, top-p, a seed; requests with settings of their own in one batch.
#include "../bigrams.hpp"

#include <iostream>

int main() {
  Bigrams model("the cat sleeps . the cat sleeps . the cat eats . the cat eats fish . a dog sleeps . a dog barks . "
                "a dog eats fish . the dog barks .");
  sluice::Sample const calm{.temperature = 0.5f, .top_k = 3, .length = {.max = 10}};
  sluice::Sample const wild{.temperature = 1.5f, .top_p = 0.9f, .samples = 3, .length = {.max = 10}};

  std::vector<sluice::Request<std::monostate, sluice::Sample>> requests;
  requests.push_back({.search = calm, .seed = 7});
  requests.push_back({.search = calm, .seed = 7});  // the same seed, the same sample, whatever else is in the batch
  requests.push_back({.search = wild, .seed = 8});  // three samples
  for (auto const& result : sluice::decode(model, requests, sluice::Sample{}))
    for (auto const& sample : result.hypotheses)
      std::cout << "request " << result.id << ": " << model.text(sample.tokens) << "  (logprob " << sample.log_prob
                << ")\n";
  return 0;
}
