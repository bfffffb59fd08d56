// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace sluice;

namespace {

/// Draws outputs of at most 24 tokens; returns the words of all sets of tokens that it met.
std::vector<std::uint64_t> draw(Structure const& structure, unsigned outputs) {
  std::vector<std::uint64_t> out;
  for (unsigned output = 0; output < outputs; ++output) {
    std::mt19937_64 random(output);
    auto state = structure.start();
    for (std::int32_t left = 24; left > 0 && structure.alive(state); --left) {
      auto const set = structure.may_follow(state, output % 3 == 0 ? Limits::unlimited : left);
      auto const words = set->words();
      out.insert(out.end(), words.begin(), words.end());
      std::vector<Token> some;
      for (Token token = 0; token < static_cast<Token>(words.size() * 64); ++token)
        if (set->contains(token)) some.push_back(token);
      if (some.empty()) break;
      state = structure.next(state, some[random() % some.size()]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("threads that share a structure get the sets of tokens that one alone gets", "[structured]") {
  std::vector<std::string> tokens{""};
  for (int c = 32; c < 127; ++c) tokens.emplace_back(1, static_cast<char>(c));
  for (auto const* const one : {"\":", "\",", "{\"", "[{", "}]", "the", " a", "ab", "true", "12", "name", "\\n"})
    tokens.emplace_back(one);
  TokenTrie const trie(TokenBytes(tokens), {.size = static_cast<std::int32_t>(tokens.size()), .bos = 0, .eos = {0}});
  auto const grammar = Grammar::from_json_schema(
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "n": {"type": "integer"},
          "all": {"type": "array", "items": {"enum": ["the", "a", 12]}}}, "required": ["name"]})");
  for (int round = 0; round < 3; ++round) {
    auto const expected = draw(Structure(grammar, trie), 30);
    Structure const shared(grammar, trie);
    std::array<std::vector<std::uint64_t>, 4> found;
    std::vector<std::thread> threads;
    threads.reserve(found.size());
    for (auto& one : found) threads.emplace_back([&] { one = draw(shared, 30); });
    for (auto& thread : threads) thread.join();
    for (auto const& one : found) CHECK((one == expected));
  }
}
