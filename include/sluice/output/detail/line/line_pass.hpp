// SPDX-License-Identifier: Apache-2.0
/// \file
/// One query answered in one pass over its line.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/detail/line/line_norm.hpp>
#include <sluice/output/detail/line/line_scan.hpp>
#include <sluice/output/detail/simd/simd.hpp>
#include <sluice/output/line_lists.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {
inline namespace SLUICE_ISA {

/// Answers most queries (best, probes, some edits, a temperature) from blocks of scores that are read once and may then
/// be overwritten. The result does not depend on how the line is cut into blocks.
class LinePass {
 public:
  /// Whether one pass suffices.
  SLUICE_LAZY static bool suffices(Query const& query) {
    if (query.shared != nullptr) return true;  // Query::plain()
    constexpr std::size_t few = 64;            // looked for in every block
    auto const after = query.stage == Stage::after_softmax;
    return query.process == nullptr && query.noise == 0 && !query.selects() && !query.entropy &&
           query.probes.size() + query.edits.size() <= few && !(after && query.only != nullptr);
  }
  /// Whether blocks must go through change() first.
  static bool changes(Query const& query) {
    return edits_scores(query) || query.shortlist != nullptr || query.temperature != 1.0f;
  }

  /// Whether the mask is the only change before the softmax to the scores of these tokens.
  SLUICE_LAZY static bool only_masks(Query const& query, std::size_t first, std::size_t count) {
    if (!edits_scores(query) || query.only == nullptr || query.shortlist != nullptr || query.temperature != 1.0f)
      return false;
    return std::none_of(query.edits.begin(), query.edits.end(),
                        [&](Edit const& e) { return static_cast<std::size_t>(e.token) - first < count; });
  }

  /// \param query  must live until finish()
  SLUICE_LAZY void begin(Query const& query, Kind kind) {
    query_ = &query;
    after_ = query.stage == Stage::after_softmax ? query.edits : std::span<Edit const>{};
    normalise_ = query.normalise && (kind == Kind::logits || changes(query));
    auto const best = query.best > 0 ? static_cast<std::size_t>(query.best) : 0;
    // Edits may move that many tokens out of the list.
    scan_.begin(best > 0 && query.shared == nullptr ? best + after_.size() : 0, normalise_);
    probes_.assign(query.probes.size(), LineScan::lowest);
    edited_.assign(after_.size(), LineScan::lowest);
    if (query.shared == nullptr) return;
    auto const beyond = std::count_if(query.edits.begin(), query.edits.end(), [&](Edit const& edit) {
      return static_cast<std::size_t>(edit.token) >= query.shared->dense.size();
    });
    raised_.begin(best > 0 ? best + static_cast<std::size_t>(beyond) : 0, false);
  }

  /// Applies the query's changes before the softmax to the scores of tokens first .. first + scores.size() - 1.
  SLUICE_LAZY void change(std::span<float> scores, std::size_t first) const {
    if (edits_scores(*query_)) detail::change(scores, first, query_->edits, query_->only);
    if (query_->shortlist != nullptr) mask(scores, first, *query_->shortlist);
    if (query_->temperature != 1.0f)
      for (auto& x : scores) x /= query_->temperature;
  }

  /// Adds the scores (changed, if needed) of tokens first .. first + count - 1; see LineScan::add.
  SLUICE_LAZY void add(std::size_t first, float const* scores, std::size_t count) {
    add(first, scores, count, [scores](std::size_t i) {
      __builtin_prefetch(scores + i + LineScan::ahead);
      return simd::load(scores + i);
    });
  }
  /// The same for scores that are fetched into `scores` on the way.
  template <class Fetch>
  void add(std::size_t first, float const* scores, std::size_t count, Fetch const& fetch) {
    if (query_->shared == nullptr) {
      scan_.add(first, scores, count, fetch);
    } else {
      alignas(64) std::array<float, LineScan::block / LineScan::depth> maxima;
      scan_.add(first, scores, count, fetch, maxima.data());
      raise(first, scores, count, maxima.data());
    }
    pick_all(first, scores, count);
  }

  /// Adds the whole line at once; applies the query's changes to it.
  SLUICE_LAZY void run(std::span<float> line) {
    change(line, 0);
    auto const whole = line.size() / LineScan::chunk * LineScan::chunk;
    for (std::size_t first = 0; first < whole; first += LineScan::block)
      add(first, line.data() + first, (std::min)(LineScan::block, whole - first));
    if (whole == line.size()) return;
    alignas(64) std::array<float, LineScan::chunk> tail;
    std::fill(std::copy(line.begin() + static_cast<std::ptrdiff_t>(whole), line.end(), tail.begin()), tail.end(),
              LineScan::lowest);
    add(whole, tail.data(), tail.size());
  }

  /// After the last block: whether the line has no valid answer, perhaps because a low temperature overflowed. Then
  /// LineSelection, which has the whole line, answers instead of finish().
  SLUICE_LAZY bool overflowed() const {
    return query_->temperature < 1 && (!scan_.valid() || !(scan_.maximum() > LineScan::lowest));
  }

  /// After the last block: appends the answer.
  /// \param tokens  token of each index in the line, ascending; empty = the index itself. Edits and probes name
  ///                indices; a probe of index -1 gives -infinity
  SLUICE_LAZY void finish(LineLists& lists, std::span<Token const> tokens = {}) {
    auto& entry = lists.open();
    entry.valid = scan_.valid();
    if (!entry.valid) return;
    auto const norm = normalise_ && scan_.maximum() > LineScan::lowest
                          ? LineNorm{static_cast<double>(scan_.maximum()), scan_.log_sum()}
                          : LineNorm{};
    entry.log_sum_exp = static_cast<float>(norm.maximum + norm.log_sum);
    auto const token = [&](Token place) { return tokens.empty() ? place : tokens[static_cast<std::size_t>(place)]; };
    if (query_->best > 0 && after_.empty() && query_->shared == nullptr)
      for (auto const& found : scan_.best()) lists.list(token(found.place), norm.rounded(found.score));
    if (query_->best > 0 && (!after_.empty() || query_->shared != nullptr)) {
      if (query_->shared != nullptr) rank_raised(norm);
      else rank_edited(norm);
      for (auto const& found : ranked_) lists.list(token(found.place), norm.rounded(found.value));
    }
    entry.impossible = query_->lists() && entry.best_count == 0;
    for (std::size_t i = 0; i < probes_.size(); ++i)
      lists.probe(norm.rounded(probed(probes_[i], query_->probes[i], norm)));
  }

 private:
  /// A probe after the edits.
  float probed(float x, Token token, LineNorm norm) const {
    if (query_->shared != nullptr && token >= 0 && !names(after_, token)) return x + (*query_->shared)[token];
    return changed(x, token, after_, norm);
  }

  /// Looks for the best of what Query::shared adds to. Tokens that edits name are left out: rank_edited() adds them.
  SLUICE_LAZY void raise(std::size_t first, float const* scores, std::size_t count, float const* maxima) {
    if (query_->best <= 0) return;
    constexpr std::size_t some = 4 * LineScan::chunk;
    static_assert(LineScan::chunk == SharedEdits::padding);
    auto const& dense = query_->shared->dense;
    auto const end = (std::min)(count, dense.size() - (std::min)(dense.size(), first));
    alignas(64) std::array<float, some> raised;
    for (std::size_t begin = 0; begin < end; begin += some) {
      auto const size = (std::min)(some, end - begin), at = first + begin;
      for (std::size_t i = 0; i < size; i += simd::lanes)
        simd::store(raised.data() + i, simd::load(scores + begin + i) + simd::load(dense.data() + at + i));
      for (auto const& edit : after_)
        if (auto const place = static_cast<std::size_t>(edit.token) - at; place < size)
          raised[place] = LineScan::lowest;
      raised_.add(at, raised.data(), size);
    }
    raised_.add_known(first + end, scores + end, count - end, maxima + end / LineScan::depth);
  }

  /// Records the scores that probes and later edits need.
  SLUICE_LAZY void pick_all(std::size_t first, float const* scores, std::size_t count) {
    auto const pick = [&](Token token, float& to) {
      auto const place = static_cast<std::size_t>(token) - first;
      if (place < count) to = scores[place];
    };
    for (std::size_t i = 0; i < probes_.size(); ++i) pick(query_->probes[i], probes_[i]);
    for (std::size_t i = 0; i < edited_.size(); ++i) pick(after_[i].token, edited_[i]);
  }

  SLUICE_LAZY static bool names(std::span<Edit const> edits, Token token) {
    for (auto const& edit : edits)
      if (edit.token == token) return true;
    return false;
  }

  static bool edits_scores(Query const& query) {
    return query.stage == Stage::before_softmax &&
           (!query.edits.empty() || query.only != nullptr || query.process != nullptr);
  }

  /// Ranks the best after edits of their log-probabilities, into ranked_. Compares scores, since a log-probability is
  /// rounded.
  SLUICE_LAZY void rank_edited(LineNorm norm) {
    ranked_.clear();
    for (auto const& found : scan_.best())
      if (!names(after_, found.place)) ranked_.push_back({found.place, found.score, static_cast<double>(found.score)});
    for (std::size_t i = 0; i < after_.size(); ++i) {
      auto const token = after_[i].token;
      auto const before = after_.first(i);
      if (names(before, token)) continue;
      auto const x = changed(edited_[i], token, after_, norm);
      if (x > LineScan::lowest) ranked_.push_back({token, x, static_cast<double>(x)});
    }
    std::sort(ranked_.begin(), ranked_.end());
    ranked_.resize((std::min)(ranked_.size(), static_cast<std::size_t>(query_->best)));
  }

  /// The same beside shared edits. Of edits that are promised to be sorted, only those are ranked that may be among the best.
  SLUICE_LAZY void rank_raised(LineNorm norm) {
    auto const sorted = after_.first(static_cast<std::size_t>(query_->sorted.count > 0 ? 0 : query_->sorted.second));
    auto const late = after_.subspan(sorted.size());
    auto const is_sorted = [&](Token token) {
      auto const less = [](Edit const& edit, Token wanted) { return edit.token < wanted; };
      auto const place = std::lower_bound(sorted.begin(), sorted.end(), token, less);
      return place != sorted.end() && place->token == token;
    };
    auto const best = static_cast<std::size_t>(query_->best);
    ranked_.clear();
    for (auto const& found : raised_.best())
      if (!is_sorted(found.place) && !names(late, found.place))
        ranked_.push_back({found.place, found.score, static_cast<double>(found.score)});
    auto const floor = ranked_.size() < best ? LineScan::lowest : ranked_[best - 1].value;
    for (std::size_t i = 0; i < after_.size(); ++i) {
      auto const token = after_[i].token;
      auto const again = i >= sorted.size();
      if (again && (is_sorted(token) || names(after_.subspan(sorted.size(), i - sorted.size()), token))) continue;
      auto const x = changed(again ? edited_[i] : changed(edited_[i], after_[i], norm), token, late, norm);
      if (x > LineScan::lowest && x >= floor) ranked_.push_back({token, x, static_cast<double>(x)});
    }
    std::sort(ranked_.begin(), ranked_.end());
    ranked_.resize((std::min)(ranked_.size(), best));
  }

  Query const* query_ = nullptr;
  std::span<Edit const> after_{};
  bool normalise_ = true;
  LineScan scan_, raised_;
  std::vector<float> probes_, edited_;
  Buffer<Ranked> ranked_;
};

}  // namespace SLUICE_ISA
}  // namespace sluice::inline v0::detail
