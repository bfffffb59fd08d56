// SPDX-License-Identifier: Apache-2.0
// prefix_caching: what prompts have in common is fed once, also in the next turn of a conversation.
#include "../bigrams.hpp"

#include <cstdint>
#include <iostream>

int main() {
  Bigrams model(
      "You are a helpful shop . Be brief and polite and never lie . User: have you tea Assistant: yes User: have you "
      "milk Assistant: yes .");
  auto const system = model.tokens("You are a helpful shop . Be brief and polite and never lie .");

  sluice::Decoder decoder(model, sluice::Greedy{.length = {.max = 3}}, sluice::Streaming{.size = 4, .refill_below = 1},
                          sluice::Intake{.prompt_chunk = 8, .shared_tokens = 1000});
  std::uint64_t fed = 0, shared = 0;
  auto const ask = [&](std::vector<sluice::Token> prompt) {
    decoder.submit({.prompt = prompt});
    sluice::Result result;
    while (decoder.step()) continue;
    decoder.poll(result);
    auto const& statistics = decoder.statistics();
    std::cout << prompt.size() << " tokens of prompt: " << statistics.fed - fed << " fed, "
              << statistics.shared - shared << " shared; " << model.text(result.hypotheses.front().tokens) << '\n';
    fed = statistics.fed, shared = statistics.shared;
    prompt.insert(prompt.end(), result.hypotheses.front().tokens.begin(), result.hypotheses.front().tokens.end());
    return prompt;
  };
  auto const with = [&](std::vector<sluice::Token> prompt, std::string const& words) {
    for (auto const token : model.tokens(words)) prompt.push_back(token);
    return prompt;
  };
  auto const one = ask(with(system, "User: have you tea Assistant:"));
  ask(with(system, "User: have you milk Assistant:"));  // another user, the same instructions
  ask(with(one, "User: have you milk Assistant:"));     // the first one again
  return 0;
}
