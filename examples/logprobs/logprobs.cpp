// SPDX-License-Identifier: Apache-2.0
// logprobs: how sure the model was of each token, and what else it considered.
#include "../bigrams.hpp"

#include <cmath>
#include <iomanip>
#include <iostream>

int main() {
  Bigrams model("the cat sleeps . the cat sleeps . the cat eats . the cat eats fish . a dog sleeps . a dog barks . "
                "a dog eats fish . the dog barks .");
  using Request = sluice::Request<std::monostate, sluice::Greedy>;
  std::vector<Request> const requests{
      {.confidence = {.entropy = true, .alternatives = 3}}};  // OpenAI's top_logprobs = 3
  auto const result = sluice::decode(model, requests, sluice::Greedy{.length = {.max = 10}})[0];

  std::cout << std::fixed << std::setprecision(2);
  auto const& best = result.hypotheses.front();
  for (std::size_t i = 0; i < best.tokens.size(); ++i) {
    std::cout << std::setw(6) << model.text({&best.tokens[i], 1}) << "  logprob " << best.log_probs[i] << ", entropy "
              << best.choices[i].entropy << ", of";
    for (auto const& [token, log_prob] : best.choices[i].alternatives)
      std::cout << "  " << model.text({&token, 1}) << ' ' << std::exp(log_prob);
    std::cout << '\n';
  }
  return 0;
}
