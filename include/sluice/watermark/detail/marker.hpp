// SPDX-License-Identifier: Apache-2.0
/// \file
/// Draws tokens with a mark.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/noise.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/watermark/detail/green.hpp>
#include <sluice/watermark/detail/mark_numbers.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// How a token of an output is to be drawn.
struct Mark {
  bool marked = false;  // false: as without a watermark
  bool second = false;  // with the second key
  MarkPlace place{};
  std::span<Token const> output{};  // before the token; sbw
};

/// Memory of Marker::draw().
struct MarkScratch {
  std::vector<double> weights;      // [list]: what the token drawn is the largest of
  std::vector<std::uint32_t> bits;  // of the rounds
};

/// A watermark that is ready to mark the tokens of one output after another.
class Marker {
 public:
  Marker() = default;
  SLUICE_LAZY explicit Marker(Watermark const& options) : options_(options) {
    if (!options.on()) return;
    if (options.second > 0)
      first_ = {options, derived_key(options.key, 'a')}, second_ = {options, derived_key(options.key, 'b')};
    else first_ = {options, options.key};
  }
  Watermark const& options() const { return options_; }
  bool on() const { return options_.on(); }
  /// Whether an expander draws with Query::noise, marked or not.
  bool by_noise() const { return options_.scheme == WatermarkScheme::gumbel && options_.prf == WatermarkPrf::sluice; }

  /// The mark of the token that follows `output`, which must stay as it is until the draw. \param noise  of an ordinary draw: decides which key draws
  SLUICE_LAZY Mark mark(std::span<Token const> output, std::uint64_t noise) const {
    constexpr std::uint64_t own = 0x6b6579;
    return mark_with(output,
                     options_.second > 0 && uniform(derive(noise, own), 0) < static_cast<double>(options_.second));
  }
  SLUICE_LAZY Mark mark_with(std::span<Token const> output, bool second) const {
    if (!on()) return {};
    auto const context = this->context(output);
    if (context.repeated()) return {};
    return {true, second, (second ? second_ : first_).place(context), output};
  }
  /// The noise with which an expander draws the token; `noise`: of an ordinary draw.
  std::uint64_t noise(Mark const& mark, std::uint64_t noise) const { return mark.marked ? mark.place.noise : noise; }

  MarkContext context(std::span<Token const> output) const {
    return {output, options_.width, hashes_rounds(options_) ? 0 : -1};
  }
  /// Of red_green and sbw: whether a token that may carry this mark is green.
  SLUICE_LAZY bool is_green(Mark const& mark, Token token) const {
    return green(options_, first_, mark.place, context(mark.output), token);
  }
  /// The numbers of the first and the second key.
  MarkNumbers const& numbers(bool second) const { return second ? second_ : first_; }

  /// Draws one of `list` in proportion to its probability. Not empty, not necessarily normalised. \returns its index
  SLUICE_LAZY std::size_t draw(std::span<Candidate const> list, Mark const& mark, std::uint64_t noise,
                               MarkScratch& scratch) const {
    auto& weights = scratch.weights;
    weights.resize(list.size());
    auto const plain = [&] {
      for (std::size_t i = 0; i < list.size(); ++i) weights[i] += gumbel(noise, list[i].token);
    };
    for (std::size_t i = 0; i < list.size(); ++i) weights[i] = static_cast<double>(list[i].log_prob);
    auto const& numbers = this->numbers(mark.second);
    if (!mark.marked) {
      plain();
    } else if (options_.scheme == WatermarkScheme::gumbel) {
      for (std::size_t i = 0; i < list.size(); ++i)
        weights[i] -= std::log(-std::log(numbers.uniform(mark.place, list[i].token)));
    } else if (options_.scheme == WatermarkScheme::synthid) {
      tournament(list, mark, scratch), plain();
    } else {
      for (std::size_t i = 0; i < list.size(); ++i)
        if (is_green(mark, list[i].token)) weights[i] += static_cast<double>(options_.delta);
      plain();
    }
    std::size_t best = 0;
    for (std::size_t i = 1; i < list.size(); ++i)
      if (weights[i] > weights[best] || (weights[i] == weights[best] && list[i].token < list[best].token)) best = i;
    return best;
  }

 private:
  /// The log-probabilities after all rounds. In each of them, two tokens compete and the one whose bit is set wins; of equal
  /// ones a coin decides. A token of probability p becomes one of p (1 + bit - probability of all whose bit is set).
  SLUICE_LAZY void tournament(std::span<Candidate const> list, Mark const& mark, MarkScratch& scratch) const {
    auto& [weights, bits] = scratch;
    auto const most = *std::max_element(weights.begin(), weights.end());
    double all = 0;
    for (auto& w : weights) w = std::exp(w - most), all += w;
    bits.resize(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) weights[i] /= all, bits[i] = first_.bits(mark.place, list[i].token);
    for (std::int32_t round = 0; round < rounds(options_); ++round) {
      double mass = 0;  // of those whose bit is set
      for (std::size_t i = 0; i < list.size(); ++i) mass += ((bits[i] >> round) & 1) * weights[i];
      for (std::size_t i = 0; i < list.size(); ++i) weights[i] *= 1 + ((bits[i] >> round) & 1) - mass;
    }
    for (auto& w : weights) w = std::log((std::max)(w, 0.0));
  }

  Watermark options_{};
  MarkNumbers first_{}, second_{};
};

}  // namespace sluice::inline v0::detail
