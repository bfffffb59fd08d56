// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which tokens are green.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/watermark/detail/mark_numbers.hpp>
#include <sluice/watermark/detail/philox.hpp>
#include <sluice/watermark/watermark.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sluice::inline v0::detail {

/// The hash of an integer in sbw (Bob Jenkins), in 32 bits with a sign.
constexpr std::int64_t sbw_hash(Token token) {
  auto i = static_cast<std::uint32_t>(token) + 1;
  auto const right = [&](int by) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(i) >> by); };
  i -= i << 6, i ^= right(17), i -= i << 9, i ^= i << 4, i -= i << 3, i ^= i << 10, i ^= right(15);
  return static_cast<std::int32_t>(i);
}

/// The seed of a token in sbw: the least product of key, the hash of one of the last width - 1 tokens, or its own, and its
/// own hash. Different contexts may share it.
SLUICE_LAZY std::uint64_t sbw_seed(std::uint64_t key, MarkContext const& context, Token token) {
  auto const own = static_cast<std::uint64_t>(sbw_hash(token));
  auto least = static_cast<std::int64_t>(key * own * own);
  for (std::size_t i = 1; i < context.size(); ++i)
    least = (std::min)(least, static_cast<std::int64_t>(key * static_cast<std::uint64_t>(sbw_hash(context[i])) * own));
  return static_cast<std::uint64_t>(least);
}

/// Whether a token is green after a context.
SLUICE_LAZY bool green(Watermark const& options, MarkNumbers const& numbers, MarkPlace const& place,
                       MarkContext const& context, Token token) {
  if (options.scheme != WatermarkScheme::sbw) return numbers.uniform(place, token) < static_cast<double>(options.gamma);
  auto const seed = sbw_seed(options.key.words()[0], context, token);
  auto const own = static_cast<std::uint32_t>(token);
  auto const word = philox({own / 4, 0, 0, 0}, {static_cast<std::uint32_t>(seed & 0xFFFFFFFFu),
                                                static_cast<std::uint32_t>(seed >> 32)})[own % 4];
  constexpr std::uint32_t most = 0x7FFFFFFF;
  return (word & most) < static_cast<std::uint32_t>(static_cast<double>(options.gamma) * most);
}

/// The probability with which a token is green.
SLUICE_LAZY double green_share(Watermark const& options) {
  auto const gamma = static_cast<double>(options.gamma);
  switch (options.prf) {
    case WatermarkPrf::philox:
      if (options.scheme == WatermarkScheme::sbw) return std::floor(gamma * 0x7FFFFFFF) / 0x1p31;
      [[fallthrough]];
    case WatermarkPrf::hmac_sha256: {  // numbers of 24 bits
      constexpr auto steps = static_cast<double>((1 << 24) + 1);
      auto below = std::floor(gamma * steps);  // about so many numbers (m + 1) / steps are below it
      auto const number = [&](double m) { return static_cast<double>(static_cast<float>(m / steps)); };
      while (below > 0 && number(below) >= gamma) --below;
      while (below < steps - 1 && number(below + 1) < gamma) ++below;
      return below / 0x1p24;
    }
    default: return gamma;
  }
}

}  // namespace sluice::inline v0::detail
