// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/biasing.md.
#include <sluice/processor/hotwords.hpp>

#include "typist.hpp"

#include <iomanip>
#include <iostream>
#include <vector>

namespace {

using sluice::Bias;

void show(std::vector<sluice::Result> const& results) {
  std::cout << std::fixed << std::setprecision(3);
  for (auto const& result : results)
    std::cout << Typist::text(result.hypotheses[0].tokens) << ' ' << result.hypotheses[0].log_prob << '\n';
}

}  // namespace

int main() {
  Typist model;
  auto const keyboard = Typist::keyboard();
  std::vector<std::string> const words{"hit", "tide"};
  sluice::BeamSearch const beam{.width = 8, .penalty = {.alpha = 0}};

  // [bias]
  auto const tokens = [](std::string const& text) { return Typist::tokens(text); };
  Bias const bias({{.spellings = {tokens("hot"), tokens("hut")}},               // one phrase, spelt in two ways
                   {.spellings = {tokens("ride")}, .whole = 4},                 // all of it, spread over its tokens
                   {.spellings = {tokens("de")}, .token_boosts = {0, -0.5f}}},  // rather not
                  {.per_token = 1.5f});
  // [/bias]

  // [use]
  show(sluice::decode(model, words, beam, {}, keyboard));
  show(sluice::decode(model, words, beam, bias, sluice::Batched{}, keyboard));
  // [/use]
  return 0;
}
