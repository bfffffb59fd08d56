// SPDX-License-Identifier: Apache-2.0
/// \file
/// detect_watermark: whether a text carries the mark of a key.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/watermark/detail/marker.hpp>
#include <sluice/watermark/detail/repeated_contexts.hpp>
#include <sluice/watermark/detail/tails.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Which part of a text to look at.
struct DetectionOptions {
  std::span<std::uint8_t const>
      mask{};  ///< [tokens], not 0: leave out this token (forced, quoted); empty: none. A view, of that call
  std::int32_t window = 0;  ///< look also at parts of so many tokens, half of it apart; 0: not
};

/// The score of a part of a text.
struct WatermarkWindow {
  std::int32_t begin = 0, end = 0;  ///< tokens begin .. end - 1
  std::int32_t scored = 0;          ///< as in WatermarkDetection
  double score = 0, p_value = 1;
};

/// What detect_watermark() finds.
struct WatermarkDetection {
  std::int32_t tokens = 0;    ///< in the text
  std::int32_t scored = 0;    ///< that count
  std::int32_t masked = 0;    ///< left out as the mask says
  std::int32_t repeated = 0;  ///< left out since their context has occurred before
  double score = 0;     ///< gumbel: sum of -log(1 - number), of mean `scored`; synthid: bits set; else green tokens
  double expected = 0;  ///< its mean in a text without the mark
  double p_value = 1;   ///< the probability of this score or a higher one in a text without the mark
  std::vector<WatermarkWindow> windows{};  ///< if asked for
  double windows_p_value = 1;  ///< the smallest of the windows, times their number: at most 1, and never too small
};

namespace detail {

/// The p-value of a score that is the sum over `scored` tokens.
SLUICE_LAZY double watermark_p_value(Watermark const& options, std::int64_t scored, double score) {
  using enum WatermarkScheme;
  if (scored == 0) return 1;
  auto const count = static_cast<std::int64_t>(std::llround(score));
  switch (options.scheme) {
    case gumbel:
      if (options.second > 0) return mixed_gamma_tail(scored, static_cast<double>(options.second), score);
      return gamma_tail(scored, score);
    case synthid: return binomial_tail(count, scored * detail::rounds(options), 0.5);
    case red_green:
    case sbw: return binomial_tail(count, scored, green_share(options));
    case none: break;
  }
  return 1;
}

}  // namespace detail

/// Whether `tokens` carry the mark of `options`: the same that marked them, key included. The p-value is exact for any text
/// that was made without the key: scores of distinct contexts are then independent, with a Gamma, a binomial (red_green, sbw)
/// or, over the bits of all rounds, a binomial distribution (synthid). Tokens are those of the model that wrote the text, from
/// the beginning of its output; a text cut from the middle loses the marks of its first `width` tokens only. A context counts
/// once, where it occurs first, masked tokens included, as it was marked once.
///
/// O(tokens), memory for each context.
/// \throws std::invalid_argument  for invalid options, a negative token, a mask of another length
SLUICE_LAZY WatermarkDetection detect_watermark(std::span<Token const> tokens, Watermark const& options,
                                                DetectionOptions const& which = {}) {
  require(options.on(), "watermark.scheme", "none", "must say what to look for");
  options.check();
  require(which.mask.empty() || which.mask.size() == tokens.size(), "mask: size", which.mask.size(),
          "must be that of the text, " + std::to_string(tokens.size()));
  require(which.window >= 0, "window", which.window, "must not be negative");
  for (auto const token : tokens) require(token >= 0, "token", token, "must not be negative");
  detail::Marker const marker(options);
  detail::RepeatedContexts seen;
  std::vector<double> scores(tokens.size(), 0);
  std::vector<std::uint8_t> counts(tokens.size(), 0);
  WatermarkDetection found{.tokens = static_cast<std::int32_t>(tokens.size())};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto const before = tokens.first(i);
    auto const context = marker.context(before);
    auto const again = !seen.add(context);
    auto const twice = options.scheme == WatermarkScheme::sbw && !seen.add_seed(context, options, tokens[i]);
    if (!which.mask.empty() && which.mask[i] != 0) {
      ++found.masked;
      continue;
    }
    if (again || twice) {
      ++found.repeated;
      continue;
    }
    counts[i] = 1, ++found.scored;
    auto const token = tokens[i];
    auto const place = marker.numbers(false).place(context);
    switch (options.scheme) {
      case WatermarkScheme::gumbel: {
        auto const one = -std::log1p(-marker.numbers(false).uniform(place, token));
        scores[i] = one;
        if (options.second > 0) {
          auto const share = static_cast<double>(options.second);
          auto const& numbers = marker.numbers(true);
          scores[i] = (1 - share) * one - share * std::log1p(-numbers.uniform(numbers.place(context), token));
        }
        break;
      }
      case WatermarkScheme::synthid: {
        auto const bits = marker.numbers(false).bits(place, token);
        for (std::int32_t round = 0; round < detail::rounds(options); ++round) scores[i] += (bits >> round) & 1;
        break;
      }
      case WatermarkScheme::red_green:
      case WatermarkScheme::sbw:
        scores[i] = detail::green(options, marker.numbers(false), place, context, token) ? 1 : 0;
        break;
      case WatermarkScheme::none: break;
    }
    found.score += scores[i];
  }
  auto const each = options.scheme == WatermarkScheme::gumbel    ? 1
                    : options.scheme == WatermarkScheme::synthid ? detail::rounds(options) * 0.5
                                                                 : detail::green_share(options);
  found.expected = each * found.scored;
  found.p_value = detail::watermark_p_value(options, found.scored, found.score);
  if (which.window == 0) return found;
  auto const size = static_cast<std::size_t>(which.window), step = (std::max)(size / 2, std::size_t{1});
  double least = 1;
  for (std::size_t begin = 0; begin < tokens.size(); begin += step) {
    auto const end = (std::min)(begin + size, tokens.size());
    WatermarkWindow window{.begin = static_cast<std::int32_t>(begin), .end = static_cast<std::int32_t>(end)};
    for (auto i = begin; i < end; ++i) window.score += scores[i], window.scored += counts[i];
    window.p_value = detail::watermark_p_value(options, window.scored, window.score);
    least = (std::min)(least, window.p_value);
    found.windows.push_back(window);
    if (end == tokens.size()) break;
  }
  found.windows_p_value = (std::min)(1.0, least * static_cast<double>(found.windows.size()));
  return found;
}

}  // namespace sluice::inline v0
