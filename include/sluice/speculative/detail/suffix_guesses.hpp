// SPDX-License-Identifier: Apache-2.0
/// \file
/// Guesses from a SuffixCache, and from a text itself.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/speculative/detail/frequent_paths.hpp>
#include <sluice/speculative/detail/suffix_places.hpp>
#include <sluice/speculative/detail/suffix_segment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Finds the places where the last tokens of a text occurred, and makes guesses of what followed. Allocates nothing once warm.
class SuffixGuesses {
 public:
  struct Options {
    std::int32_t shortest = 1;  ///< a match has at least so many tokens
    std::int32_t samples = 16;  ///< how many continuations are looked at, at most
    std::int32_t matches = 3;   ///< how many lengths of a match are tried
    double factor = 1;          ///< guesses on a path per token of the match, at most
  };

  /// Guesses what follows a context (its last tokens). The longest match is tried first, then the longest that occurs more often, and
  /// so on; the one that expects most of its guesses to be right is kept, the longer among equals.
  /// \param bounds  `depth`: at most so many on a path
  SLUICE_LAZY void of_others(SuffixPlaces const& places, std::span<Token const> context, Options const& options,
                             FrequentPaths::Bounds const& bounds, PathGuesses& best) {
    best.clear();
    context = after_negative(context.last((std::min)(context.size(), static_cast<std::size_t>(places.depth))));
    matches_.clear();
    for (auto const& segment : places.segments) matches_.emplace_back(*segment, context, places.depth);
    for (auto const& match : matches_) match.fetch();
    auto const near_places = static_cast<std::size_t>(options.samples);
    for (auto& match : matches_) match.find(context, places.depth), match.fetch_near(near_places);
    SuffixSegment const* witness = nullptr;
    std::uint32_t place = 0;
    for (std::int32_t tried = 0; tried < options.matches; ++tried) {
      std::int32_t shared = -1;
      for (auto const& match : matches_) shared = (std::max)(shared, match.next());
      if (shared < options.shortest || best.expected >= depth(bounds, options, shared)) break;  // or cannot be better
      std::size_t count = 0;
      for (auto& match : matches_) match.widen(context, shared, places.depth, near_places), count += match.size();
      auto within = bounds;
      within.depth = depth(bounds, options, shared);
      within.sure = sure(count, shared);
      sample(count, options, static_cast<std::size_t>(within.depth));
      paths_.find(continuations_, within, made_);
      if (made_.expected > best.expected) {
        std::swap(best, made_);
        std::tie(witness, place) = sampled_[best.witness];
      }
      if (count >= static_cast<std::size_t>(options.samples)) break;  // shorter matches would only be less alike
    }
    if (witness != nullptr) witness->touch(place, places.clock);
  }

  /// The same from earlier places of a text: those of the longest match, the last ones first. O(text).
  /// \param source  so many of its first tokens are another text
  SLUICE_LAZY void of_text(std::span<Token const> text, std::size_t source, std::int32_t longest,
                           Options const& options, FrequentPaths::Bounds const& bounds, PathGuesses& best) {
    best.clear();
    if (text.empty() || text.back() < 0) return;
    std::int32_t shared = (std::max)(options.shortest, 1);
    continuations_.clear();
    auto const last = text.back();
    for (auto i = text.size() - 1; i-- > 0;) {
      if (text[i] != last || i + 1 == source) continue;
      std::int32_t same = 1;
      while (same < longest && static_cast<std::size_t>(same) <= i &&
             text[i - static_cast<std::size_t>(same)] == text[text.size() - 1 - static_cast<std::size_t>(same)])
        ++same;
      if (same < shared) continue;
      if (same > shared) continuations_.clear(), shared = same;
      if (std::ssize(continuations_) == options.samples) continue;
      auto const end = i < source ? source : text.size();
      continuations_.push_back(text.subspan(i + 1, end - i - 1));
    }
    if (continuations_.empty()) return;
    auto within = bounds;
    within.depth = depth(bounds, options, shared), within.sure = sure(continuations_.size(), shared);
    paths_.find(continuations_, within, best);
  }

 private:
  /// How far `count` matches of so many tokens are trusted: a single short one is often chance.
  static double sure(std::size_t count, std::int32_t shared) {
    auto const n = static_cast<double>(count);
    return n / (n + 4.0 / shared);
  }
  static std::int32_t depth(FrequentPaths::Bounds const& bounds, Options const& options, std::int32_t shared) {
    return static_cast<std::int32_t>((std::min)(static_cast<double>(bounds.depth), options.factor * shared + 1e-6));
  }

  /// Takes all continuations, or some at equal distances.
  SLUICE_LAZY void sample(std::size_t count, Options const& options, std::size_t most) {
    continuations_.clear(), sampled_.clear();
    auto const taken = (std::min)(count, static_cast<std::size_t>(options.samples));
    std::size_t before = 0;  // places of earlier matches
    auto match = matches_.begin();
    for (std::size_t i = 0; i < taken; ++i) {
      auto const at = (2 * i + 1) * count / (2 * taken);
      while (at - before >= match->size()) before += match->size(), ++match;
      auto const& segment = match->segment();
      sampled_.emplace_back(&segment, match->place(at - before));
      segment.fetch_end(sampled_.back().second, most);
    }
    for (auto const& [segment, place] : sampled_) {
      auto const& tokens = segment->tokens;  // ends with -1
      std::size_t length = 0;
      while (length < most && tokens[place + length] >= 0) ++length;
      continuations_.push_back(tokens.subspan(place, length));
    }
  }

  std::vector<SuffixMatch> matches_;
  std::vector<std::pair<SuffixSegment const*, std::uint32_t>> sampled_;
  std::vector<std::span<Token const>> continuations_;
  FrequentPaths paths_;
  PathGuesses made_;
};

}  // namespace sluice::inline v0::detail
