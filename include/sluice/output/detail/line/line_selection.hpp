// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rarer queries, which read a line more than once.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/line_allowed.hpp>
#include <sluice/output/detail/line/line_counts.hpp>
#include <sluice/output/detail/line/line_edited.hpp>
#include <sluice/output/detail/line/line_norm.hpp>
#include <sluice/output/detail/line/line_pass.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/exponential.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line_lists.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Answers any query about a whole line in memory: top-p, min-p, typical, top-n-sigma, noise, entropy, any number of
/// edits.
class LineSelection {
 public:
  /// Appends the answer to `lists`. Applies the query's changes before the softmax to `line` itself.
  /// \param tokens  token of each index in the line, ascending; empty = the index itself. Edits and probes name
  ///                indices; a probe of index -1 gives -infinity
  SLUICE_LAZY void answer(std::span<float> line, Kind kind, Query const& query, LineLists& lists,
                          std::span<Token const> tokens = {}) {
    if (query.stage == Stage::before_softmax) {
      if (!query.edits.empty() || query.only != nullptr) change(line, 0, query.edits, query.only);
      if (query.process != nullptr) query.process->process(line);
    }
    if (query.shortlist != nullptr) mask(line, 0, *query.shortlist);
    centre_ = query.temperature != 1.0f ? divide(line, query.temperature) / static_cast<double>(query.temperature) : 0;
    answer_changed(line, LinePass::changes(query) ? Kind::logits : kind, query, lists, tokens);
    centre_ = 0;
  }

  /// The same, if no change before the softmax is needed, or all have been made.
  SLUICE_LAZY void answer_changed(std::span<float const> line, Kind kind, Query const& query, LineLists& lists,
                                  std::span<Token const> tokens = {}) {
    tokens_ = tokens, lists_ = &lists;
    auto const before = query.stage == Stage::before_softmax;
    auto const allowed = LineAllowed::suffices(query), edited = LineEdited::suffices(query);
    auto const normalise = query.normalise && kind == Kind::logits;
    scan_.begin(allowed ? LineAllowed::wanted(query) : edited ? LineEdited::wanted(query) : 0, normalise);
    scan_.run(line);
    auto& entry = lists.open();
    entry.valid = scan_.valid();
    if (!entry.valid) return;
    auto const norm = normalise && scan_.maximum() > LineScan::lowest
                          ? LineNorm{static_cast<double>(scan_.maximum()), scan_.log_sum()}
                          : LineNorm{};
    entry.log_sum_exp = static_cast<float>(norm.maximum + norm.log_sum);
    if (centre_ != 0)
      entry.log_sum_exp = std::copysign((std::numeric_limits<float>::max)(), static_cast<float>(centre_));
    if (query.entropy || query.typical > 0) entropy_ = entropy(line, norm);
    if (query.entropy) entry.entropy = static_cast<float>(entropy_);
    if (allowed && allowed_.choose(line, scan_.best(), norm, query)) {
      for (auto const& one : allowed_.ranked()) lists.list(token(one.place), norm.rounded(one.value));
      for (auto const place : query.probes) lists.probe(probed(line, norm, query, place));
    } else if (edited && line_edited_.choose(line, scan_.best(), norm, query)) {
      for (auto const& one : line_edited_.ranked()) lists.list(token(one.place), norm.rounded(one.value));
      for (auto const place : query.probes) lists.probe(norm.rounded(line_edited_.score(place)));
    } else if (!before && (!query.edits.empty() || query.only != nullptr || query.process != nullptr)) {
      copy_scores(line, query.only, edited_);
      change(edited_, norm, query.edits, query.only);
      if (query.process == nullptr) {
        select(edited_, norm, query);
      } else {  // which sees log-probabilities
        for (auto& x : edited_) x = norm.rounded(x);
        query.process->process(edited_);
        select(edited_, LineNorm{}, query);
      }
    } else {
      select(line, norm, query);
    }
    entry.impossible = query.lists() && entry.best_count == 0;
  }

 private:
  Token token(std::size_t place) const { return tokens_.empty() ? static_cast<Token>(place) : tokens_[place]; }
  Token token(Token place) const { return token(static_cast<std::size_t>(place)); }
  SLUICE_LAZY std::size_t place(Token token) const {
    if (tokens_.empty()) return static_cast<std::size_t>(token);
    return static_cast<std::size_t>(std::lower_bound(tokens_.begin(), tokens_.end(), token) - tokens_.begin());
  }

  SLUICE_LAZY void select(std::span<float const> line, LineNorm norm, Query const& query) {
    if (query.best > 0 && query.noise == 0) list_best(line, norm, static_cast<std::size_t>(query.best));
    auto longest = lists_->best().size();
    if (query.mass > 0) longest = (std::max)(longest, holding(line, norm, static_cast<double>(query.mass)));
    if (query.within > 0) longest = (std::max)(longest, count_within(line, static_cast<double>(query.within)));
    if (query.deviations > 0) longest = (std::max)(longest, count_near(line, static_cast<double>(query.deviations)));
    if (query.at_least > 0)
      longest = (std::max)(longest, count_from(line, std::log(static_cast<double>(query.at_least)) - norm(0)));
    if (longest > lists_->best().size()) {
      lists_->shorten(0);
      list_best(line, norm, longest);
    }
    if (query.typical > 0) add_typical(line, norm, query);
    if (query.noise != 0 && query.best > 0) add_perturbed(line, norm, query);
    for (auto const place : query.probes)
      lists_->probe(place < 0 ? LineScan::lowest : norm.rounded(line[static_cast<std::size_t>(place)]));
  }

  /// A probe after edits and `only`.
  SLUICE_LAZY static float probed(std::span<float const> line, LineNorm norm, Query const& query, Token place) {
    if (place < 0 || !query.only->contains(place)) return LineScan::lowest;
    return norm.rounded(changed(line[static_cast<std::size_t>(place)], place, query.edits, norm));
  }

  SLUICE_LAZY std::span<Found const> best(std::span<float const> line, std::size_t k) {
    scan_.begin(k, false);
    scan_.run(line);
    return scan_.best();
  }
  SLUICE_LAZY void list_best(std::span<float const> line, LineNorm norm, std::size_t k) {
    for (auto const& found : best(line, k)) lists_->list(token(found.place), norm.rounded(found.score));
  }

  /// The smallest number of best tokens whose total probability reaches `mass`.
  SLUICE_LAZY std::size_t holding(std::span<float const> line, LineNorm norm, double mass) {
    for (std::size_t k = 64;; k *= 4) {
      auto const found = best(line, k);
      std::size_t n = 0;
      double held = 0;
      while (n < found.size() && held < mass) held += std::exp(norm(found[n++].score));
      if (n < found.size() || found.size() < k) return n;
    }
  }

  SLUICE_LAZY void add_typical(std::span<float const> line, LineNorm norm, Query const& query) {
    ranked_.clear();
    for (std::size_t v = 0; v < line.size(); ++v)
      if (line[v] > LineScan::lowest)
        ranked_.push_back({static_cast<Token>(v), line[v], -std::abs(norm(line[v]) + entropy_)});
    std::sort(ranked_.begin(), ranked_.end());
    std::size_t n = 0;
    double held = 0;
    while (n < ranked_.size() && held < static_cast<double>(query.typical)) held += std::exp(norm(ranked_[n++].value));
    ranked_.resize(n);
    unite(line, norm);
  }

  /// Gumbel-top-k: the k largest of log_prob + gumbel. A token can be among them only if its uniform number u satisfies
  /// 1 - u < exp(log_prob - k-th best), because exp(-y) >= 1 - y: most tokens cost a hash and a vectorised exp, but no
  /// logarithm.
  SLUICE_LAZY void add_perturbed(std::span<float const> line, LineNorm norm, Query const& query) {
    auto const k = static_cast<std::size_t>(query.best);
    ranked_.clear();
    auto bar = -std::numeric_limits<double>::infinity();
    constexpr std::size_t chunk = 256;
    std::array<float, chunk> tail, limit;  // 1 - uniform, and its limit
    for (std::size_t first = 0; first < line.size(); first += chunk) {
      auto const part = line.subspan(first, (std::min)(chunk, line.size() - first));
      auto const full = ranked_.size() >= k;
      if (full) {
        for (std::size_t i = 0; i < part.size(); ++i)
          tail[i] =
              static_cast<float>(~derive(query.noise, static_cast<std::uint64_t>(token(first + i))) >> 11) * 0x1p-53f;
        auto const shift = bar - norm(0);
        auto const margin = 1e-3 + 1e-6 * std::abs(shift);  // more than the floats' error
        exponentials(part, static_cast<float>(shift - margin), limit.data());
      }
      for (std::size_t i = 0; i < part.size(); ++i) {
        if ((full && tail[i] > limit[i]) || part[i] == LineScan::lowest) continue;
        // uses the listed log-probability, so that drawing from the full list gives the same result
        auto const value = static_cast<double>(norm.rounded(part[i])) + gumbel(query.noise, token(first + i));
        if (ranked_.size() >= k && value <= bar) continue;
        if (ranked_.size() >= k) std::pop_heap(ranked_.begin(), ranked_.end()), ranked_.pop_back();
        ranked_.push_back({static_cast<Token>(first + i), part[i], value});
        std::push_heap(ranked_.begin(), ranked_.end());
        bar = ranked_.front().rank;
      }
    }
    if (query.selects()) return unite(line, norm);
    std::sort(ranked_.begin(), ranked_.end());
    for (auto const& r : ranked_) lists_->list(token(r.place), norm.rounded(r.value));
  }

  /// min(1, exp(x - shift)) of every x, but at least 1e-38.
  SLUICE_LAZY static void exponentials(std::span<float const> line, float shift, float* to) {
    auto const bounded = [&](simd::Vec x) { return simd::exp_of_negative(-(simd::max)(shift - x, simd::Vec{})); };
    std::size_t i = 0;
    for (; i + simd::lanes <= line.size(); i += simd::lanes) simd::store(to + i, bounded(simd::load(line.data() + i)));
    for (; i < line.size(); ++i) to[i] = bounded(simd::broadcast(line[i]))[0];
  }

  /// Replaces the list by its union with ranked_, best score first.
  SLUICE_LAZY void unite(std::span<float const> line, LineNorm norm) {
    for (auto const candidate : lists_->best()) {
      auto const at = place(candidate.token);
      ranked_.push_back({static_cast<Token>(at), line[at], 0});
    }
    for (auto& r : ranked_) r.rank = static_cast<double>(r.value);
    std::sort(ranked_.begin(), ranked_.end());
    auto const same = [](Ranked const& a, Ranked const& b) { return a.place == b.place; };
    ranked_.erase(std::unique(ranked_.begin(), ranked_.end(), same), ranked_.end());
    lists_->shorten(0);
    for (auto const& r : ranked_) lists_->list(token(r.place), norm.rounded(r.value));
  }

  SLUICE_LAZY static double entropy(std::span<float const> line, LineNorm norm) {
    double total = 0;
    for (auto const x : line)
      if (x > LineScan::lowest) total -= std::exp(norm(x)) * norm(x);
    return total;
  }

  LineScan scan_;
  LineAllowed allowed_;
  LineEdited line_edited_;
  LineLists* lists_ = nullptr;
  std::span<Token const> tokens_{};
  std::vector<float> edited_;
  Buffer<Ranked> ranked_;
  double entropy_ = 0;
  double centre_ = 0;  ///< not 0: subtracted from all scores, see divide()
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
