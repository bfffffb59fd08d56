// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/language-models.md.
#include <sluice/model/fused.hpp>
#include <sluice/model/projected.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_table.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include "typist.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string spelt(std::string const& word) {  // letters are the words of this language model
  std::string text;
  for (auto const letter : word) text += std::string(text.empty() ? "" : " ") + letter;
  return text;
}

// [train]
sluice::NGramTable train(std::vector<std::string> const& words) {
  sluice::NGramTrainer trainer({.order = 3, .fallback = true});
  for (auto const& word : words) trainer.add(std::string_view(spelt(word)));
  return trainer.build();
}
// [/train]

// [model]
/// The table's words as the tokens of the typist: 0 begins a word, 1 ends it, then come the letters.
sluice::NGramModel<> language_model(sluice::NGramTable const& table, sluice::Vocabulary const& vocabulary) {
  std::vector<sluice::Word> words{-1, -1};
  for (auto letter = 'a'; letter <= 'z'; ++letter) words.push_back(table.find(std::string(1, letter)).value_or(-1));
  return {table, vocabulary, words};
}
// [/model]

void show(std::vector<sluice::Result> const& results) {
  std::cout << std::fixed << std::setprecision(3);
  for (auto const& result : results)
    std::cout << Typist::text(result.hypotheses[0].tokens) << ' ' << result.hypotheses[0].log_prob << '\n';
}

}  // namespace

int main() {
  Typist typist;
  auto keyboard = Typist::keyboard();
  auto const table = train({"tide", "ride", "side", "hide", "ride", "hat", "hot", "hot", "the", "tie", "dear", "read"});
  std::vector<std::string> const words{"hit", "tide"};
  sluice::BeamSearch const beam{.width = 8, .penalty = {.alpha = 0}};

  // [fuse]
  auto letters = language_model(table, typist.vocabulary());
  sluice::Projected scores(typist, keyboard);  // a typist answers hidden vectors
  sluice::Fused fused(scores, letters, {.weight = 1, .word_bonus = 0.2});
  show(sluice::decode(scores, words, beam));
  show(sluice::decode(fused, words, beam));
  // [/fuse]

  // [rescore]
  auto list = beam;
  list.n_best = 8;
  for (auto& result : sluice::decode(scores, words, list)) {
    for (auto& h : result.hypotheses) {
      std::vector<sluice::Word> numbers;
      for (auto const token : h.tokens)
        if (token > 1) numbers.push_back(table.word(std::string(1, static_cast<char>('a' + token - 2))));
      h.score = h.log_prob + table.log_prob(numbers) + 0.2 * static_cast<double>(numbers.size());
    }
    auto const& best = *std::ranges::max_element(result.hypotheses, {}, &sluice::Hypothesis::score);
    std::cout << Typist::text(best.tokens) << ' ' << best.score << '\n';
  }
  // [/rescore]
  return 0;
}
