// SPDX-License-Identifier: Apache-2.0
// continuous_batching: requests join a running batch as soon as others end.
#include "../bigrams.hpp"

#include <iostream>

int main() {
  Bigrams model("one two three four five six seven eight nine ten .");
  std::vector<std::string> const queue{"one", "nine", "eight", "nine", "two", "eight", "nine", "eight"};

  auto const serve = [&](auto const& schedule) {
    sluice::Decoder decoder(model, sluice::Greedy{}, schedule);
    for (auto const& word : queue) decoder.submit({.prompt = {model.token(word)}});  // as well between steps
    sluice::Result result;
    for (int step = 1; decoder.step(); ++step)
      while (decoder.poll(result))
        std::cout << "step " << step << ": " << queue[result.id] << " ... "
                  << model.text(result.hypotheses.front().tokens) << "  (" << decoder.running() << " run, "
                  << decoder.waiting() << " wait)\n";
    std::cout << decoder.statistics().steps << " steps\n\n";
  };
  serve(sluice::Batched{.size = 3});                       // static batches: all wait for the longest
  serve(sluice::Streaming{.size = 3, .refill_below = 1});  // continuous: whoever ends is replaced at once
  return 0;
}
