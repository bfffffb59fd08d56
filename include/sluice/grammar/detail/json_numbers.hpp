// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers within bounds, as rules over their digits.
#pragma once

#include <sluice/language.hpp>

#include <sluice/grammar/detail/json_value.hpp>
#include <sluice/grammar/expressions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// A bound; strict: exclusive.
struct JsonBound {
  JsonDecimal value{};
  bool strict = false;
};

/// The texts of all integers, or decimal numbers without exponent, within bounds.
class JsonNumbers {
 public:
  using Id = Expressions::Id;
  explicit JsonNumbers(Expressions& out) : out_(out) {}

  /// \param low, high  none: unbounded
  template <class = void>
  Id between(std::optional<JsonBound> const& low, std::optional<JsonBound> const& high, bool integers) {
    integers_ = integers;
    std::vector<Id> choices;
    auto const reaches_up = !high || !high->value.negative, reaches_down = !low || low->value.negative;
    if (reaches_up) choices.push_back(sizes(low && !low->value.negative ? low : std::optional<JsonBound>{}, high));
    if (reaches_down) {
      auto least = high && high->value.negative ? high : std::optional<JsonBound>{};
      auto most = low;
      if (least) least->value.negative = false;
      if (most) most->value.negative = false;
      // If 0 itself is excluded, so is -0.
      if (!least && high && high->strict && high->value.zero()) least = JsonBound{{}, true};
      choices.push_back(out_.sequence({out_.text("-"), sizes(least, most)}));
    }
    return out_.choice(choices);
  }

 private:
  using Bound = std::optional<JsonBound>;
  static constexpr std::size_t endless = static_cast<std::size_t>(-1);

  /// Magnitudes: numbers without sign.
  template <class = void>
  Id sizes(Bound const& low, Bound const& high) {
    std::vector<Id> choices;
    auto const shortest = low ? low->value.whole.size() : 1;
    auto const longest = high ? high->value.whole.size() : endless;
    for (auto size = shortest; size <= (std::min)(longest, shortest); ++size) choices.push_back(whole(low, high, size));
    if (longest == endless) {
      // Integer parts longer than the lower bound's: anything that does not begin with 0.
      choices.push_back(
          out_.sequence({out_.byte('1', '9'), out_.repeat(digit(), static_cast<std::int32_t>(shortest), -1),
                         fraction({}, {}, false, false, 0, true)}));
    } else {
      for (auto size = shortest + 1; size <= longest; ++size)
        choices.push_back(whole({}, size == longest ? high : Bound{}, size));
    }
    return out_.choice(choices);
  }

  /// Integer parts of one length; a bound of another length does not apply.
  template <class = void>
  Id whole(Bound const& low, Bound const& high, std::size_t size) {
    auto const binds = [&](Bound const& bound) { return bound && bound->value.whole.size() == size; };
    if (high && high->value.whole.size() < size) return out_.nothing();
    return digits(low, high, binds(low), binds(high), size, 0);
  }
  /// \param at_low, at_high  whether all digits so far are the bound's
  template <class = void>
  Id digits(Bound const& low, Bound const& high, bool at_low, bool at_high, std::size_t size, std::size_t i) {
    if (i == size) return fraction(low, high, at_low, at_high, 0, true);
    if (!at_low && !at_high) {
      auto const rest = static_cast<std::int32_t>(size - i);
      if (i == 0 && size == 1) return out_.sequence({digit(), fraction({}, {}, false, false, 0, true)});
      auto const first = i == 0 ? out_.byte('1', '9') : digit();
      return out_.sequence({first, out_.repeat(digit(), rest - 1, rest - 1), fraction({}, {}, false, false, 0, true)});
    }
    return each_digit(at_low               ? low->value.whole[i]
                      : i == 0 && size > 1 ? '1'
                                           : '0',
                      at_high ? high->value.whole[i] : '9', at_low, at_high,
                      [&](bool l, bool h) { return digits(low, high, l, h, size, i + 1); });
  }

  /// The part from the decimal point on. \param whole  no decimal point or fraction digit has been written yet
  template <class = void>
  Id fraction(Bound const& low, Bound const& high, bool at_low, bool at_high, std::size_t i, bool whole) {
    auto const rest = [&](Bound const& bound) {
      return i < bound->value.fraction.size();  // if so, the rest of it is not 0
    };
    auto const may_end = (!at_low || (!rest(low) && !low->strict)) && (!at_high || rest(high) || !high->strict);
    if (integers_) return may_end ? out_.empty() : out_.nothing();
    Id more;
    auto const low_left = at_low && rest(low), high_left = at_high && rest(high);
    if (low_left || high_left) {
      auto const next = [&](Bound const& bound) { return rest(bound) ? bound->value.fraction[i] : '0'; };
      more = each_digit(at_low ? next(low) : '0', at_high ? next(high) : '9', at_low, at_high,
                        [&](bool l, bool h) { return fraction(low, high, l, h, i + 1, false); });
    } else if (at_high) {  // only zeros
      more = high->strict || (at_low && low->strict) ? out_.nothing() : out_.repeat(out_.byte('0', '0'), 1, -1);
    } else if (at_low && low->strict) {
      more = out_.sequence({out_.repeat(out_.byte('0', '0'), 0, -1), out_.byte('1', '9'), out_.repeat(digit(), 0, -1)});
    } else more = out_.repeat(digit(), 1, -1);
    if (whole) more = out_.sequence({out_.text("."), more});
    return may_end ? out_.optional(more) : more;
  }

  template <class Rest>
  Id each_digit(char low, char high, bool at_low, bool at_high, Rest const& rest) {
    std::vector<Id> choices;
    auto const add = [&](char first, char last, bool l, bool h) {
      if (first > last) return;
      auto const range = out_.byte(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
      choices.push_back(out_.sequence({range, rest(l, h)}));
    };
    if (low > high) return out_.nothing();
    if (low == high) add(low, high, at_low, at_high);
    else {
      add(low, low, at_low, false);
      add(static_cast<char>(low + 1), static_cast<char>(high - 1), false, false);
      add(high, high, false, at_high);
    }
    return out_.choice(choices);
  }
  template <class = void>
  Id digit() {
    return out_.byte('0', '9');
  }

  Expressions& out_;
  bool integers_ = false;
};

}  // namespace sluice::inline v0::detail
