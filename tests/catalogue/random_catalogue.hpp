// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random catalogues and the sequences in them.
#pragma once

#include <sluice/catalogue/catalogue.hpp>
#include <sluice/catalogue/catalogue_builder.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <vector>

namespace sluice::test {

using Sequences = std::vector<std::vector<Token>>;

/// `count` different sequences of tokens in [lowest, highest], sorted.
inline Sequences random_sequences(std::mt19937_64& random, std::size_t count, std::size_t longest, Token lowest,
                                  Token highest, std::size_t shortest = 1) {
  auto const draw = [&](std::uint64_t n) { return random() % n; };
  std::set<std::vector<Token>> all;
  for (std::size_t tries = 0; all.size() < count && tries < 20 * count; ++tries) {
    std::vector<Token> one;
    if (!all.empty() && draw(3) == 0) {  // shares a prefix with another, or extends it
      one = *std::next(all.begin(), static_cast<std::ptrdiff_t>(draw(all.size())));
      one.resize(std::min(one.size(), std::size_t{1} + draw(longest)));
    }
    auto const size = std::max<std::size_t>(shortest, 1 + draw(longest));
    while (one.size() < size)
      one.push_back(lowest + static_cast<Token>(draw(static_cast<std::uint64_t>(highest - lowest) + 1)));
    all.insert(std::move(one));
  }
  return {all.begin(), all.end()};
}

inline Catalogue catalogue_of(Sequences const& sequences) {
  CatalogueBuilder builder;
  for (auto const& tokens : sequences) builder.add(tokens);
  return builder.build();
}

}  // namespace sluice::test
