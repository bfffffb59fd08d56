// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sampling without replacement, and its arithmetic: conditioned Gumbel variates, and importance weights.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/detail/placement.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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
SLUICE_LAZY std::vector<double> importance_log_weights(std::span<Hypothesis const> hypotheses, std::size_t k) {
  std::vector<double> weights;
  for (auto const& h : hypotheses.first((std::min)(k, hypotheses.size()))) {
    auto const log_q = hypotheses.size() > k ? detail::log1mexp(-std::exp(h.log_prob - hypotheses[k].score)) : 0.0;
    weights.push_back(h.log_prob - log_q);
  }
  return weights;
}

/// Draws `width` different outputs. The first is drawn from the model; each further one as if the earlier ones were
/// impossible (Kool, van Hoof and Welling 2019, "Stochastic Beams and Where to Find Them").
///
/// Every output y has a perturbed log-probability G(y) = log p(y) + a Gumbel variate of its own; the outputs with the k
/// largest are the sample. They are found top-down, since the largest G among the completions of a partial output S
/// with log_prob f(S) is itself distributed as f(S) + Gumbel. The children's values are drawn, then shifted so that
/// their maximum equals the parent's value,
///
///     G~(S') = -log(exp(-G(S)) - exp(-Z) + exp(-G(S'))),   Z = max over the children S' of G(S')
///
/// computed as in the paper's appendix B. A beam ranked by G~ never loses one of the k largest.
///
/// Hypotheses are sorted by G, which is their `score`; log_prob is that of the model at this temperature. The noise
/// depends on the sentence's seed and a hypothesis's own tokens, not on rank or slot: the same seed gives the same
/// sample in any batch, and a narrower beam gives the first hypotheses of a wider one. Tokens never generated, and eos
/// while the output is too short, are forbidden before the softmax: the distribution is that of the restricted model.
/// An output cut at the maximum length is an outcome like any other, and not `finished`. A forced prefix counts in
/// log_prob and score.
///
/// Averages over the sample need weights, and the weights need a threshold: the (k + 1)-th largest G. Search with width
/// k + 1 and call importance_log_weights(hypotheses, k).
///
/// A step costs what a BeamSearch step costs, plus the noise: a hash for each of `width` times V tokens.
struct StochasticBeam {
  std::int32_t width = 5;  ///< outputs drawn; fewer if the model has fewer; >= 1
  float temperature = 1;   ///< the model's scores are divided by it; > 0; larger: more diverse
  LengthLimits length{};

  struct State : detail::OutputLimits {
    struct Entry {
      double log_prob = 0, value = 0;  // value: perturbed
      std::uint64_t key = 0;           // for the noise of its children
      History::Node node = History::root;
      Token token = 0;           // the last token; to be fed
      Slot from = 0, slot = -1;  // the parent's slot, and its own
      bool ended = false, finished = false;
    };
    struct Pick {
      double value, log_prob;
      std::int32_t parent, order;
      Candidate last;
      bool carried;  // ended in an earlier step
    };
    History history;
    detail::Buffer<Entry> beam, next;  // best first
    detail::Buffer<Pick> picks;
    std::vector<std::int32_t> holder;  // [slot] -> rank, -1 = none
    std::vector<std::int32_t> line;    // [rank] -> line of the answer
    std::vector<History::Node> nodes;  // of settled()
    std::vector<Slot> unused;          // to be released
    std::int32_t held = 0;             // tokens in the slots
    std::int32_t generated = 0;        // tokens, prefix included
    bool first = true;                 // no answer yet
  };

  SLUICE_LAZY void check() const {
    detail::require_slots("width", width);
    require(temperature > 0 && std::isfinite(temperature), "temperature", temperature, "must be a number > 0");
    length.check();
  }
  std::int32_t slot_count() const { return width; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const;
  SLUICE_LAZY void plan(State& s, Plan& plan) const;
  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const;
  Progress progress(State const& s) const { return {s.held, static_cast<std::int32_t>(s.beam.size())}; }
  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const;
  SLUICE_LAZY void finish(State const& s, Result& result) const;

 private:
  SLUICE_LAZY Query query(State const& s, std::uint64_t key) const;
  SLUICE_LAZY void collect(State& s, std::int32_t rank, Line const& line) const;
  SLUICE_LAZY void extend(State& s, State::Pick const& pick) const;
  /// The noise key of a child, after `token`. It must differ from derive(key, token), the token's own random number.
  SLUICE_LAZY static std::uint64_t child(std::uint64_t key, Token token) {
    return derive(~key, static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)));
  }
};

template <class Void>
void StochasticBeam::begin(State& s, Sentence const& sentence) const {
  s.begin(sentence, length);
  s.history.clear(s.prefix.size());
  auto key = derive(sentence.seed, 0);
  for (auto const token : sentence.prefix) key = child(key, token);
  // The root's value: the largest G of all outputs. Any noise not used elsewhere will do.
  s.beam.assign(1, {.value = gumbel(derive(sentence.seed, 1), 0), .key = key, .token = sentence.last, .slot = 0});
  s.unused.clear();
  s.holder.assign(static_cast<std::size_t>(width), -1), s.holder[0] = 0;
  s.held = sentence.held, s.first = true;
  s.generated = s.prefix.size();
}

/// Conditioning does not change the order of values: the list that the expander makes with noise is enough.
template <class Void>
Query StochasticBeam::query(State const& s, std::uint64_t key) const {
  return {.best = width, .edits = s.edits(s.generated), .temperature = temperature, .noise = key};
}

template <class Void>
void StochasticBeam::plan(State& s, Plan& plan) const {
  for (auto const slot : s.unused) plan.release(slot);
  if (s.bounds.max == 0) return;
  s.line.resize(s.beam.size());
  std::int32_t lines = 0;
  for (auto const rank : s.holder) {
    if (rank < 0) continue;
    auto const& entry = s.beam[static_cast<std::size_t>(rank)];
    s.line[static_cast<std::size_t>(rank)] = lines++;
    plan.row(entry.from, entry.slot, s.held, {&entry.token, 1});
    plan.ask(query(s, entry.key));
  }
}

template <class Void>
bool StochasticBeam::advance(State& s, Expansion const& answer) const {
  if (s.bounds.max == 0) return true;
  ++s.held;
  if (s.first) {
    auto& root = s.beam[0];
    root.log_prob = s.prefix.ranked(), root.value += root.log_prob;
    s.first = false;
  }
  s.picks.clear();
  for (std::size_t r = 0; r < s.beam.size(); ++r) {
    auto const& entry = s.beam[r];
    auto const rank = static_cast<std::int32_t>(r);
    auto const order = static_cast<std::int32_t>(s.picks.size());
    if (entry.ended) s.picks.push_back({entry.value, entry.log_prob, rank, order, {}, true});
    else collect(s, rank, answer[static_cast<std::size_t>(s.line[r])]);
  }
  auto const count = (std::min)(s.picks.size(), static_cast<std::size_t>(width));
  auto* const end = s.picks.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(s.picks.begin(), end, s.picks.end(), [](auto const& a, auto const& b) {
    return a.value != b.value ? a.value > b.value : a.order < b.order;
  });
  s.picks.erase(end, s.picks.end());
  ++s.generated;
  s.next.clear();
  for (auto const& pick : s.picks) extend(s, pick);
  detail::place(std::span(s.next), s.holder, s.unused);
  s.beam.swap(s.next);
  return std::all_of(s.beam.begin(), s.beam.end(), [](auto const& entry) { return entry.ended; });
}

/// The children of one hypothesis that may be among the best.
template <class Void>
void StochasticBeam::collect(State& s, std::int32_t rank, Line const& line) const {
  auto const& parent = s.beam[static_cast<std::size_t>(rank)];
  auto const first = s.picks.size();
  auto largest = -std::numeric_limits<double>::infinity();
  for (auto const c : line.best) {
    auto const log_prob = parent.log_prob + static_cast<double>(c.log_prob);
    auto const value = log_prob + gumbel(parent.key, c.token);
    largest = (std::max)(largest, value);
    s.picks.push_back({value, log_prob, rank, static_cast<std::int32_t>(s.picks.size()), c, false});
  }
  for (auto i = first; i < s.picks.size(); ++i)
    s.picks[i].value = detail::conditioned(s.picks[i].value, largest, parent.value);
}

template <class Void>
void StochasticBeam::extend(State& s, State::Pick const& pick) const {
  auto const& parent = s.beam[static_cast<std::size_t>(pick.parent)];
  if (pick.carried) {
    s.next.push_back(parent);  // it holds no slot
    return;
  }
  auto const full = s.generated >= s.bounds.max;
  auto const finished = s.finished_by(pick.last.token, s.generated);
  s.next.push_back({.log_prob = pick.log_prob,
                    .value = pick.value,
                    .key = child(parent.key, pick.last.token),
                    .node = s.history.add(parent.node, pick.last.token, pick.last.log_prob),
                    .token = pick.last.token,
                    .from = parent.slot,
                    .ended = finished || full,
                    .finished = finished});
}

template <class Void>
void StochasticBeam::settled(State& s, std::vector<Token>& tokens) const {
  s.nodes.clear();
  for (auto const& entry : s.beam) s.nodes.push_back(entry.node);
  s.history.write(s.history.common(s.nodes), tokens);
}

template <class Void>
void StochasticBeam::finish(State const& s, Result& result) const {
  result.hypotheses.clear();
  for (auto const& entry : s.beam) {
    auto& h = result.hypotheses.emplace_back();
    s.history.write(entry.node, h);
    h.log_prob = entry.log_prob, h.score = entry.value, h.finished = entry.finished;
  }
  if (result.hypotheses.empty()) result.fail(Failure::no_token_left, "every token was impossible");
  s.prefix.complete(result);
}

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(StochasticBeam)
