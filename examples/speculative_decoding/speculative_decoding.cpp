// SPDX-License-Identifier: Apache-2.0
// speculative_decoding: a small model guesses tokens, the large one verifies several in a call. The output stays the same.
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include "../bigrams.hpp"

#include <iostream>

int main() {
  std::string const all = "the cat sat on my mat and ate its fish while it was raining . ",
                    some = "the cat sat on a mat . ";
  auto const words = Bigrams(all + some).words();  // both models have the same vocabulary
  Bigrams model(all, words), draft(all + some + some, words);
  sluice::WithDraft guessing(model, draft);
  auto const sources = std::vector<std::monostate>(1);

  auto const run = [&](auto& from, auto const& search) {
    sluice::Result result;
    auto const statistics = sluice::decode_each(from, sources, search, [&](sluice::Result&& one) { result = one; });
    auto const& best = result.hypotheses.front();
    std::cout << model.text(best.tokens) << "  (" << statistics.model_calls << " calls";
    for (auto const block : best.blocks) std::cout << ", " << block;
    std::cout << ")\n";
  };
  run(model, sluice::Greedy{});
  run(guessing, sluice::Blockwise<>{.block = 5});  // up to four guesses and a token of the model's own
  return 0;
}
