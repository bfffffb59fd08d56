// SPDX-License-Identifier: Apache-2.0
/// \file
/// What has to hold of whatever text a parser of grammars is given.
#pragma once

#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/detail/automaton.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <fuzz/demand.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

/// So small that one text takes no longer than some milliseconds.
inline GrammarLimits fuzz_limits() { return {.text = 1 << 16, .nesting = 60, .repetition = 300, .size = 3000}; }

/// Each byte a token.
inline TokenTrie const& byte_tokens() {
  static TokenTrie const trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.emplace_back();
    return TokenTrie(TokenBytes(tokens), {.size = 257, .bos = 256, .eos = {256}});
  }();
  return trie;
}

/// One of the shortest texts that obey; nothing: none of up to `most` bytes does.
inline std::optional<std::string> shortest(Grammar const& grammar, std::int32_t most) {
  Structure const structure(grammar, byte_tokens());
  auto state = structure.start();
  auto const some = [&](std::int32_t left) {
    auto const set = structure.may_follow(state, left);
    for (Token token = 0; token < 257; ++token)
      if (set->contains(token)) return token;
    return Token{-1};
  };
  std::int32_t left = 1;
  while (left <= most && some(left) < 0) ++left;
  if (left > most) return {};
  std::string text;
  for (; left > 1; --left) {
    auto const token = some(left);
    demand(token >= 0 && token < 256, "a completion that was promised is not there", text);
    text += static_cast<char>(token);
    state = structure.next(state, token);
  }
  demand(structure.complete(state), "what has been completed is not complete", text);
  return text;
}

/// Compiles twice. \returns  the grammar, or nothing for a text that is refused
template <class Compile>
std::optional<Grammar> compiled(Compile const& compile) {
  std::string refusals[2];
  std::optional<Grammar> grammars[2];
  for (int i = 0; i < 2; ++i) try {
      grammars[i] = compile();
    } catch (std::invalid_argument const& e) {
      refusals[i] = e.what();
      demand(refusals[i].starts_with("sluice: ") && refusals[i].size() > 20, "a message that says little", refusals[i]);
    }
  demand(refusals[0] == refusals[1], "a text is judged in two ways", refusals[0]);
  if (grammars[0])
    demand(grammars[0]->automaton()->nodes() == grammars[1]->automaton()->nodes(), "a text is compiled in two ways");
  return grammars[0];
}

/// What has to hold of a grammar. \returns  a text that obeys, if there is a short one
inline std::optional<std::string> examine(Grammar const& grammar) {
  if (!grammar.automaton()->token_places.empty()) try {
      return shortest(grammar, 200);  // of tokens that need no text
    } catch (std::invalid_argument const&) {
      return {};  // names tokens that are not there
    }
  auto const text = shortest(grammar, 200);
  if (!text) return text;
  demand(grammar.matches(*text), "what has been completed does not match", *text);
  auto const behind = grammar.behind_space();
  demand(behind.matches(" " + *text), "behind a space it does not match", *text);
  demand(text->starts_with(' ') || behind.matches(*text), "without a space it does not match", *text);
  return text;
}

}  // namespace sluice::test
