// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arithmetic of sampling without replacement: conditioned Gumbel variates, and importance weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/result.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0 {

namespace detail {

/// log(1 - exp(x)) for x <= 0 (Maechler 2012).
inline double log1mexp(double x) {
  return x > -0.6931471805599453 ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

/// -log(exp(-top) - exp(-largest) + exp(-value)) for value <= largest: the Gumbel variate `value`, conditioned on the
/// largest of its siblings being `top` instead of `largest`. Kool et al. 2019, appendix B.
inline double conditioned(double value, double largest, double top) {
  auto const v = top - value + log1mexp(value - largest);
  return top - (std::max)(0.0, v) - std::log1p(std::exp(-std::abs(v)));
}

}  // namespace detail

/// Natural logarithms of the importance weights w_i = p_i / q_i of the first k hypotheses of a stochastic beam, for
/// unbiased estimates: E[sum_i w_i f(y_i)] = E_p[f(y)] (Kool et al. 2019). q_i = P(G_i > threshold) = 1 -
/// exp(-exp(log_prob_i - threshold)). Divided by their sum, they give an estimate with some bias and less variance.
///
/// \param hypotheses  of a beam of width k + 1: the last one's score is the threshold, and it gets no weight. If there
///                    are k or fewer, they are all outputs of the model, and w_i = p_i
/// \returns           [min(k, hypotheses.size())]
template <class = void>
std::vector<double> importance_log_weights(std::span<Hypothesis const> hypotheses, std::size_t k) {
  std::vector<double> weights;
  for (auto const& h : hypotheses.first((std::min)(k, hypotheses.size()))) {
    auto const log_q = hypotheses.size() > k ? detail::log1mexp(-std::exp(h.log_prob - hypotheses[k].score)) : 0.0;
    weights.push_back(h.log_prob - log_q);
  }
  return weights;
}

}  // namespace sluice::inline v0
