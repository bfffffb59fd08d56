// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/confidence.md.
#include <sluice/result/minimum_bayes_risk.hpp>
#include <sluice/search/sample.hpp>

#include "typist.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

using sluice::decode;

void choices(Typist& model, sluice::DenseProjection const& keyboard) {
  // [choices]
  using Request = sluice::Request<std::string, sluice::BeamSearch>;
  std::vector<Request> const requests{{.source = "ice", .confidence = {.entropy = true, .alternatives = 3}}};
  auto const best = decode(model, requests, sluice::BeamSearch{}, {}, keyboard)[0].hypotheses[0];
  for (std::size_t i = 0; i < best.tokens.size(); ++i) {
    auto const& choice = best.choices[i];
    std::cout << Typist::text({&best.tokens[i], 1}) << ": entropy " << choice.entropy << ", rank " << choice.rank
              << ", of";
    for (auto const& [token, log_prob] : choice.alternatives)
      std::cout << ' ' << Typist::text({&token, 1}) << ' ' << std::exp(log_prob);
    std::cout << '\n';
  }
  // [/choices]
}

void meanings(Typist& model, sluice::DenseProjection const& keyboard) {
  // [meanings]
  std::vector<std::string> const sources{"ice"};
  auto const samples = decode(model, sources, sluice::Sample{.samples = 200}, {}, keyboard)[0].hypotheses;
  // Words with a common beginning count as having the same meaning.
  auto const same = [](sluice::Hypothesis const& a, sluice::Hypothesis const& b) {
    return a.tokens.front() == b.tokens.front();
  };
  auto const groups = sluice::semantic_groups(samples, same);
  auto const entropy = sluice::semantic_entropy(samples, groups);
  std::cout << 1 + *std::max_element(groups.begin(), groups.end()) << " meanings, entropy " << entropy.weighted
            << ", by counts " << entropy.discrete << '\n';
  // [/meanings]
}

}  // namespace

/// Runs both; prints the one that is named, or both.
int main(int argc, char** argv) {
  std::cout << std::fixed << std::setprecision(2);
  std::string const only = argc > 1 ? argv[1] : "";
  Typist model;
  auto const keyboard = Typist::keyboard();
  if (only.empty() || only == "choices") choices(model, keyboard);
  if (only.empty() || only == "meanings") meanings(model, keyboard);
  return 0;
}
