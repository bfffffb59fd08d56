// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compares token masks with the result of trying all tokens.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>
#include <support/times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::test {

inline constexpr int far = 1000;

/// The minimum number of tokens that complete a text, by trying all; `far`: more than the depth.
class ByTrying {
 public:
  ByTrying(std::function<bool(std::string const&)> complete, std::vector<std::string> const& tokens)
      : complete_(std::move(complete)), tokens_(tokens) {}
  int fewest(std::string const& text, int depth) {
    if (is_complete(text)) return 0;
    auto best = far;
    if (depth > 0)
      for (auto const& token : tokens_)
        if (!token.empty()) best = std::min(best, 1 + fewest(text + token, std::min(depth, best) - 1));
    return best >= far ? far : best;
  }

 private:
  bool is_complete(std::string const& text) {
    auto const [it, fresh] = known_.try_emplace(text, false);
    if (fresh) it->second = complete_(text);
    return it->second;
  }
  std::function<bool(std::string const&)> complete_;
  std::vector<std::string> const& tokens_;
  std::map<std::string, bool> known_;
};

/// Walks through outputs of up to `steps` tokens and compares every mask with the result of trying all tokens.
struct Comparison {
  Structure const& structure;
  ByTrying& trying;
  std::vector<std::string> const& tokens;  // the last is eos
  int depth = 3;
  int sets = 0;

  void compare(Structure::State const& state, std::string const& text, int steps) {
    auto const end = static_cast<Token>(tokens.size()) - 1;
    auto const complete = trying.fewest(text, 0) == 0;
    CHECK(structure.complete(state) == complete);
    auto const all = structure.may_follow(state, Limits::unlimited);
    REQUIRE(all != nullptr);
    CHECK(all->contains(end) == complete);
    for (Token token = 0; token < end; ++token) {
      auto const& bytes = tokens[static_cast<std::size_t>(token)];
      auto const fewest = bytes.empty() ? far : trying.fewest(text + bytes, depth);
      for (std::int32_t left = 1; left <= depth + 2; ++left)
        REQUIRE(structure.may_follow(state, left)->contains(token) == (fewest + 2 <= left));
      if (fewest < far) REQUIRE(all->contains(token));
    }
    ++sets;
    if (steps == 0) return;
    for (Token token = 0; token < end; ++token) {
      auto const next = structure.next(state, token);
      REQUIRE(structure.alive(next) == structure.may_follow(state, Limits::unlimited)->contains(token));
      if (structure.alive(next)) compare(next, text + tokens[static_cast<std::size_t>(token)], steps - 1);
    }
  }
};

inline Vocabulary vocabulary_of(std::vector<std::string> const& tokens) {
  auto const size = static_cast<std::int32_t>(tokens.size());
  return {.size = size, .bos = size - 1, .eos = {size - 1}};
}

/// The number of grammars to compare: SLUICE_GRAMMAR_ROUNDS, else the test's default.
inline int rounds(int usual) {
  auto const* const asked = std::getenv("SLUICE_GRAMMAR_ROUNDS");
  return asked == nullptr ? times(usual) : std::stoi(asked);
}

/// Comparisons over many grammars.
struct Comparisons {
  int compared = 0, refused = 0, sets = 0, impossible = 0;

  /// \param tokens    the last is eos
  /// \param complete  whether a whole text matches
  void compare(Grammar const& grammar, std::vector<std::string> const& tokens,
               std::function<bool(std::string const&)> complete, int depth = 3, int steps = 2) {
    INFO([&] {
      std::string all;
      for (auto const& token : tokens) all += "'" + token + "' ";
      return all;
    }());
    Structure const structure(grammar, TokenTrie(TokenBytes(tokens), vocabulary_of(tokens)));
    ByTrying trying(std::move(complete), tokens);
    Comparison comparison{structure, trying, tokens, depth};
    auto const start = structure.start();
    comparison.compare(start, "", steps);
    ++compared, sets += comparison.sets;
    impossible += structure.may_follow(start, Limits::unlimited)->words()[0] == 0 ? 1 : 0;
  }
  std::string report() const {
    return std::to_string(compared) + " compared, " + std::to_string(sets) + " sets, " + std::to_string(refused) +
           " refused, " + std::to_string(impossible) + " impossible";
  }
};

}  // namespace sluice::test
