// SPDX-License-Identifier: Apache-2.0
/// \file
/// LogSoftmaxTopK: the expander for models that give scores.
#pragma once

#include <sluice/core/expansion.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/output/line_scan.hpp>
#include <sluice/output/simd.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::inline v0 {
inline namespace SLUICE_ISA {

/// Softmax and selection in one pass over each line (papers: Hoang et al. 2018, "Fast Neural Machine Translation
/// Implementation"; Milakov and Gimelshein 2018, "Online normalizer calculation for softmax").
///
/// log_prob(v) = x(v) - log sum_w exp x(w). Plain queries (best, probes, a few edits after the softmax) read the line
/// once; the rarer fields of Query read it again. The k best cost O(V / 16 + 16 k log k) beyond the pass, whatever the
/// order of the scores. Log-probabilities err by at most 1e-5. A line's answer depends on that line alone (but for
/// Group::keep). Allocates nothing once it has seen its largest line and its longest lists.
class LogSoftmaxTopK {
 public:
  /// \param scores   one line per query, [queries.size(), V]; T is float, or anything that converts to float
  /// \param queries  see Query
  /// \param groups   their `lines` add up to queries.size(); may be empty if nobody asks to keep
  template <class T>
  Expansion expand(Scores<T> const& scores, std::span<Query const> queries, std::span<Group const> groups) {
    begin();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto const line = scores[static_cast<std::ptrdiff_t>(i)];
      if constexpr (std::is_same_v<T, float>) {
        add(line, scores.kind, queries[i]);
      } else {
        converted_.resize(line.size());
        std::ranges::transform(line, converted_.begin(), [](T x) { return static_cast<float>(x); });
        add(converted_, scores.kind, queries[i]);
      }
    }
    return end(queries, groups);
  }

  /// The same in three parts, for expanders that make the lines themselves: begin, add line by line, end.
  void begin() { entries_.clear(), best_.clear(), probes_.clear(); }

  void add(std::span<float const> line, Kind kind, Query const& query) {
    auto const before = query.stage == Stage::before_softmax;
    auto const edited = before && (!query.edits.empty() || query.only != nullptr);
    if (edited || query.temperature != 1.0f) {
      work_.assign(line.begin(), line.end());
      if (edited) edit(work_, query);
      if (query.temperature != 1.0f)
        for (auto& x : work_) x /= query.temperature;
      line = work_, kind = Kind::logits;
    }
    auto const normalise = query.normalise && kind == Kind::logits;
    scan_.scan(line, normalise);
    auto& entry = entries_.emplace_back();
    entry.best = best_.size(), entry.probes = probes_.size();
    if (!scan_.valid()) {
      entry.valid = false;
      return;
    }
    auto const possible = scan_.maximum() > LineScan::lowest;
    auto const norm = normalise && possible ? Norm{static_cast<double>(scan_.maximum()), scan_.log_sum()} : Norm{};
    entry.log_sum_exp = static_cast<float>(norm.maximum + norm.log_sum);
    if (query.entropy || query.typical > 0) entropy_ = entropy(line, norm);
    if (query.entropy) entry.entropy = static_cast<float>(entropy_);
    select(line, norm, before ? Query{} : query, query);
    entry.best_count = best_.size() - entry.best, entry.probe_count = probes_.size() - entry.probes;
  }

  Expansion end(std::span<Query const> queries, std::span<Group const> groups) {
    std::size_t first = 0;
    for (auto const& group : groups) {
      auto const lines = static_cast<std::size_t>(group.lines);
      if (group.keep > 0) merge(queries.subspan(first, lines), first, static_cast<std::size_t>(group.keep));
      first += lines;
    }
    return {entries_, best_, probes_};
  }

 private:
  /// What turns a score into a log-probability. Two subtractions: the sum would be lost in a large maximum.
  struct Norm {
    double maximum = 0, log_sum = 0;
    double operator()(float x) const { return static_cast<double>(x) - maximum - log_sum; }
    float rounded(float x) const { return static_cast<float>((*this)(x)); }
  };

  static float changed(float x, Edit const& edit) { return (x > 0 ? x / edit.penalty : x * edit.penalty) + edit.add; }
  static void edit(std::span<float> line, Query const& query) {
    for (auto const& e : query.edits) {
      auto& x = line[static_cast<std::size_t>(e.token)];
      x = changed(x, e);
    }
    if (query.only != nullptr)
      for (std::size_t v = 0; v < line.size(); ++v)
        if (!query.only->contains(static_cast<Token>(v))) line[v] = LineScan::lowest;
  }

  /// Lists and probes of the line just scanned. `after` holds the edits that act on log-probabilities.
  void select(std::span<float const> line, Norm norm, Query const& after, Query const& query) {
    constexpr std::size_t few = 32;
    auto const plain = query.noise == 0 && query.mass <= 0 && query.within <= 0 && query.typical <= 0;
    if (after.only != nullptr || after.edits.size() > few || (!plain && !after.edits.empty())) {
      log_probs_.resize(line.size());  // many changes: write the log-probabilities down and look at those
      std::ranges::transform(line, log_probs_.begin(), [&](float x) { return norm.rounded(x); });
      edit(log_probs_, after);
      scan_.scan(log_probs_, false);
      select(log_probs_, {}, Query{}, query);
      return;
    }
    found_.clear();
    if (query.best > 0 && query.noise == 0) {
      gather(static_cast<std::size_t>(query.best) + after.edits.size());
      if (after.edits.empty())
        for (auto const& f : found_) best_.push_back({f.token, norm.rounded(f.score)});
      else add_edited(line, norm, after, static_cast<std::size_t>(query.best));
    }
    if (!plain) select_more(line, norm, query);
    for (auto const token : query.probes) probes_.push_back(with_edits(line, norm, after, token));
  }

  static float with_edits(std::span<float const> line, Norm norm, Query const& after, Token token) {
    auto x = norm.rounded(line[static_cast<std::size_t>(token)]);
    for (auto const& e : after.edits)
      if (e.token == token) x = changed(x, e);
    return x;
  }

  /// The edited tokens leave their places in found_ and come back where they belong now; the best go to the list.
  void add_edited(std::span<float const> line, Norm norm, Query const& after, std::size_t best) {
    std::erase_if(found_, [&](Found const& f) {
      return std::ranges::find(after.edits, f.token, &Edit::token) != after.edits.end();
    });
    for (auto& f : found_) f.rank = norm(f.score);
    for (auto e = after.edits.begin(); e != after.edits.end(); ++e) {
      auto const seen =
          std::find_if(after.edits.begin(), e, [&](Edit const& other) { return other.token == e->token; }) != e;
      auto const x = with_edits(line, norm, after, e->token);
      if (!seen && x > LineScan::lowest) found_.push_back({e->token, x, static_cast<double>(x)});
    }
    auto const size = std::min(found_.size(), best);
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(size), found_.end(), better);
    for (std::size_t i = 0; i < size; ++i) best_.push_back({found_[i].token, static_cast<float>(found_[i].rank)});
  }

  /// The rarer ways to choose a list: top-p, min-p, typical, noise.
  void select_more(std::span<float const> line, Norm norm, Query const& query) {
    auto const mark = entries_.back().best;
    auto const known = best_.size() - mark;  // of best, without noise
    auto longest = known;
    if (query.mass > 0) {
      for (std::size_t k = 64;; k *= 4) {
        found_.clear();
        gather(k);
        std::size_t n = 0;
        double held = 0;
        while (n < found_.size() && held < static_cast<double>(query.mass)) held += std::exp(norm(found_[n++].score));
        longest = std::max(longest, n);
        if (n < found_.size() || found_.size() < k) break;
      }
    }
    if (query.within > 0) {
      auto const bar = static_cast<double>(scan_.maximum()) + std::log(static_cast<double>(query.within));
      std::size_t n = 0;
      scan_.gather(std::nextafter(static_cast<float>(bar), LineScan::lowest),
                   [&](Token, float x) { n += static_cast<double>(x) >= bar; });
      longest = std::max(longest, n);
    }
    if (longest > known) {
      best_.resize(mark);
      found_.clear();
      gather(longest);
      for (auto const& f : found_) best_.push_back({f.token, norm.rounded(f.score)});
    }
    if (query.typical > 0) add_typical(line, norm, query, mark);
    if (query.noise != 0 && query.best > 0) add_perturbed(line, norm, query, mark);
  }

  void add_typical(std::span<float const> line, Norm norm, Query const& query, std::size_t mark) {
    found_.clear();
    for (std::size_t v = 0; v < line.size(); ++v)
      if (line[v] > LineScan::lowest)
        found_.push_back({static_cast<Token>(v), line[v], -std::abs(norm(line[v]) + entropy_)});
    std::ranges::sort(found_, better);
    std::size_t n = 0;
    double held = 0;
    while (n < found_.size() && held < static_cast<double>(query.typical)) held += std::exp(norm(found_[n++].score));
    found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(n), found_.end());
    unite(norm, mark);
  }

  /// Gumbel-top-k: the k largest of log_prob + gumbel. A token can only be among them if its uniform number u satisfies
  /// 1 - u < exp(log_prob - k-th best), because exp(-y) >= 1 - y: most tokens cost a hash and a
  /// vectorised exp, but no logarithm.
  void add_perturbed(std::span<float const> line, Norm norm, Query const& query, std::size_t mark) {
    auto const k = static_cast<std::size_t>(query.best);
    found_.clear();
    auto bar = -std::numeric_limits<double>::infinity();
    constexpr std::size_t chunk = 256;
    std::array<float, chunk> tail, limit;  // 1 - uniform, and what it must not exceed
    for (std::size_t first = 0; first < line.size(); first += chunk) {
      auto const part = line.subspan(first, std::min(chunk, line.size() - first));
      auto const size = static_cast<Eigen::Index>(part.size());
      auto const full = found_.size() >= k;
      if (full) {
        for (std::size_t i = 0; i < part.size(); ++i)
          tail[i] = static_cast<float>(~derive(query.noise, first + i) >> 11) * 0x1p-53f;
        auto const shift = bar - norm(0);
        auto const margin = 1e-3 + 1e-6 * std::abs(shift);  // more than floats err
        Eigen::Map<Eigen::ArrayXf>(limit.data(), size) =
            (Eigen::Map<Eigen::ArrayXf const>(part.data(), size) - static_cast<float>(shift - margin)).exp();
      }
      for (std::size_t i = 0; i < part.size(); ++i) {
        if ((full && tail[i] > limit[i]) || part[i] == LineScan::lowest) continue;
        auto const token = static_cast<Token>(first + i);
        // from the log-probability as it is listed, so that a draw from a list of everything is the same
        auto const value = static_cast<double>(norm.rounded(part[i])) + gumbel(query.noise, token);
        if (found_.size() >= k && value <= bar) continue;
        if (found_.size() >= k) std::ranges::pop_heap(found_, better), found_.pop_back();
        found_.push_back({token, part[i], value});
        std::ranges::push_heap(found_, better);
        bar = found_.front().rank;
      }
    }
    if (best_.size() > mark) {
      unite(norm, mark);
    } else {
      std::ranges::sort(found_, better);
      for (auto const& f : found_) best_.push_back({f.token, norm.rounded(f.score)});
    }
  }

  /// The list from `mark` on becomes its union with found_, best log-probability first.
  void unite(Norm norm, std::size_t mark) {
    for (auto const& f : found_) best_.push_back({f.token, norm.rounded(f.score)});
    auto const begin = best_.begin() + static_cast<std::ptrdiff_t>(mark);
    std::sort(begin, best_.end(), [](Candidate a, Candidate b) {
      return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
    });
    best_.erase(std::unique(begin, best_.end()), best_.end());
  }

  static double entropy(std::span<float const> line, Norm norm) {
    double total = 0;
    for (auto const x : line)
      if (x > LineScan::lowest) total -= std::exp(norm(x)) * norm(x);
    return total;
  }

  /// The k best scores of the line just scanned, best first, to found_.
  void gather(std::size_t k) {
    scan_.gather(scan_.threshold(k), [&](Token token, float x) {
      found_.push_back({token, x, static_cast<double>(x)});
    });
    auto const size = std::min(found_.size(), k);
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(size), found_.end(), better);
    found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(size), found_.end());
  }

  /// Cuts the lists of one group where they are strictly worse than its keep-th best: what a merge on a device does.
  void merge(std::span<Query const> queries, std::size_t first, std::size_t keep) {
    totals_.clear();
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (queries[i].noise != 0) return;  // lists are in another order
      auto const& e = entries_[first + i];
      for (auto j = e.best; j < e.best + e.best_count; ++j)
        totals_.push_back(queries[i].base + static_cast<double>(best_[j].log_prob));
    }
    if (totals_.size() <= keep) return;
    auto const last = totals_.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
    std::nth_element(totals_.begin(), last, totals_.end(), std::greater{});
    for (std::size_t i = 0; i < queries.size(); ++i) {
      auto& e = entries_[first + i];
      while (e.best_count > 0 &&
             queries[i].base + static_cast<double>(best_[e.best + e.best_count - 1].log_prob) < *last)
        --e.best_count;
    }
  }

  struct Found {
    Token token;
    float score;
    double rank;
  };
  static bool better(Found const& a, Found const& b) { return a.rank != b.rank ? a.rank > b.rank : a.token < b.token; }

  LineScan scan_;
  std::vector<Expansion::Entry> entries_;
  std::vector<Candidate> best_;
  std::vector<float> probes_, work_, log_probs_, converted_;
  std::vector<Found> found_;
  std::vector<double> totals_;
  double entropy_ = 0;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0
