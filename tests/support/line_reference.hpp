// SPDX-License-Identifier: Apache-2.0
/// \file
/// What core/query.hpp promises for one line, in double precision and plain code.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

inline constexpr double impossible = -std::numeric_limits<double>::infinity();

/// The expected answer to one query.
struct ExpectedLine {
  bool valid = true;
  std::vector<double> log_probs;  ///< of every token, after all edits and restrictions
  std::vector<double> rank;       ///< the same plus noise
  double log_sum_exp = 0;
  double largest = 0;       ///< largest magnitude of the scores: floats of that size have a rounding error of their own
  double entropy = 0;       ///< of the distribution, before edits after the softmax
  std::vector<Token> list;  ///< best first
  bool doubtful = false;    ///< a cumulative probability is so close to its bound that rounding decides
};

inline void apply_edits(std::vector<double>& line, Query const& query) {
  for (auto const& edit : query.edits) {
    if (static_cast<std::size_t>(edit.token) >= line.size()) continue;  // not a token of the line
    auto& x = line[static_cast<std::size_t>(edit.token)];
    x = (x > 0 ? x / static_cast<double>(edit.penalty) : x * static_cast<double>(edit.penalty)) +
        static_cast<double>(edit.add);
  }
  if (query.only != nullptr)
    for (std::size_t v = 0; v < line.size(); ++v)
      if (!query.only->contains(static_cast<Token>(v))) line[v] = impossible;
}

template <class T>
ExpectedLine expected_line(std::span<T const> scores, Kind kind, Query const& query) {
  ExpectedLine e;
  std::vector<double> line(scores.begin(), scores.end());
  for (auto x : line) e.valid = e.valid && !std::isnan(x) && x != std::numeric_limits<double>::infinity();
  if (!e.valid) return e;

  auto const before = query.stage == Stage::before_softmax;
  auto const changed = query.temperature != 1.0f || query.shortlist != nullptr ||
                       (before && (!query.edits.empty() || query.only != nullptr));
  if (before) apply_edits(line, query);
  if (query.shortlist != nullptr)
    for (std::size_t v = 0; v < line.size(); ++v)
      if (!query.shortlist->contains(static_cast<Token>(v))) line[v] = impossible;
  for (auto& x : line) {
    x /= static_cast<double>(query.temperature);
    if (x > impossible) e.largest = std::max(e.largest, std::abs(x));
  }
  auto const top = *std::max_element(line.begin(), line.end());
  if (query.normalise && (kind == Kind::logits || changed) && top > impossible) {
    double sum = 0;
    for (auto x : line) sum += std::exp(x - top);
    e.log_sum_exp = top + std::log(sum);
    for (auto& x : line) x -= e.log_sum_exp;
  }
  for (auto x : line)
    if (x > impossible) e.entropy -= std::exp(x) * x;
  if (!before) apply_edits(line, query);
  e.log_probs = line;

  std::vector<Token> order;
  for (std::size_t v = 0; v < line.size(); ++v)
    if (line[v] > impossible) order.push_back(static_cast<Token>(v));
  auto const at = [&](Token t) { return line[static_cast<std::size_t>(t)]; };
  auto const by = [](auto value) {
    return [value](Token a, Token b) { return value(a) != value(b) ? value(a) > value(b) : a < b; };
  };
  std::sort(order.begin(), order.end(), by(at));
  e.rank = line;
  auto perturbed = order;
  if (query.noise != 0) {
    for (auto t : order) e.rank[static_cast<std::size_t>(t)] += gumbel(query.noise, t);
    std::sort(perturbed.begin(), perturbed.end(), by([&](Token t) { return e.rank[static_cast<std::size_t>(t)]; }));
  }

  std::set<Token> wanted;
  for (std::size_t i = 0; i < perturbed.size() && static_cast<std::int32_t>(i) < query.best; ++i)
    wanted.insert(perturbed[i]);
  auto const until = [&](std::vector<Token> const& tokens, double bound) {
    double held = 0;
    for (std::size_t i = 0; i < tokens.size() && held < bound; ++i) {
      wanted.insert(tokens[i]);
      held += std::exp(at(tokens[i]));
      e.doubtful = e.doubtful || std::abs(held - bound) < 1e-5;
    }
  };
  if (query.mass > 0) until(order, static_cast<double>(query.mass));
  if (query.within > 0)
    for (auto t : order) {
      auto const bar = at(order[0]) + std::log(static_cast<double>(query.within));
      if (at(t) >= bar) wanted.insert(t);
      e.doubtful = e.doubtful || (std::abs(at(t) - bar) < 1e-5 && query.within < 1);
    }
  auto const from = [&](double bar) {
    for (auto t : order) {
      if (at(t) >= bar) wanted.insert(t);
      e.doubtful = e.doubtful || std::abs(at(t) - bar) < 1e-5;
    }
  };
  if (query.at_least > 0) from(std::log(static_cast<double>(query.at_least)));
  if (query.deviations > 0 && !order.empty()) {
    auto const count = static_cast<double>(order.size());
    double mean = 0, variance = 0;
    for (auto t : order) mean += at(t) / count;
    for (auto t : order) variance += (at(t) - mean) * (at(t) - mean) / count;
    from(at(order[0]) - static_cast<double>(query.deviations) * std::sqrt(variance));
  }
  if (query.typical > 0) {
    auto const entropy = e.entropy;
    auto typical = order;
    std::sort(typical.begin(), typical.end(), by([&](Token t) { return -std::abs(-at(t) - entropy); }));
    for (std::size_t i = 1; i < typical.size(); ++i)
      e.doubtful =
          e.doubtful || std::abs(std::abs(-at(typical[i]) - entropy) - std::abs(-at(typical[i - 1]) - entropy)) < 1e-5;
    until(typical, static_cast<double>(query.typical));
  }
  if (query.selects()) e.rank = line;  // with other lists, the noise ranks by log-probability
  for (auto t : query.selects() ? order : perturbed)
    if (wanted.contains(t)) e.list.push_back(t);
  return e;
}

/// Checks one line against the expected answer. Tokens whose values differ by less than the tolerance may change
/// places.
inline void check_line(Line const& line, ExpectedLine const& e, Query const& query, double tolerance = 1e-5) {
  REQUIRE(line.valid == e.valid);
  if (!e.valid) {
    CHECK(line.best.empty());
    CHECK(line.probes.empty());
    return;
  }
  tolerance += 2e-7 * e.largest;  // two roundings of the scores to float
  // Penalties after the softmax make log-probabilities larger than any score: theirs are floats, too.
  auto const close = [tolerance](double a, double b) {
    return a == b || std::abs(a - b) <= tolerance + 2e-7 * std::abs(b);
  };
  REQUIRE(line.probes.size() == query.probes.size());
  for (std::size_t i = 0; i < query.probes.size(); ++i) {
    INFO("probe of token " << query.probes[i]);
    auto const place = static_cast<std::size_t>(query.probes[i]);
    auto const expected = place < e.log_probs.size() ? e.log_probs[place] : impossible;
    if (!close(static_cast<double>(line.probes[i]), expected)) CHECK(static_cast<double>(line.probes[i]) == expected);
  }
  if (!close(static_cast<double>(line.log_sum_exp), e.log_sum_exp))
    CHECK(static_cast<double>(line.log_sum_exp) == e.log_sum_exp);
  if (query.entropy && !close(static_cast<double>(line.entropy), e.entropy))
    CHECK(static_cast<double>(line.entropy) == e.entropy);
  if (e.doubtful) return;
  REQUIRE(line.best.size() == e.list.size());
  std::set<Token> seen;
  for (std::size_t i = 0; i < e.list.size(); ++i) {
    auto const [token, log_prob] = line.best[i];
    INFO("entry " << i << " of " << e.list.size() << ": token " << token << ", expected " << e.list[i]);
    REQUIRE(seen.insert(token).second);
    auto const v = static_cast<std::size_t>(token);
    if (!close(static_cast<double>(log_prob), e.log_probs[v])) CHECK(static_cast<double>(log_prob) == e.log_probs[v]);
    if (token != e.list[i] && !close(e.rank[v], e.rank[static_cast<std::size_t>(e.list[i])])) CHECK(token == e.list[i]);
  }
}

}  // namespace sluice::test
