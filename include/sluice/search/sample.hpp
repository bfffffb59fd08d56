// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sampling from the model.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/in_library.hpp>
#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/detail/output_limits.hpp>
#include <sluice/search/detail/sampler_chain.hpp>
#include <sluice/search/detail/truncation.hpp>
#include <sluice/search/history.hpp>
#include <sluice/search/length.hpp>
#include <sluice/search/samplers.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// Draws outputs token by token from p(v) ~ exp(x(v) / temperature), where x are the model's scores, optionally
/// restricted by its samplers to a part of the tokens, until eos or the maximum
/// length. An output cut at the maximum length is not `finished`.
///
/// The samplers act in `order`, each on the renormalised result of the one before. At least one token stays. Of equally probable tokens
/// the lower one ranks first. A cut behind nothing but the temperature is made on the line, and of a large vocabulary nothing else is read.
/// XTC, DynamicTemperature and AdaptiveP need all remaining tokens: without a cut before them, that is the whole line, sorted, O(V log V)
/// per token; so does `typical` with `min_keep`.
///
/// Tokens never generated, and eos while the output is too short, are forbidden before the softmax: the remaining
/// tokens are normalised. `log_prob` and `score` are the log-probability of the output under that model, before any
/// truncation. They include the temperature only if no active cut comes before it in `order` and it is not dynamic.
///
/// Samplers that look at the tokens generated so far are logits processors: Penalties, Dry, TokenBias. Presets:
/// presets.hpp.
///
/// The n-th token of sample i of a sentence is the argmax of log p(v) + gumbel(noise(seed, i, n), v) over the remaining
/// tokens. So the same seed gives the same text in any batch and under any schedule. A sample does not depend on the
/// number of samples, and continues in the same way if its beginning is given as a prefix (except that Mirostat and
/// AdaptiveP do not take a prefix into account).
///
/// With a Watermark the argmax is over the key's numbers, or probabilities are changed by them, after all samplers; log_prob
/// stays the model's. The scheme gumbel with the function `sluice` draws in the expander as without a watermark; any other
/// needs a list of all remaining tokens: without truncation that is the whole line, sorted, O(V log V). Repeated contexts are
/// looked for in the output, O(length) per token.
///
/// The samples of one sentence share the prompt: it is run once, in one slot. One row per step for each sample that has
/// not ended. Without truncation the expander draws; but several samples draw their first token from a list of the
/// whole line, sorted once, O(V log V).
struct Sample {
  float temperature = 1;   ///< > 0; the nearer to 0, the nearer to Greedy
  std::int32_t top_k = 0;  ///< the k most probable (Fan, Lewis and Dauphin 2018); 0 = all
  float top_p = 1;  ///< the most probable that together hold this much (Holtzman et al. 2020); in (0, 1]; 1 = all
  float min_p =
      0;  ///< all that are at least this times as probable as the best (Nguyen et al. 2024); in [0, 1]; 0 = all
  float typical =
      1;  ///< those whose information is nearest to the entropy and that together hold this much (Meister et al. 2023); in (0, 1]; 1 = all
  float top_n_sigma =
      0;      ///< only tokens whose score is at most this many standard deviations of the line's scores below the best
              ///< (Tang et al. 2024; as llama.cpp's top-n-sigma); 0 = off
  Xtc xtc{};  ///< removes the most probable tokens now and then; off by default, like the next three
  DynamicTemperature dynamic_temperature{};  ///< temperature that depends on the entropy
  Mirostat mirostat{};                       ///< truncation for a constant mean surprise
  AdaptiveP adaptive_p{};                    ///< prefers tokens near a target probability
  std::int32_t min_keep =
      1;  ///< minimum number of tokens that top_p, min_p, typical and xtc leave (Hugging Face's min_tokens_to_keep);
          ///< not more than top_k
  SamplerOrder order = SamplerOrder::hugging_face();  ///< the order in which samplers act
  std::int32_t samples =
      1;                  ///< per sentence; >= 1. Returned in their order; a sample that has no possible token left is
                          ///< omitted
  bool distinct = false;  ///< drop duplicates, and sort by log_prob (ties by tokens): up to `samples` different
                          ///< hypotheses, best first
  LengthLimits length{};
  Watermark watermark{};  ///< marks that detect_watermark() finds; off by default

  /// The noise with which sample `sample` of a sentence draws token `position` of its output, forced prefix included.
  SLUICE_LAZY static std::uint64_t noise(std::uint64_t seed, std::int32_t sample, std::int32_t position) {
    return derive(derive(seed, static_cast<std::uint64_t>(sample)), static_cast<std::uint64_t>(position));
  }
  /// The samplers, for lines of your own: ask() says what to list of one, apply() leaves the candidates, draw() draws one, took() tells which.
  auto chain() const { return detail::SamplerChain<Sample>{*this}; }

  struct State : detail::OutputLimits {
    struct Drawn {
      double log_prob = 0;
      History::Node node = History::root;
      Token token = 0;  // the last token; to be fed
      Slot slot = -1;
      detail::SamplerState sampler{};
      bool alive = true, finished = false, lost = false;  // lost: no token was possible
    };
    History history;
    std::uint64_t seed = 0;
    detail::Buffer<Drawn> drawn;     // [samples]
    std::vector<Token> own;          // of settled()
    std::vector<Slot> unused;        // to be released
    std::vector<Candidate> scratch;  // of the truncation
    detail::SamplerScratch left;
    detail::Marker marker;
    std::vector<std::vector<Token>> texts;  // [samples]: of the outputs, prefix included; if marked
    std::vector<detail::Mark> marks;        // [samples]: of their next token
    detail::MarkScratch weights;
    std::int32_t held = 0;       // tokens in the slots
    std::int32_t generated = 0;  // tokens, prefix included
    Token last = 0;              // the first token fed
    // first: one line serves all samples; forked: each sample has its slot
    bool first = true, forked = false, plain = true;  // plain: just a truncation
  };

  SLUICE_LAZY void check() const {
    detail::require_slots("samples", samples);
    samplers().check(), length.check(), watermark.check();
    require(samples == 1 || watermark.scheme != WatermarkScheme::gumbel || watermark.second > 0, "samples", samples,
            "would all be the same: the watermark's key draws each of them alike. Set watermark.second, or choose the "
            "scheme synthid");
  }
  std::int32_t slot_count() const { return samples; }

  SLUICE_LAZY void begin(State& s, Sentence const& sentence) const;
  SLUICE_LAZY void plan(State& s, Plan& plan) const;
  SLUICE_LAZY bool advance(State& s, Expansion const& answer) const;
  SLUICE_LAZY Progress progress(State const& s) const {
    if (s.first) return {s.held, 1, 1};
    auto const alive = std::count_if(s.drawn.begin(), s.drawn.end(), [](auto const& d) { return d.alive; });
    return {s.held, static_cast<std::int32_t>(alive)};
  }
  SLUICE_LAZY void settled(State& s, std::vector<Token>& tokens) const {
    tokens.clear();
    auto first = true;
    for (auto const& d : s.drawn) {  // tokens, not nodes: equal samples have separate nodes
      if (d.lost) continue;
      s.history.write(d.node, first ? tokens : s.own);
      if (!first)
        tokens.erase(std::mismatch(tokens.begin(), tokens.end(), s.own.begin(), s.own.end()).first, tokens.end());
      first = false;
    }
  }
  SLUICE_LAZY void finish(State const& s, Result& result) const;

 private:
  detail::SamplerChain<Sample const&> samplers() const { return {*this}; }
  SLUICE_LAZY Query query(State const& s, std::int32_t sample) const;
  SLUICE_LAZY void mark(State& s) const;
  /// The candidates from which a sample draws, or from which the chain chooses.
  SLUICE_LAZY std::span<Candidate const> cut(State& s, Line const& line) const {
    return s.plain ? samplers().truncation().apply(line.best, s.scratch) : line.best;
  }
  SLUICE_LAZY void take(State& s, std::size_t sample, std::span<Candidate const> list) const;
  SLUICE_LAZY Candidate choose(State& s, std::size_t sample, std::span<Candidate const> list, std::uint64_t own) const {
    auto& state = s.drawn[sample].sampler;
    auto const drawn = [&](std::span<Candidate const> from) {
      if (from.size() == 1 || !s.marker.on()) return draw(from, own);
      auto const& mark = s.marks[sample];
      if (!mark.marked || s.marker.by_noise()) return draw(from, s.marker.noise(mark, own));
      return from[s.marker.draw(from, mark, own, s.weights)];
    };
    if (s.plain) return drawn(list);
    samplers().apply(list, s.vocabulary->size, state, own, s.left);
    return samplers().took(drawn(samplers().candidates(s.left)).token, list, state, s.left);
  }
};

template <class Void>
void Sample::begin(State& s, Sentence const& sentence) const {
  s.begin(sentence, length);
  s.history.clear(s.prefix.size());
  s.seed = sentence.seed;
  s.plain = samplers().plain();
  s.drawn.assign(static_cast<std::size_t>(samples), {.sampler = samplers().begin()});
  s.unused.clear();
  s.marker = detail::Marker(watermark);
  if (s.marker.on()) {
    s.texts.resize(s.drawn.size()), s.marks.resize(s.drawn.size());
    for (auto& text : s.texts) text.assign(sentence.prefix.begin(), sentence.prefix.end());
  }
  s.held = sentence.held, s.last = sentence.last;
  s.first = true, s.forked = false;
  s.generated = s.prefix.size();
}

/// Finds out how the next tokens are marked.
template <class Void>
void Sample::mark(State& s) const {
  if (!s.marker.on()) return;
  for (std::size_t i = 0; i < s.drawn.size(); ++i)
    if (s.drawn[i].alive)
      s.marks[i] = s.marker.mark(s.texts[i], noise(s.seed, static_cast<std::int32_t>(i), s.generated));
}

/// The query for the line that `sample` draws from; -1: all samples draw from it.
template <class Void>
Query Sample::query(State const& s, std::int32_t sample) const {
  Query q{.edits = s.edits(s.generated), .temperature = temperature};
  auto const own = sample >= 0 ? noise(s.seed, sample, s.generated) : 0;
  auto const marked = sample >= 0 && s.marker.on() && s.marks[static_cast<std::size_t>(sample)].marked;
  auto const alone = own != 0 && (!marked || s.marker.by_noise());  // the expander may draw
  if (!s.plain) {
    samplers().ask(q, s.vocabulary->size, s.drawn[static_cast<std::size_t>((std::max)(sample, 0))].sampler,
                   alone ? own : 0);
  } else if (alone && samplers().truncation().off()) q.best = 1, q.noise = own;
  else samplers().truncation().ask(q, s.vocabulary->size);
  if (q.noise != 0 && marked) q.noise = s.marks[static_cast<std::size_t>(sample)].place.noise;
  return q;
}

template <class Void>
void Sample::plan(State& s, Plan& plan) const {
  for (auto const slot : s.unused) plan.release(slot);
  s.unused.clear();
  if (s.bounds.max == 0) return;
  mark(s);
  if (s.first) {
    plan.row(0, 0, s.held, {&s.last, 1});
    return plan.ask(query(s, samples == 1 ? 0 : -1));
  }
  for (std::size_t i = 0; i < s.drawn.size(); ++i) {
    auto const& d = s.drawn[i];
    if (!d.alive) continue;
    plan.row(s.forked ? d.slot : 0, d.slot, s.held, {&d.token, 1});
    plan.ask(query(s, static_cast<std::int32_t>(i)));
  }
  s.forked = true;
}

template <class Void>
bool Sample::advance(State& s, Expansion const& answer) const {
  if (s.bounds.max == 0) return true;
  ++s.held;
  if (s.first) {
    s.first = false;
    for (auto& d : s.drawn) d.log_prob = s.prefix.ranked();
    auto const list = cut(s, answer.back());
    for (std::size_t i = 0; i < s.drawn.size(); ++i) take(s, i, list);
    Slot slot = 0;
    for (auto& d : s.drawn)
      if (d.alive) d.slot = slot++;
  } else {
    std::size_t line = 0;
    for (std::size_t i = 0; i < s.drawn.size(); ++i)
      if (s.drawn[i].alive) take(s, i, cut(s, answer[line++]));
  }
  ++s.generated;
  return std::none_of(s.drawn.begin(), s.drawn.end(), [](auto const& d) { return d.alive; });
}

/// Draws the next token of one sample.
template <class Void>
void Sample::take(State& s, std::size_t sample, std::span<Candidate const> list) const {
  auto& d = s.drawn[sample];
  d.lost = list.empty();
  if (!d.lost) {
    auto const chosen = choose(s, sample, list, noise(s.seed, static_cast<std::int32_t>(sample), s.generated));
    if (s.marker.on()) s.texts[sample].push_back(chosen.token);
    d.node = s.history.add(d.node, chosen.token, chosen.log_prob);
    d.token = chosen.token, d.log_prob += static_cast<double>(chosen.log_prob);
    auto const full = s.generated + 1 >= s.bounds.max;
    d.finished = s.finished_by(chosen.token, s.generated + 1);
    d.alive = !d.finished && !full;
  } else {
    d.alive = false;
  }
  if (!d.alive && d.slot >= 0) s.unused.push_back(d.slot);
}

template <class Void>
void Sample::finish(State const& s, Result& result) const {
  result.hypotheses.clear();
  for (auto const& d : s.drawn) {
    if (d.lost) continue;
    auto& h = result.hypotheses.emplace_back();
    s.history.write(d.node, h);
    h.log_prob = h.score = d.log_prob, h.finished = d.finished;
  }
  if (result.hypotheses.empty()) return result.fail(Failure::no_token_left, "every token was impossible");
  if (!distinct) return s.prefix.complete(result);
  auto& all = result.hypotheses;
  std::sort(all.begin(), all.end(), [](Hypothesis const& a, Hypothesis const& b) { return a.tokens < b.tokens; });
  auto const same = [](Hypothesis const& a, Hypothesis const& b) { return a.tokens == b.tokens; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  std::sort(all.begin(), all.end(), [](Hypothesis const& a, Hypothesis const& b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.tokens < b.tokens;
  });
  s.prefix.complete(result);
}

}  // namespace sluice::inline v0

SLUICE_IN_LIBRARY(Sample)
