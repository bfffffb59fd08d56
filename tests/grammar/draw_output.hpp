// SPDX-License-Identifier: Apache-2.0
/// \file
/// Draws outputs token by token from what a grammar allows.
#pragma once

#include <sluice/grammar/structure.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace sluice::test {

/// All bytes, and common JSON fragments; the last token is eos.
inline std::vector<std::string> json_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (auto const* const piece :
       {"{\"",   "\":", "\",\"", "\"}", "}}",    "]}", "true", "false",  "null", "12",  "0.", "ab", "ba",
        "\":\"", "[[",  "],[",   "\\n", "\\u00", "é",  "-0",   "\":{\"", "a\":", "b\"", ",-", "1e"})
    tokens.emplace_back(piece);
  tokens.emplace_back();
  return tokens;
}

/// Draws an output of up to `most` tokens from the allowed ones.
inline std::string draw_output(Structure const& structure, std::vector<std::string> const& tokens,
                               std::mt19937_64& random, std::int32_t most) {
  std::string text;
  auto state = structure.start();
  for (auto left = most; left > 0; --left) {
    auto const set = structure.may_follow(state, left);
    std::vector<Token> some;
    for (Token token = 0; token < static_cast<Token>(tokens.size()); ++token)
      if (set->contains(token)) {
        some.push_back(token);
        auto const& piece = tokens[static_cast<std::size_t>(token)];
        if (piece.empty() || (piece[0] >= 'a' && piece[0] <= 'z') || piece.size() > 1)
          some.push_back(token), some.push_back(token);
      }
    if (some.empty()) return left == most ? "impossible" : "stuck behind " + text;
    auto const token = some[random() % some.size()];
    state = structure.next(state, token);
    text += tokens[static_cast<std::size_t>(token)];
    if (token == static_cast<Token>(tokens.size()) - 1) return text;
  }
  return "not ended: " + text;
}

}  // namespace sluice::test
