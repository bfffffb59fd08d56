// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the grammar benchmarks share: a vocabulary, and times.
#pragma once

#include <sluice/grammar/detail/utf8.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace bench {

inline double milliseconds(auto const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// All bytes, then pieces made of two shorter ones, mostly letters: the first token is the end.
inline std::vector<std::string> merged_tokens(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::string> tokens{""}, pieces;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  static std::string const often = "eeeeeetttttaaaaooooiiinnnnssshhrrddllcuummwfgypbvk      .,'\"\"{}[]:0123456789-_\n";
  for (auto const c : often) pieces.emplace_back(1, c);
  std::unordered_set<std::string> known(tokens.begin(), tokens.end());
  while (tokens.size() < count) {
    // The square of a uniform number: favours early, short pieces.
    auto const draw = [&]() -> std::string const& {
      auto const u = static_cast<double>(random() >> 11) * 0x1p-53;
      return pieces[static_cast<std::size_t>(u * u * static_cast<double>(pieces.size()))];
    };
    std::string piece;
    if (random() % 12 == 0) {  // a character of several bytes
      auto const c = static_cast<char32_t>(random() % 3 == 0 ? 0xC0 + random() % 0x600 : 0x3000 + random() % 0x6000);
      sluice::detail::append_utf8(piece, c);
      if (random() % 2 == 0) sluice::detail::append_utf8(piece, c + static_cast<char32_t>(random() % 50));
    } else piece = draw() + draw();
    if (piece.size() > 16 || !known.insert(piece).second) continue;
    tokens.push_back(piece);
    if (pieces.size() < 30'000) pieces.push_back(piece);
  }
  return tokens;
}

inline std::vector<std::string> read_tokens(char const* path) {
  std::ifstream file(path);
  std::vector<std::string> tokens{""};
  for (std::string line; std::getline(file, line);) {
    auto& token = tokens.emplace_back();
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      token.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
  }
  return tokens;
}

/// In any unit.
struct Times {
  std::vector<double> all;
  double at(double part) {
    if (all.empty()) return 0;
    std::ranges::sort(all);
    return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
  }
};

}  // namespace bench
