// SPDX-License-Identifier: Apache-2.0
#include <sluice/result/minimum_bayes_risk.hpp>

#include <bleu/bleu.hpp>
#include <bleu/chrf.hpp>
#include <translate/mbr.hpp>

namespace translate {

sluice::Hypothesis const& least_risk(Options const& options, std::span<sluice::Hypothesis const> hypotheses,
                                     std::function<std::string(sluice::Hypothesis const&)> const& text,
                                     std::function<void()> const& between) {
  using Weights = sluice::BayesRiskOptions::Weights;
  sluice::BayesRiskOptions const weights{.weights = options.search == SearchName::sample ? Weights::uniform
                                                                                         : Weights::probability};
  auto const choose = [&]<class Ngrams>(double (*utility)(Ngrams const&, Ngrams const&)) {
    auto const ngrams = [&](sluice::Hypothesis const& hypothesis) { return Ngrams(text(hypothesis)); };
    auto const compare = [&](Ngrams const& candidate, Ngrams const& reference) {
      between();
      return utility(candidate, reference);
    };
    return sluice::minimum_bayes_risk(hypotheses, compare, weights, ngrams).best;
  };
  auto const best = options.mbr == UtilityName::bleu
                        ? choose(&bleu::sentence_bleu)
                        : choose.operator()<chrf::Ngrams>(&chrf::sentence_chrf);  // which has an overload for texts
  return hypotheses[best];
}

}  // namespace translate
