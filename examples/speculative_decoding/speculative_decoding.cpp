// SPDX-License-Identifier: Apache-2.0
// speculative_decoding: a small model guesses tokens, the large one verifies several in a call. The output stays the same.
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>

#include "../bigrams.hpp"

#include <iostream>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

/// A proposer of one's own: behind the first word of a phrase it guesses the others.
struct Phrase {
  std::vector<sluice::Token> words;

  void propose(std::span<sluice::Draft const> drafts) const {
    for (auto const& draft : drafts)  // of each sentence that wants guesses
      if (draft.pending.back() == words.front())
        for (auto const word : std::span(words).subspan(1))
          if (std::ssize(*draft.tokens) < draft.count) draft.tokens->push_back(word);
  }
};

}  // namespace

int main() {
  std::string const all = "the cat sat on my mat and ate its fish while it was raining . ",
                    some = "the cat sat on a mat . ";
  auto const words = Bigrams(all + some).words();  // both models have the same vocabulary
  Bigrams model(all, words), draft(all + some + some, words);
  sluice::Speculated drafted(model, sluice::DraftModel(draft));
  // Proposers are tried in order: the draft guesses where the phrase has no guess.
  sluice::Speculated listed(model, Phrase{model.tokens("my mat and ate its fish")}, sluice::DraftModel(draft));
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
  sluice::Blockwise<> const blocks{.block = 6};  // up to five guesses and a token of the model's own
  run(drafted, blocks);
  run(listed, blocks);
  return 0;
}
