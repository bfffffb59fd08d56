// SPDX-License-Identifier: Apache-2.0
// n_best: several outputs of a beam search, with the log-probability of each of their tokens.
#include "../bigrams.hpp"

#include <iomanip>
#include <iostream>

int main() {
  Bigrams model("the cat sleeps . the cat sleeps . the cat eats . the cat eats fish . a dog sleeps . a dog barks . "
                "a dog eats fish . the dog barks .");
  sluice::BeamSearch const search{.width = 8, .n_best = 3, .length = {.max = 10}};
  auto const result = sluice::decode(model, std::vector<std::monostate>(1), search)[0];

  std::cout << std::fixed << std::setprecision(2);
  for (auto const& hypothesis : result.hypotheses) {  // best first
    std::cout << hypothesis.score << ':';             // of the whole, after the length penalty
    for (std::size_t i = 0; i < hypothesis.tokens.size(); ++i)
      std::cout << "  " << model.text({&hypothesis.tokens[i], 1}) << ' ' << hypothesis.log_probs[i];
    std::cout << '\n';
  }
  return 0;
}
