// SPDX-License-Identifier: Apache-2.0
/// \file
/// Watermarks as options of a command line.
#pragma once

#include <sluice/watermark/key_file.hpp>
#include <sluice/watermark/watermark.hpp>

#include <text/lines.hpp>

#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace text {

/// The values of an enumeration by their names.
template <class Value>
std::map<std::string, Value> named(std::initializer_list<Value> values) {
  std::map<std::string, Value> names;
  for (auto const value : values) names.emplace(name(value), value);
  return names;
}
inline auto const watermark_schemes = named({sluice::WatermarkScheme::gumbel, sluice::WatermarkScheme::synthid,
                                             sluice::WatermarkScheme::red_green, sluice::WatermarkScheme::sbw});
inline auto const watermark_functions =
    named({sluice::WatermarkPrf::sluice, sluice::WatermarkPrf::philox, sluice::WatermarkPrf::hmac_sha256,
           sluice::WatermarkPrf::synthid_text, sluice::WatermarkPrf::hugging_face});

/// Whether the scheme draws tokens, so that only searches that draw carry it. The others add to scores.
constexpr bool draws(sluice::WatermarkScheme scheme) {
  return scheme == sluice::WatermarkScheme::gumbel || scheme == sluice::WatermarkScheme::synthid;
}

/// --watermark-key, and the options that say how to mark. The key stays in its file until read().
struct WatermarkFlags {
  std::string key{};  ///< a file; empty: no watermark
  std::string scheme = "gumbel", prf = "sluice";
  sluice::Watermark numbers{};  ///< width, second, gamma, delta, depth

  bool on() const { return !key.empty(); }
  bool draws() const { return text::draws(watermark_schemes.at(scheme)); }

  /// \param add     (name, value, type, text) -> Option*
  /// \param one_of  (names) -> a check of an option; whole(low, high) likewise
  /// \returns those, --watermark-key first
  template <class Option, class Add, class OneOf, class Whole>
  std::vector<Option*> add_by(Add const& add, OneOf const& one_of, Whole const& whole) {
    auto& own = numbers;
    return {add("--watermark-key", key, "FILE", "mark outputs so that a detector with the key in FILE recognises them"),
            add("--watermark", scheme, "SCHEME", "how: gumbel, synthid, red_green or sbw (gumbel)")
                ->check(one_of(watermark_schemes)),
            add("--watermark-prf", prf, "NAME", "sluice, philox, hmac_sha256, synthid_text or hugging_face (sluice)")
                ->check(one_of(watermark_functions)),
            add("--watermark-width", own.width, "N", "tokens of a context (4)")->check(whole(1, 16)),
            add("--watermark-second", own.second, "P", "gumbel: share of the tokens drawn with a second key (0)"),
            add("--watermark-gamma", own.gamma, "P", "red_green, sbw: share of green tokens (0.25)"),
            add("--watermark-delta", own.delta, "X", "red_green, sbw: added to the scores of green tokens (2)"),
            add("--watermark-depth", own.depth, "N", "synthid: rounds of a tournament (30)")->check(whole(1, 32))};
  }
  /// \throws InputError  for one of them that is given without a key
  template <class Option>
  void check_effects(std::vector<Option*> const& options) const {
    for (auto const* option : options)
      if (!on() && option->count() > 0) throw InputError(option->get_name() + " has no effect without --watermark-key");
  }
  /// The watermark; off without a key.
  /// \throws InputError  for a file that holds no key, and for options that do not go together
  sluice::Watermark read() const {
    if (!on()) return {};
    auto watermark = numbers;
    watermark.scheme = watermark_schemes.at(scheme), watermark.prf = watermark_functions.at(prf);
    try {
      watermark.key = sluice::read_watermark_key(key);
      watermark.check();
    } catch (std::invalid_argument const& error) {
      throw InputError(error.what());
    }
    return watermark;
  }
};

}  // namespace text
