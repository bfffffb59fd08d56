// SPDX-License-Identifier: Apache-2.0
#include <sluice/core/token_bytes.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <grammar/random_grammar.hpp>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int far = 1000;

/// The fewest tokens that complete a text, by trying all; `far`: more than the depth.
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

/// Goes through outputs of up to `steps` tokens and compares every set of allowed tokens with what trying all finds.
struct Comparison {
  Structure const& structure;
  ByTrying& trying;
  std::vector<std::string> const& tokens;  // the last is the end
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

std::vector<std::string> random_tokens(std::mt19937_64& random, std::string const& letters, int count, bool singles) {
  auto const draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  std::vector<std::string> out;
  if (singles)
    for (auto const c : letters) out.emplace_back(1, c);
  while (static_cast<int>(out.size()) < count) {
    std::string token;
    for (auto n = draw(0, 12) == 0 ? 0 : draw(1, 3); n > 0; --n)
      token += letters[static_cast<std::size_t>(draw(0, static_cast<int>(letters.size()) - 1))];
    out.push_back(token);
  }
  out.emplace_back();  // the end
  return out;
}

Vocabulary vocabulary_of(std::vector<std::string> const& tokens) {
  auto const size = static_cast<std::int32_t>(tokens.size());
  return {.size = size, .bos = size - 1, .eos = {size - 1}};
}

}  // namespace

TEST_CASE("masks of random grammars are what trying all tokens finds", "[grammar]") {
  std::mt19937_64 random(18);
  int compared = 0, refused = 0, sets = 0, impossible = 0;
  for (int round = 0; round < 3000; ++round) {
    RandomGrammar draw(random, "ab");
    auto const rules = draw.rules();
    auto const text = gbnf(rules);
    INFO(text);
    Grammar grammar;
    try {
      grammar = Grammar::from_gbnf(text);
    } catch (std::invalid_argument const& e) {
      auto const why = std::string(e.what());
      CAPTURE(why);
      auto const left = why.find("left-recursive") != std::string::npos;
      REQUIRE((left || why.find("no text obeys") != std::string::npos));
      if (!left)
        for (auto const* const some : {"", "a", "b", "ab", "ba", "aba", "abb"}) CHECK_FALSE(recognises(rules, some));
      ++refused;
      continue;
    }
    auto const tokens = random_tokens(random, "ab", draw.draw(2, 5), draw.draw(0, 2) == 0);
    INFO([&] {
      std::string all;
      for (auto const& token : tokens) all += "'" + token + "' ";
      return all;
    }());
    Structure const structure(grammar, TokenTrie(TokenBytes(tokens), vocabulary_of(tokens)));
    ByTrying trying([&](std::string const& s) { return recognises(rules, s); }, tokens);
    Comparison comparison{structure, trying, tokens};
    auto const start = structure.start();
    comparison.compare(start, "", 2);
    ++compared, sets += comparison.sets;
    impossible += structure.may_follow(start, Limits::unlimited)->words()[0] == 0 ? 1 : 0;
  }
  INFO(compared << " compared, " << sets << " sets, " << refused << " refused, " << impossible << " impossible");
  CHECK(compared > 1500);
  CHECK(refused > 100);
  CHECK(impossible > 10);
}
