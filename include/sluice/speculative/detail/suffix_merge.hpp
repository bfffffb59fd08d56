// SPDX-License-Identifier: Apache-2.0
/// \file
/// Merges two segments of a SuffixCache, a little at a time.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/suffix_segment.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Merges a large segment with a small one of younger texts. If both have more than `most` tokens, the texts that were not
/// used for longest are left out, the older first among equals. The texts are copied at once; the places are merged by step().
class SuffixMerge {
 public:
  SLUICE_LAZY SuffixMerge(std::shared_ptr<SuffixSegment const> older, std::shared_ptr<SuffixSegment const> younger,
                          std::int32_t depth, std::size_t most = (std::numeric_limits<std::size_t>::max)())
      : older_{std::move(older)},
        younger_{std::move(younger)},
        depth_(depth),
        made_(std::make_shared<SuffixSegment>()) {
    choose(most);
    made_->own_tokens.reserve(older_.segment->tokens.size() + younger_.segment->tokens.size());
    copy(older_), copy(younger_);
    made_->own_tokens.push_back(-1);
    made_->own_order.reserve(older_.segment->order.size() + younger_.segment->order.size());
    made_->keys.reserve(made_->own_order.capacity() / SuffixSegment::every + 1);
  }

  /// The work that is left: a search for each place of the small segment, and as much for every 64 that are copied.
  SLUICE_LAZY std::size_t work() const {
    auto const younger = younger_.segment->order.size() - younger_.done,
               older = older_.segment->order.size() - older_.done;
    return younger + (younger + older) / copied_at_once + 1;
  }

  /// Does so much of the work. Returns whether all of it is done.
  SLUICE_LAZY bool step(std::size_t work) {
    auto const places = older_.segment->order;
    auto const others = younger_.segment->order;
    for (; work > 0 && (younger_.done < others.size() || older_.done < places.size()); --work) {
      auto to = places.size();
      if (younger_.done < others.size()) {
        if (found_ == none) found_ = find(others[younger_.done]);
        to = found_;
      }
      auto const now = (std::min)(to, older_.done + copied_at_once);
      for (; older_.done < now; ++older_.done) push(older_, places[older_.done]);
      if (older_.done < to || younger_.done == others.size()) continue;
      push(younger_, others[younger_.done++]);
      found_ = none;
    }
    return younger_.done == others.size() && older_.done == places.size();
  }

  /// What was made, after all the work.
  SLUICE_LAZY std::shared_ptr<SuffixSegment const> take() {
    auto& made = *made_;
    made.used = std::make_unique<std::atomic<std::uint32_t>[]>(made.own_texts.size());
    std::size_t text = 0;
    for (auto const* part : {&older_, &younger_})
      for (std::size_t t = 0; t < part->segment->texts.size(); ++t)
        if (part->kept.empty() || part->kept[t] != 0)
          made.used[text++].store(part->segment->used[t].load(std::memory_order_relaxed), std::memory_order_relaxed);
    made.show();
    return std::move(made_);
  }

 private:
  static constexpr std::size_t copied_at_once = 64;
  static constexpr auto none = (std::numeric_limits<std::size_t>::max)();
  static constexpr auto gone = (std::numeric_limits<std::uint32_t>::max)();

  struct Part {
    std::shared_ptr<SuffixSegment const> segment;
    std::vector<std::uint8_t> kept{};    // [texts]; empty: all
    std::vector<std::uint32_t> moved{};  // [tokens], if not all are kept: where each is now
    std::uint32_t shift = 0;             // otherwise: how far all have moved
    std::size_t done = 0;                // places

    std::size_t length(std::size_t text) const {
      auto const& all = *segment;
      return (text + 1 < all.texts.size() ? all.texts[text + 1] : all.tokens.size() - 1) - all.texts[text];
    }
  };

  SLUICE_LAZY void choose(std::size_t most) {
    auto held = older_.segment->tokens.size() + younger_.segment->tokens.size() - 1;
    if (held <= most) return;
    struct Aged {
      std::uint32_t used;
      Part* part;
      std::size_t number;
    };
    std::vector<Aged> all;
    for (auto* part : {&older_, &younger_}) {
      part->kept.assign(part->segment->texts.size(), 1);
      for (std::size_t t = 0; t < part->kept.size(); ++t)
        all.push_back({part->segment->used[t].load(std::memory_order_relaxed), part, t});
    }
    std::stable_sort(all.begin(), all.end(), [](Aged const& a, Aged const& b) { return a.used < b.used; });
    for (auto const& text : all) {
      if (held <= most) break;
      text.part->kept[text.number] = 0;
      held -= text.part->length(text.number);
    }
  }

  SLUICE_LAZY void copy(Part& part) {
    auto& tokens = made_->own_tokens;
    auto const& from = *part.segment;
    part.shift = static_cast<std::uint32_t>(tokens.size());
    if (part.kept.empty()) {
      for (auto const text : from.texts) made_->own_texts.push_back(text + part.shift);
      tokens.insert(tokens.end(), from.tokens.begin(), from.tokens.end() - 1);
      return;
    }
    part.moved.assign(from.tokens.size(), gone);
    for (std::size_t t = 0; t < part.kept.size(); ++t) {
      if (part.kept[t] == 0) continue;
      auto const begin = from.texts[t];
      made_->own_texts.push_back(static_cast<std::uint32_t>(tokens.size()));
      for (std::size_t i = begin; i < begin + part.length(t); ++i) {
        part.moved[i] = static_cast<std::uint32_t>(tokens.size());
        tokens.push_back(from.tokens[i]);
      }
    }
  }

  /// How many places of the large segment come before one of the small segment, looking near the last one first.
  SLUICE_LAZY std::size_t find(std::uint32_t place) const {
    auto const& older = *older_.segment;
    auto const comes_first = [&](std::size_t i) {
      return !younger_.segment->before(place, older, older.order[i], depth_);
    };
    auto low = older_.done;
    std::size_t stride = 1;
    while (low + stride <= older.order.size() && comes_first(low + stride - 1)) low += stride, stride *= 2;
    auto high = (std::min)(low + stride - 1, older.order.size());
    while (low < high) {
      auto const middle = low + (high - low) / 2;
      if (comes_first(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  SLUICE_LAZY void push(Part const& part, std::uint32_t place) {
    auto const now = part.moved.empty() ? place + part.shift : part.moved[place];
    if (now == gone) return;
    if (auto const number = made_->own_order.size(); number % SuffixSegment::every == 0)
      made_->add_key(number, part.segment->key(place));
    made_->own_order.push_back(now);
  }

  Part older_, younger_;
  std::int32_t depth_;
  std::size_t found_ = none;
  std::shared_ptr<SuffixSegment> made_;
};

}  // namespace sluice::inline v0::detail
