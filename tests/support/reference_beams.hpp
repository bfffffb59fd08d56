// SPDX-License-Identifier: Apache-2.0
/// \file
/// The beam searches of three engines, reimplemented over dense arrays for one sentence. Shares no code with the
/// library. Read against the engines again on 2026-11-27: Marian's src/translator/beam_search.cpp (search, purgeBeams) and history.h, Sockeye
/// 3's sockeye/beam_search.py (BeamSearch.forward, SortNormalizeAndUpdateFinished), and transformers' generation/utils.py by what its
/// ports say of _update_finished_beams and _check_early_stop_heuristic. Nothing differed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace sluice::test::reference {

using Tokens = std::vector<std::int32_t>;
/// Log-probabilities of all tokens after an output.
using Distribution = std::function<std::vector<float>(Tokens const&)>;

struct Output {
  Tokens tokens;
  double score;
};

inline constexpr double impossible = -std::numeric_limits<double>::infinity();

struct Cell {
  double score;
  std::size_t row;
  std::int32_t token;
};

/// The best cells of a matrix of scores, ties in row-major order; without impossible ones.
inline std::vector<Cell> best_cells(std::vector<std::vector<double>> const& matrix, std::size_t count) {
  std::vector<Cell> cells;
  for (std::size_t r = 0; r < matrix.size(); ++r)
    for (std::size_t v = 0; v < matrix[r].size(); ++v)
      if (matrix[r][v] > impossible) cells.push_back({matrix[r][v], r, static_cast<std::int32_t>(v)});
  std::stable_sort(cells.begin(), cells.end(), [](Cell const& a, Cell const& b) { return a.score > b.score; });
  if (cells.size() > count) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(count), cells.end());
  return cells;
}

inline Tokens plus(Tokens tokens, std::int32_t token) {
  tokens.push_back(token);
  return tokens;
}

inline void sort_outputs(std::vector<Output>& outputs) {
  std::stable_sort(outputs.begin(), outputs.end(), [](Output const& a, Output const& b) { return a.score > b.score; });
}

enum class Early { no, yes, never };

/// Hugging Face transformers' vectorised beam search (4.50 and later): running beams, and a pool of k finished ones.
inline std::vector<Output> huggingface(Distribution const& next, Tokens const& ends, std::size_t k, double power,
                                       Early early, std::size_t longest) {
  struct Running {
    Tokens tokens;
    double score;
  };
  struct Pooled {
    Tokens tokens;
    double score;
    bool finished;
  };
  constexpr double gone = -1e9;
  std::vector<Running> running(k, {{}, gone});
  running[0].score = 0;
  std::vector<Pooled> pool(k, {{}, gone, false});
  auto improvable = true;
  for (std::size_t length = 1;; ++length) {
    std::vector<std::vector<double>> matrix;
    for (auto const& r : running) {
      auto& row = matrix.emplace_back();
      for (auto const x : next(r.tokens)) row.push_back(r.score + static_cast<double>(x));
    }
    auto const candidates = best_cells(matrix, std::max<std::size_t>(2, 1 + ends.size()) * k);
    std::vector<Running> survivors;
    auto const full = std::all_of(pool.begin(), pool.end(), [](Pooled const& p) { return p.finished; });
    auto all_hit = true;
    std::vector<Pooled> merged = pool;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      auto const& c = candidates[i];
      auto const hit = std::count(ends.begin(), ends.end(), c.token) > 0 || length >= longest;
      all_hit = all_hit && hit;
      auto const tokens = plus(running[c.row].tokens, c.token);
      survivors.push_back({tokens, c.score + (hit ? gone : 0)});
      if (!hit || i >= k) continue;
      auto score = c.score / std::pow(static_cast<double>(length), power);
      if ((full && early == Early::yes) || !improvable) score += gone;
      merged.push_back({tokens, score, true});
    }
    std::stable_sort(survivors.begin(), survivors.end(),
                     [](Running const& a, Running const& b) { return a.score > b.score; });
    survivors.resize(k, {{}, 2 * gone});
    running = survivors;
    std::stable_sort(merged.begin(), merged.end(), [](Pooled const& a, Pooled const& b) { return a.score > b.score; });
    merged.resize(k, {{}, gone, false});
    pool = merged;

    auto const at = early == Early::never && power > 0 ? longest : length;
    auto const best = running[0].score / std::pow(static_cast<double>(at), power);
    auto any = false;
    for (auto const& p : pool) any = any || best > (p.finished ? pool.back().score : gone);
    improvable = improvable && any;
    auto const now_full = std::all_of(pool.begin(), pool.end(), [](Pooled const& p) { return p.finished; });
    if (!improvable || (now_full && early == Early::yes) || all_hit) break;
  }
  std::vector<Output> outputs;
  for (auto const& p : pool)
    if (p.finished) outputs.push_back({p.tokens, p.score});
  return outputs;
}

/// Sockeye 3: works with costs; a finished row stays in its beam at its normalised cost. Stops when all rows are
/// finished.
inline std::vector<Output> sockeye(Distribution const& next, std::int32_t end, std::size_t k, double alpha, double beta,
                                   std::size_t longest) {
  struct Row {
    Tokens tokens;
    double cost;
    bool finished;
  };
  std::vector<Row> beam{{{}, 0, false}};
  for (std::size_t t = 1; t <= longest; ++t) {
    std::vector<std::vector<double>> matrix;
    for (auto const& row : beam) {
      auto const log_probs = next(row.finished ? Tokens{} : row.tokens);
      std::vector<double> scores(log_probs.size(), impossible);
      if (row.finished) scores[0] = -row.cost;  // only padding
      else if (t == longest)
        scores[static_cast<std::size_t>(end)] =
            -row.cost + static_cast<double>(log_probs[static_cast<std::size_t>(end)]);
      else
        for (std::size_t v = 0; v < scores.size(); ++v) scores[v] = -row.cost + static_cast<double>(log_probs[v]);
      matrix.push_back(scores);
    }
    std::vector<Row> following;
    for (auto const& c : best_cells(matrix, k)) {
      auto const& parent = beam[c.row];
      if (parent.finished) following.push_back(parent);
      else following.push_back({plus(parent.tokens, c.token), -c.score, false});
      auto& row = following.back();
      if (!row.finished && c.token == end) {
        auto const length = static_cast<double>(row.tokens.size());
        row.finished = true;
        row.cost /= std::pow((beta + length) / (beta + 1), alpha);
      }
    }
    beam = following;
    if (std::all_of(beam.begin(), beam.end(), [](Row const& row) { return row.finished; })) break;
  }
  std::vector<Output> outputs;
  for (auto const& row : beam) outputs.push_back({row.tokens, -row.cost});
  sort_outputs(outputs);
  return outputs;
}

/// Marian: finished hypotheses leave, and their places with them.
inline std::vector<Output> marian(Distribution const& next, std::int32_t end, std::size_t k, double alpha,
                                  double word_penalty, std::size_t longest) {
  std::vector<Output> live{{{}, 0}}, outputs;
  auto const score = [&](double sum, std::size_t length) {
    auto const n = static_cast<double>(length);
    return (sum - word_penalty * n) / std::pow(n, alpha);
  };
  auto width = k;
  for (std::size_t length = 1; width > 0; ++length) {
    std::vector<std::vector<double>> matrix;
    for (auto const& h : live) {
      auto& row = matrix.emplace_back();
      for (auto const x : next(h.tokens)) row.push_back(h.score + static_cast<double>(x));
    }
    std::vector<Output> following;
    auto const chosen = best_cells(matrix, width);
    for (auto const& c : chosen) {
      auto const tokens = plus(live[c.row].tokens, c.token);
      if (c.token == end) outputs.push_back({tokens, score(c.score, length)}), --width;
      else if (length == longest) outputs.push_back({tokens, score(c.score, length)});
      else following.push_back({tokens, c.score});
    }
    live = following;
    if (length == longest || live.empty()) break;
  }
  sort_outputs(outputs);
  return outputs;
}

}  // namespace sluice::test::reference
