// SPDX-License-Identifier: Apache-2.0
/// \file
/// The hypotheses of a beam over alignments: which wait at which clock, which are merged, which slot each continues.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/plan.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/alignments.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// log(exp(a) + exp(b)).
inline double log_add(double a, double b) {
  auto const most = (std::max)(a, b), least = (std::min)(a, b);
  return least == -std::numeric_limits<double>::infinity() ? most : most + std::log1p(std::exp(least - most));
}

/// Some alignments that have written the same output and are at the same frame.
struct Aligned {
  std::int32_t parent = -1;  // the output: that of this node, and
  Token label = -1;          // this label; both -1: nothing
  std::int32_t node = -1;    // its node, if it has one
  bool writes = false;       // whether `token`, which is still to be fed, wrote the label
  bool over = false;         // past the last frame
  Slot slot = 0;             // what is to be continued,
  Slot to = 0;               // in this one
  Token token = 0;           // with this
  std::int32_t frame = 0;    // after it
  std::int32_t symbols = 0;  // labels since the last move
  double total = 0;          // the logarithm of the alignments' probabilities together
  double best = 0;           // and of the likeliest one's, to which belong slot and token, and
  std::int32_t trace = -1;   // its labels; without the last one if `writes`,
  AlignedToken last{};       // which is this
};

/// Hypotheses wait in buckets, by a clock that only goes on. In a bucket, hypotheses of the same output are one.
class AlignmentBeam {
 public:
  /// \param span  how far ahead of the clock a hypothesis can wait
  SLUICE_LAZY void begin(std::int32_t width, double threshold, std::int32_t span, std::int32_t slot_count) {
    width_ = static_cast<std::size_t>(width), threshold_ = threshold, clock_ = 0;
    buckets_.resize(static_cast<std::size_t>(span) + 1);
    for (auto& bucket : buckets_) bucket.clear();
    held_.assign(static_cast<std::size_t>(slot_count), 0), uses_.assign(static_cast<std::size_t>(slot_count), 0);
    over_.clear(), ending_.clear(), active_.clear(), traces_.clear();
  }

  std::int32_t clock() const { return clock_; }
  /// Those that feed a token next, the likeliest first until place() has put them in the order of their slots.
  std::vector<Aligned>& active() { return active_; }
  std::vector<Aligned> const& active() const { return active_; }
  /// Those that have passed the last frame.
  std::vector<Aligned>& over() { return over_; }
  std::vector<Aligned> const& over() const { return over_; }
  /// Those that have, and what their end adds is not known yet.
  std::vector<Aligned>& ending() { return ending_; }
  std::vector<Aligned> const& ending() const { return ending_; }
  template <class F>
  void for_each_waiting(F&& f) const {
    for (auto const& bucket : buckets_)
      for (auto const& one : bucket) f(one);
  }
  /// Calls f(one) for all that may go on, or whose end is not known yet.
  template <class F>
  void for_each_open(F&& f) {
    for (auto& bucket : buckets_)
      for (auto& one : bucket) f(one);
    for (auto& one : active_) f(one);
    for (auto& one : ending_) f(one);
  }
  /// Lets all that wait leave the beam.
  template <class F>
  void empty_waiting(F&& f) {
    for (auto& bucket : buckets_) {
      moved_.clear(), moved_.swap(bucket);
      for (auto const& one : moved_) f(one);
    }
  }

  void wait(std::int32_t clock, Aligned const& one) { bucket(clock).push_back(one); }
  /// Merges and prunes all that wait. What cannot be among the `width` best that are over need not go on.
  SLUICE_LAZY void prune() {
    prune(over_), prune(ending_);
    auto least = -std::numeric_limits<double>::infinity();
    if (!over_.empty()) least = over_.front().total - threshold_;
    if (over_.size() == width_) least = (std::max)(least, over_.back().total);
    for (auto& bucket : buckets_) {
      prune(bucket);
      while (!bucket.empty() && bucket.back().total < least) bucket.pop_back();
    }
  }
  /// What a hypothesis must exceed to be among the `width` best that wait or are over.
  SLUICE_LAZY double bar() {
    totals_.clear();
    for_each_waiting([&](Aligned const& one) { totals_.push_back(one.total); });
    for (auto const& one : over_) totals_.push_back(one.total);
    for (auto const& one : ending_) totals_.push_back(one.total);
    if (totals_.empty()) return -std::numeric_limits<double>::infinity();
    auto const best = *std::max_element(totals_.begin(), totals_.end());
    if (totals_.size() < width_) return best - threshold_;
    auto const last = totals_.begin() + static_cast<std::ptrdiff_t>(width_) - 1;
    std::nth_element(totals_.begin(), last, totals_.end(), std::greater<>());
    return (std::max)(best - threshold_, *last);
  }

  /// Goes on to the next bucket that holds anything, and makes that active; false: none does.
  SLUICE_LAZY bool next() {
    active_.clear();
    for (std::size_t i = 0; i < buckets_.size(); ++i, ++clock_) {
      auto& here = bucket(clock_);
      if (here.empty()) continue;
      active_.swap(here);
      return true;
    }
    return false;
  }

  /// Gives every active hypothesis a slot, and sorts them by it. A slot that others still wait for is not continued in
  /// place.
  SLUICE_LAZY void place() {
    std::fill(uses_.begin(), uses_.end(), 0);
    for_each_waiting([&](Aligned const& one) { uses_[index(one.slot)] = waited_for; });
    for (auto& one : active_) {
      auto& uses = uses_[index(one.slot)];
      one.to = uses == 0 ? one.slot : -1;
      if (uses == 0) uses = continued;
    }
    std::size_t free = 0;
    for (auto& one : active_) {
      if (one.to >= 0) continue;
      while (uses_[free] != 0) ++free;
      one.to = static_cast<Slot>(free++);
    }
    std::sort(active_.begin(), active_.end(), [](Aligned const& a, Aligned const& b) { return a.to < b.to; });
  }
  /// Plans the rows of the active hypotheses, one token each.
  SLUICE_LAZY void plan_row(Plan& plan, Aligned const& one) {
    plan.row(one.slot, one.to, held_[index(one.slot)], {&one.token, 1});
  }
  /// The slots hold what has been planned.
  SLUICE_LAZY void fed() {
    lengths_.clear();
    for (auto const& one : active_) lengths_.push_back(held_[index(one.slot)] + 1);
    for (std::size_t i = 0; i < active_.size(); ++i)
      held_[index(active_[i].to)] = lengths_[i], active_[i].slot = active_[i].to;
  }
  void hold(Slot slot, std::int32_t tokens) { held_[index(slot)] = tokens; }
  /// The most tokens that a slot of an active hypothesis holds.
  SLUICE_LAZY std::int32_t longest() const {
    std::int32_t most = 0;
    for (auto const& one : active_) most = (std::max)(most, held_[index(one.slot)]);
    return most;
  }

  /// The labels of a hypothesis' likeliest alignment, with the one that it is about to write.
  SLUICE_LAZY std::int32_t settle(Aligned& one) {
    if (!one.writes) return one.trace;
    one.last.before = one.trace, one.writes = false;
    return one.trace = traces_.add(one.last);
  }
  SLUICE_LAZY void write(Aligned const& one, std::size_t labels, Hypothesis& out) const {
    out.log_probs.resize(labels), out.frames.resize(labels);
    auto n = labels;
    auto const put = [&](AlignedToken const& trace) {
      --n, out.log_probs[n] = trace.peak, out.frames[n] = trace.frames;
    };
    if (one.writes) put(one.last);
    for (auto at = one.trace; at >= 0; at = traces_[at].before) put(traces_[at]);
  }
  /// The frame after the last label of a hypothesis' likeliest alignment; 0: it has none.
  std::int32_t last_end(Aligned const& one) const {
    if (one.writes) return one.last.frames.end;
    return one.trace < 0 ? 0 : traces_[one.trace].frames.end;
  }

  /// Drops labels that belong to no hypothesis, if there are many.
  SLUICE_LAZY void tidy() {
    if (!traces_.full()) return;
    kept_.clear();
    auto const keep = [&](Aligned const& one) { kept_.push_back(one.trace); };
    for_each_open(keep);
    for (auto const& one : over_) keep(one);
    traces_.collect(kept_);
    std::size_t i = 0;
    auto const put = [&](Aligned& one) { one.trace = kept_[i++]; };
    for_each_open(put);
    for (auto& one : over_) put(one);
  }

 private:
  static constexpr std::uint8_t continued = 1, waited_for = 2;

  static std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }
  std::vector<Aligned>& bucket(std::int32_t clock) {
    return buckets_[static_cast<std::size_t>(clock) % buckets_.size()];
  }

  SLUICE_LAZY void prune(std::vector<Aligned>& all) {
    if (all.size() < 2) return;
    auto const same = [](Aligned const& a, Aligned const& b) { return a.parent == b.parent && a.label == b.label; };
    auto const by_output = [](Aligned const& a, Aligned const& b) {
      return a.parent != b.parent ? a.parent < b.parent : a.label < b.label;
    };
    std::sort(all.begin(), all.end(), [&](Aligned const& a, Aligned const& b) {
      if (!same(a, b)) return by_output(a, b);
      return a.best != b.best ? a.best > b.best : a.slot < b.slot;
    });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      auto& one = all[kept];
      if (!same(one, all[i])) {
        if (++kept != i) all[kept] = all[i];
        continue;
      }
      one.total = log_add(one.total, all[i].total);  // the likeliest one comes first
    }
    all.resize(kept + 1);
    std::sort(all.begin(), all.end(), [&](Aligned const& a, Aligned const& b) {
      return a.total != b.total ? a.total > b.total : by_output(a, b);
    });
    if (all.size() > width_) all.resize(width_);
    auto const least = all.front().total - threshold_;
    while (all.back().total < least) all.pop_back();
  }

  std::size_t width_ = 1;
  double threshold_ = 0;
  std::int32_t clock_ = 0;
  std::vector<std::vector<Aligned>> buckets_;  // [clock modulo their number]
  std::vector<Aligned> active_, over_, ending_;
  std::vector<Aligned> moved_;  // scratch
  Alignments traces_;
  std::vector<std::int32_t> kept_;  // scratch
  std::vector<std::int32_t> held_;  // [slot]: tokens in it
  std::vector<std::uint8_t> uses_;  // [slot]
  std::vector<std::int32_t> lengths_;
  std::vector<double> totals_;
};

}  // namespace sluice::inline v0::detail
