// SPDX-License-Identifier: Apache-2.0
/// \file
/// A random output layer with clusters, and the expected results of its projections, in double precision.
#pragma once

#include <sluice/core/query.hpp>
#include <sluice/output/clustered_projection.hpp>
#include <sluice/output/dense_projection.hpp>

#include <support/random_query.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

namespace sluice::test {

/// Weights [V, d] in rows of d + 3, a bias, and sets of clusters.
struct OutputLayer {
  OutputLayer(std::uint64_t seed, std::ptrdiff_t vocabulary, std::ptrdiff_t depth, std::size_t directions = 1,
              std::size_t tokens_per_cluster = 12)
      : random(seed), size(vocabulary), d(depth), weights(normal_numbers(random, size * (d + 3), 0.5)) {
    bias = normal_numbers(random, size);
    for (std::size_t i = 0; i < directions; ++i) {
      auto const count = 1 + below(random, 12);
      Clusters c{.hidden_size = d, .vocabulary_size = static_cast<std::int32_t>(size)};
      c.centroids = normal_numbers(random, static_cast<std::ptrdiff_t>(count) * d, 1.5);
      for (std::size_t j = 0; j < count; ++j) {
        std::set<Token> tokens;
        if (below(random, 8) != 0)
          for (auto k = below(random, 2 * tokens_per_cluster); k > 0; --k)
            tokens.insert(static_cast<Token>(below(random, static_cast<std::size_t>(size))));
        c.tokens.insert(c.tokens.end(), tokens.begin(), tokens.end());
        c.begin.push_back(std::ssize(c.tokens));
      }
      clusters.push_back(c);
    }
  }
  OutputLayer(OutputLayer const&) = delete;
  OutputLayer& operator=(OutputLayer const&) = delete;

  MatrixView<float const> view() const { return {weights.data(), size, d, d + 3}; }
  DenseProjection dense(Precision precision = Precision::float32) const {
    return DenseProjection(view(), bias, precision);
  }
  ClusteredProjection clustered(ClusteredOptions const& options, Precision precision = Precision::float32) const {
    return {view(), bias, clusters, options, std::make_shared<PackedMatrix const>(view(), bias, precision)};
  }

  /// Vectors [count, d], each clearly nearest to one centroid, in any direction.
  std::vector<float> vectors(std::size_t count) {
    std::vector<float> all;
    while (all.size() < count * static_cast<std::size_t>(d)) {
      auto const h = normal_numbers(random, d, 1.5);
      if (std::ranges::all_of(clusters, [&](Clusters const& c) { return nearest(c, h).has_value(); }))
        all.insert(all.end(), h.begin(), h.end());
    }
    return all;
  }
  /// The nearest centroid; nullopt if two are almost equally near.
  static std::optional<std::ptrdiff_t> nearest(Clusters const& c, std::span<float const> h) {
    double first = std::numeric_limits<double>::infinity(), second = first;
    std::ptrdiff_t best = 0;
    for (std::ptrdiff_t i = 0; i < c.size(); ++i) {
      double distance = 0;
      for (std::size_t k = 0; k < h.size(); ++k) {
        auto const x = static_cast<double>(h[k]) - static_cast<double>(c.centroid(i)[k]);
        distance += x * x;
      }
      if (distance < first) second = first, first = distance, best = i;
      else second = std::min(second, distance);
    }
    if (second - first < 1e-3) return {};
    return best;
  }

  std::span<float const> row(std::vector<float> const& h, std::size_t i) const {
    return std::span(h).subspan(i * static_cast<std::size_t>(d), static_cast<std::size_t>(d));
  }
  /// Logits of one vector; -infinity for all tokens outside `active` (if set).
  std::vector<double> logits(std::span<float const> h, std::optional<std::set<Token>> const& active) const {
    std::vector<double> result;
    for (std::ptrdiff_t v = 0; v < size; ++v) {
      double sum = static_cast<double>(bias[static_cast<std::size_t>(v)]);
      for (std::size_t k = 0; k < h.size(); ++k) sum += static_cast<double>(view()[v][k]) * static_cast<double>(h[k]);
      auto const here = !active || active->contains(static_cast<Token>(v));
      result.push_back(here ? sum : -std::numeric_limits<double>::infinity());
    }
    return result;
  }

  /// The tokens that are projected for some lines; nullopt if all are.
  std::optional<std::set<Token>> active(std::vector<float> const& h, std::size_t first, std::span<Query const> queries,
                                        std::span<std::int32_t const> directions,
                                        ClusteredOptions const& options) const {
    std::set<Token> tokens;
    auto const* const only = queries.front().only;
    std::size_t wanted = 1;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const& q = queries[i];
      if (q.only != only || (only != nullptr && q.stage == Stage::after_softmax)) return {};
      for (auto const& edit : q.edits)
        if (edit.add > 0 || edit.penalty < 1) tokens.insert(edit.token);
      tokens.insert(q.probes.begin(), q.probes.end());
      if (only != nullptr) continue;
      auto const direction = directions[i];
      if (direction < 0 || direction >= static_cast<std::int32_t>(clusters.size())) return {};
      auto const& c = clusters[static_cast<std::size_t>(direction)];
      auto const own = c[*nearest(c, row(h, first + i))];
      tokens.insert(own.begin(), own.end());
    }
    tokens.insert(options.always.begin(), options.always.end());
    for (auto const& q : queries) {
      auto asked = static_cast<std::size_t>(q.best);
      for (auto const& edit : q.edits)
        if (edit.add == -std::numeric_limits<float>::infinity() && tokens.contains(edit.token)) ++asked;
      wanted = std::max(wanted, asked);
    }
    if (only != nullptr) {
      tokens.clear();
      for (Token v = 0; v < size; ++v)
        if (only->contains(v)) tokens.insert(v);
    } else if (tokens.size() < wanted) {
      return {};
    }
    if (tokens.empty() || static_cast<double>(tokens.size()) > options.full_above * static_cast<double>(size))
      return {};
    return tokens;
  }

  std::mt19937_64 random;
  std::ptrdiff_t size, d;
  std::vector<float> weights, bias{};
  std::vector<Clusters> clusters{};
};

/// Sentences with random queries, some of them with a mask for all their lines.
struct Step {
  Step(OutputLayer& layer, std::size_t sentences, bool masks = true, std::int32_t directions = 1) {
    auto const size = static_cast<std::size_t>(layer.size);
    for (std::size_t g = 0; g < sentences; ++g) {
      auto const count = below(layer.random, 5);
      auto const direction = static_cast<std::int32_t>(below(layer.random, static_cast<std::size_t>(directions) + 2));
      groups.push_back({.lines = static_cast<std::int32_t>(count), .direction = directions == 1 ? 0 : direction - 1});
      auto const masked = masks && below(layer.random, 4) == 0;
      for (std::size_t i = 0; i < count; ++i) {
        made.push_back(std::make_unique<RandomQuery>(layer.random, size,
                                                     QueryFields{.only = masks && below(layer.random, 9) == 0}));
        auto query = made.back()->query;
        if (query.noise != 0) {  // the order would then depend on two things
          query.mass = query.within = query.typical = 0;
          query.deviations = query.at_least = 0;
        }
        if (masked) query.only = &(made[made.size() - 1 - i]->only), query.stage = Stage::before_softmax;
        if (masked && i == 0)
          for (auto k = below(layer.random, size / 2 + 9); k > 0; --k)
            made.back()->only.insert(static_cast<Token>(below(layer.random, size + 200)));
        queries.push_back(query);
        directions_of.push_back(groups.back().direction);
      }
    }
    h = layer.vectors(queries.size());
  }
  Hidden<float> vectors(std::ptrdiff_t d, std::size_t first, std::size_t count) const {
    return hidden(h.data() + static_cast<std::ptrdiff_t>(first) * d, static_cast<std::ptrdiff_t>(count), d);
  }
  std::vector<std::unique_ptr<RandomQuery>> made;
  std::vector<Query> queries;
  std::vector<Group> groups;
  std::vector<std::int32_t> directions_of;
  std::vector<float> h;
};

}  // namespace sluice::test
