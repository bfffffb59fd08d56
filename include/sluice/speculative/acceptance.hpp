// SPDX-License-Identifier: Apache-2.0
/// \file
/// The Acceptance concept, the rules by which a Blockwise accepts the guesses of a block (sluice::acceptance), and rejection
/// sampling: drawn guesses are accepted as often as the model itself would have drawn them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::acceptance {

/// Outputs follow the model's own distribution at that temperature, whatever the guesses: speculative sampling
/// (Leviathan et al. 2023; Chen et al. 2023), and for trees of guesses SpecInfer's multi-round rejection (Miao et al.
/// 2024, Algorithm 2). The guesses for one position are tried in order. x, drawn from q, is accepted with probability
/// min(1, p(x) / q(x)); otherwise p is replaced by the normalised positive part of p - q. If none is accepted, the
/// token is drawn from the remaining p. DraftModel draws guesses and reports their q; a guess without a q counts as
/// certain (q(x) = 1).
///
/// Unlike Sampling, the output is not that of Sample with the same seed; it only has the same distribution. In return
/// the rule accepts as many guesses as possible. It probes only the tokens in q, not the whole line.
///
/// Under a Watermark (scheme gumbel, function sluice, with `second`) a draft that chooses by this rule draws its guesses with
/// the first of the two keys, and what remains of p is drawn with the second: so whether a guess is accepted depends on neither,
/// and the distribution stays. detect_watermark() weighs the two by `second`, which should be the share of tokens that are no
/// accepted guesses. Guesses of a draft that does not know the keys carry no marks. Of several guesses for one position only the
/// first is marked.
struct Rejection {
  float temperature = 1;  ///< as in Sample; > 0
  Watermark watermark{};

  static constexpr bool lossless = true;
  static constexpr bool draws = true;
  void check() const {
    require(temperature > 0 && std::isfinite(temperature), "accept.temperature", temperature, "must be a number > 0");
    watermark.check();
    auto const off = !watermark.on();
    require(off || watermark.scheme == WatermarkScheme::gumbel, "accept.watermark.scheme",
            sluice::name(watermark.scheme),
            "changes the distribution by which guesses are judged: choose gumbel, or accept by acceptance::Sampling");
    require(off || watermark.prf == WatermarkPrf::sluice, "accept.watermark.prf", sluice::name(watermark.prf),
            "would need the whole line for what remains of it: choose sluice, or accept by acceptance::Sampling");
    require(off || watermark.second > 0, "accept.watermark.second", watermark.second,
            "must be above 0: what remains after a guess must not be drawn with the key that drew the guess");
  }
  void ask(Query& query, std::uint64_t seed, std::int32_t position, std::int32_t) const {
    query.temperature = temperature, query.best = 1, query.noise = noise(seed, position, 0);
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    return line.best.empty() ? Candidate{-1, 0} : line.best[0];
  }
  bool accepts(Line const&, Candidate own, Token guess) const { return guess == own.token; }

  /// Memory of choose().
  struct Scratch {
    std::vector<double> left;   ///< [name]: of p, not normalised
    std::vector<double> drawn;  ///< [name]: q
  };
  /// Drops every q that contains a token outside the vocabulary, since drafts are untrusted; such a guess then has no
  /// q. O(candidates).
  SLUICE_LAZY static void drop_nonsense(DraftTree& tree, std::int32_t vocabulary) {
    auto const outside = [&](Candidate c) { return c.token < 0 || c.token >= vocabulary; };
    for (std::size_t i = 0; i < tree.drawn.size(); ++i)
      if (std::ranges::any_of(from(tree, static_cast<std::int32_t>(i)), outside)) tree.drawn[i] = {};
  }
  /// Lists the tokens of these guesses and those of their q in `tree`, ascending.
  SLUICE_LAZY static void name(std::span<std::int32_t const> guesses, std::span<Token const> tokens,
                               DraftTree const& tree, std::vector<Token>& names) {
    names.clear();
    for (auto const guess : guesses) {
      names.push_back(tokens[static_cast<std::size_t>(guess)]);
      for (auto const c : from(tree, guess)) names.push_back(c.token);
    }
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  /// Adds these tokens to the query as probes. The query's noise then differs from own()'s: a draft that chooses by
  /// this rule draws with that noise, and the remaining draw must be independent of it.
  SLUICE_LAZY static void ask(Query& query, std::span<Token const> names) {
    if (!names.empty()) query.noise = derive(query.noise, 1);
    query.probes = names, query.best = static_cast<std::int32_t>(names.size()) + 1;
  }

  /// Chooses the next token; `line` has probes for `names`. \param marked  the noise of the query if what remains is to be
  /// drawn with it; 0: not
  SLUICE_LAZY Candidate choose(Line const& line, std::span<Token const> names, std::span<std::int32_t const> guesses,
                               std::span<Token const> tokens, DraftTree const& tree, std::uint64_t seed,
                               std::int32_t position, Scratch& scratch, std::uint64_t marked = 0) const {
    auto& [left, drawn] = scratch;
    auto const at = [&](Token token) {
      return static_cast<std::size_t>(std::ranges::lower_bound(names, token) - names.begin());
    };
    auto const named = [&](Token token) { return std::ranges::binary_search(names, token); };
    left.resize(names.size());
    double sum = 0;
    for (std::size_t i = 0; i < names.size(); ++i)
      left[i] = std::exp(static_cast<double>(line.probes[i])), sum += left[i];
    auto rest = (std::max)(0.0, 1 - sum);  // probability of the tokens not in names
    auto const outside = std::ranges::find_if(line.best, [&](Candidate c) { return !named(c.token); });
    if (outside == line.best.end()) rest = 0;
    double scale = 1;  // of the tokens not in names
    for (std::size_t round = 0; round < guesses.size(); ++round) {
      auto const guess = guesses[round];
      auto const x = at(tokens[static_cast<std::size_t>(guess)]);
      drawn.assign(names.size(), 0);
      double all = 0;
      for (auto const c : from(tree, guess)) all += std::exp(static_cast<double>(c.log_prob));
      for (auto const c : from(tree, guess)) drawn[at(c.token)] += std::exp(static_cast<double>(c.log_prob)) / all;
      if (!(drawn[x] > 0)) drawn.assign(names.size(), 0), drawn[x] = 1;
      auto const total = sum + rest;
      if (!(total > 0)) break;
      if (uniform(noise(seed, position, 1 + round), 0) * drawn[x] < left[x] / total) return {names[x], line.probes[x]};
      sum = 0;
      for (std::size_t i = 0; i < names.size(); ++i)
        left[i] = (std::max)(0.0, left[i] / total - drawn[i]), sum += left[i];
      rest /= total, scale /= total;
    }
    if (!(sum + rest > 0)) return line.best.empty() ? Candidate{-1, 0} : line.best[0];
    if (marked != 0) {  // `outside` is the best of its kind under this noise
      auto best = names.size();
      auto most = rest > 0 ? static_cast<double>(outside->log_prob) + std::log(scale) + gumbel(marked, outside->token)
                           : -std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < names.size(); ++i) {
        auto const value = std::log(left[i]) + gumbel(marked, names[i]);
        if (left[i] > 0 && value > most) best = i, most = value;
      }
      return best == names.size() ? *outside : Candidate{names[best], line.probes[best]};
    }
    auto u = uniform(noise(seed, position, 0), -1) * (sum + rest);
    if (u < rest) return *outside;
    u -= rest;
    auto last = names.size();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (left[i] > 0) {
        last = i;
        if (u < left[i]) break;
        u -= left[i];
      }
    if (last == names.size()) return *outside;
    return {names[last], line.probes[last]};
  }

 private:
  /// The noise for the model's side of a choice; drafts never use it.
  static std::uint64_t noise(std::uint64_t seed, std::int32_t position, std::uint64_t part) {
    return derive(derive(Sample::noise(seed, 0, position), 0x5EC1), part);
  }
  SLUICE_LAZY static std::span<Candidate const> from(DraftTree const& tree, std::int32_t guess) {
    auto const i = static_cast<std::size_t>(guess);
    if (i >= tree.drawn.size()) return {};
    auto const [first, count] = tree.drawn[i];
    if (first < 0 || count <= 0 ||
        static_cast<std::size_t>(first) + static_cast<std::size_t>(count) > tree.candidates.size())
      return {};
    return std::span(tree.candidates).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }
};

}  // namespace sluice::inline v0::acceptance

namespace sluice::inline v0 {

// clang-format off
/// The rule by which guesses are accepted. Each line of a block is the model's own answer for one position.
///
///  - `ask(query, seed, position, vocabulary_size)`: fills in the query for the line that decides about token
///    `position` of the output;
///  - `own(line, seed, position, scratch)`: the model's own choice there; a token of -1 if there is none;
///  - `accepts(line, own, guess)`: whether `guess` may stand in its place;
///  - `lossless`: whether every output is one that the model would have given without guesses;
///  - `draws`, optional: guesses must be drawn at random, and the output depends on them. Such a rule also has the members
///    `Scratch`, `drop_nonsense(tree, vocabulary)`, `name(guesses, tokens, tree, names)` and `choose(line, ...)` of
///    acceptance::Rejection, by which Blockwise chooses among drawn guesses.
template <class A>
concept Acceptance = requires(A const& rule, Query& query, Line const& line, Candidate own, Token guess,
                              std::uint64_t seed, std::int32_t position, std::vector<Candidate>& scratch) {
    rule.check();
    rule.ask(query, seed, position, position);
    { rule.own(line, seed, position, scratch) } -> std::same_as<Candidate>;
    { rule.accepts(line, own, guess) } -> std::same_as<bool>;
    { A::lossless } -> std::convertible_to<bool>;
  };
// clang-format on

/// The rules of the library by which Blockwise accepts guesses, and by which DraftModel makes them.
namespace acceptance {

/// The output is that of Greedy (Stern, Shazeer and Uszkoreit 2018, section 3).
struct Exact {
  bool scores = true;  ///< as of Greedy: false: no softmax; log-probabilities and score are then NaN

  static constexpr bool lossless = true;
  void check() const {}
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = 1, query.stage = Stage::after_softmax, query.normalise = scores;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    if (line.best.empty()) return {-1, 0};
    return {line.best[0].token, scores ? line.best[0].log_prob : std::numeric_limits<float>::quiet_NaN()};
  }
  bool accepts(Line const&, Candidate own, Token guess) const { return guess == own.token; }
};

/// Accepts guesses among the n best tokens (section 5.1).
struct TopK {
  std::int32_t n = 2;

  static constexpr bool lossless = false;
  void check() const { require(n >= 1, "accept.n", n, "must be at least 1"); }
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = n, query.stage = Stage::after_softmax;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    return line.best.empty() ? Candidate{-1, 0} : line.best[0];
  }
  bool accepts(Line const& line, Candidate, Token guess) const {
    return std::any_of(line.best.begin(), line.best.end(), [&](Candidate c) { return c.token == guess; });
  }
};

/// Accepts guesses at most epsilon from the best token, for tokens that are intensities (section 5.2).
struct Distance {
  std::int32_t epsilon = 2;

  static constexpr bool lossless = false;
  void check() const { require(epsilon >= 0, "accept.epsilon", epsilon, "must not be negative"); }
  void ask(Query& query, std::uint64_t, std::int32_t, std::int32_t) const {
    query.best = 1, query.stage = Stage::after_softmax;
  }
  Candidate own(Line const& line, std::uint64_t, std::int32_t, std::vector<Candidate>&) const {
    return line.best.empty() ? Candidate{-1, 0} : line.best[0];
  }
  bool accepts(Line const&, Candidate own, Token guess) const {
    return own.token >= 0 && std::abs(static_cast<std::int64_t>(guess) - own.token) <= epsilon;
  }
};

/// The output is that of Sample with the same options and the same seed. At each position the model draws with the noise
/// that Sample would use, and a guess is accepted if it equals the token drawn. So outputs follow the model's own
/// distribution for any draft (the guarantee of Leviathan et al. 2023 and Chen et al. 2023). A draft that draws with
/// the same noise (DraftModel with this rule) is accepted more often than one that takes its best token. So it is under a
/// Watermark: the output carries the marks of Sample's.
struct Sampling {
  /// Its temperature, top_k, top_p, min_p and typical, in an order that Hugging Face's keeps, and its watermark. Blockwise has the length.
  Sample sample{};

  static constexpr bool lossless = true;
  void check() const {
    require(sample.temperature > 0 && std::isfinite(sample.temperature), "accept.sample.temperature",
            sample.temperature, "must be a number > 0");
    sample.check();
    require(sample.samples == 1, "accept.sample.samples", sample.samples, "must be 1");
    require(samplers().plain(), "accept.sample", "a chain of samplers",
            "must be a temperature, top_k, top_p, min_p and typical alone, in this order");
  }
  void ask(Query& query, std::uint64_t seed, std::int32_t position, std::int32_t vocabulary_size) const {
    auto const truncation = samplers().truncation();
    query.temperature = sample.temperature;
    if (truncation.off()) query.best = 1, query.noise = Sample::noise(seed, 0, position);
    else truncation.ask(query, vocabulary_size);
  }
  SLUICE_LAZY Candidate own(Line const& line, std::uint64_t seed, std::int32_t position,
                            std::vector<Candidate>& scratch) const {
    auto const list = samplers().truncation().apply(line.best, scratch);
    return list.empty() ? Candidate{-1, 0} : draw(list, Sample::noise(seed, 0, position));
  }
  bool accepts(Line const&, Candidate own, Token guess) const { return guess == own.token; }

 private:
  detail::SamplerChain<Sample const&> samplers() const { return {sample}; }
};

}  // namespace acceptance

namespace detail {

/// Scratch memory of a rule, if it needs any.
template <class A>
struct ScratchOf {};
template <class A>
  requires requires { typename A::Scratch; }
struct ScratchOf<A> : A::Scratch {};

}  // namespace detail

}  // namespace sluice::inline v0
