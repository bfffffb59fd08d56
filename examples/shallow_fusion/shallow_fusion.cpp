// SPDX-License-Identifier: Apache-2.0
// shallow_fusion: n-grams trained from a few sentences of a domain steer a model that was trained on others.
#include <sluice/model/fused.hpp>
#include <sluice/ngram/ngram_model.hpp>
#include <sluice/ngram/ngram_trainer.hpp>

#include "../bigrams.hpp"

#include <iostream>
#include <string_view>

int main() {
  Bigrams model(
      "we met anna . we met anna today . we met peter . we saw anna . anna saw peter today . new york is far . "
      "we saw new shoes .");
  sluice::NGramTrainer trainer({.order = 3, .fallback = true}, model.words());  // token = word
  for (auto const* sentence : {"we saw new york", "peter saw new york", "new york is far", "we saw peter"})
    trainer.add(std::string_view(sentence));
  std::vector<sluice::Word> words(model.words().size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = sluice::Word(i);
  sluice::NGramModel<> domain(trainer.build(), model.vocabulary(), words);

  sluice::BeamSearch const search{.width = 4, .length = {.max = 8}, .penalty = {.alpha = 0}};
  for (auto const weight : {0.0, 0.3, 1.0}) {
    sluice::Fused fused(model, domain, {.weight = weight});
    auto const best = sluice::decode(fused, std::vector<std::monostate>(1), search).at(0).hypotheses.at(0);
    std::cout << weight << ": " << model.text(best.tokens) << "  " << best.score << '\n';
  }
  return 0;
}
