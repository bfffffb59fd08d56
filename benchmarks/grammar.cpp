// SPDX-License-Identifier: Apache-2.0
// What a grammar costs: compiling it, and the set of allowed tokens of a state, when it is first come to and later. Outputs
// are drawn at random from what is allowed, over a vocabulary of byte strings made by random merges.
//
//   sluice.bench.grammar [tokens] [outputs] [file of a vocabulary: one token a line, in hexadecimal; empty: control]
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/decode/decode.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/search/beam/beam_search.hpp>

#include "grammar_schemas.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using sluice::Token;

double milliseconds(auto const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// All bytes, then pieces joined of two shorter ones, letters above all: the first token is the end.
std::vector<std::string> merged_tokens(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<std::string> tokens{""}, pieces;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  static std::string const often = "eeeeeetttttaaaaooooiiinnnnssshhrrddllcuummwfgypbvk      .,'\"\"{}[]:0123456789-_\n";
  for (auto const c : often) pieces.emplace_back(1, c);
  std::unordered_set<std::string> known(tokens.begin(), tokens.end());
  while (tokens.size() < count) {
    // The square of a uniform number: early pieces, which are short, more often.
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

std::vector<std::string> read_tokens(char const* path) {
  std::ifstream file(path);
  std::vector<std::string> tokens{""};
  for (std::string line; std::getline(file, line);) {
    auto& token = tokens.emplace_back();
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      token.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
  }
  return tokens;
}

struct Times {
  std::vector<double> all;
  double at(double part) {
    if (all.empty()) return 0;
    std::ranges::sort(all);
    return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
  }
};

void measure(std::string const& name, auto const& compile, sluice::TokenTrie const& trie, int outputs) {
  sluice::Grammar grammar;
  sluice::Structure structure;
  auto const compiling = milliseconds([&] { grammar = compile(); });
  auto const joining = milliseconds(
      [&] { structure = sluice::Structure(grammar, trie, {.memory = std::size_t{1} << 30, .masks = 1 << 16}); });
  std::mt19937_64 random(2);
  Times first, warm, tight, next;
  std::size_t wrong = 0;
  for (int output = 0; output < outputs; ++output) {
    auto state = structure.start();
    std::int32_t const most = 300;
    std::string text;
    for (std::int32_t left = most; left > 0; --left) {
      std::shared_ptr<sluice::TokenSet const> set;
      auto const once = 1000 * milliseconds([&] { set = structure.may_follow(state, sluice::Limits::unlimited); });
      auto const again = 1000 * milliseconds([&] { set = structure.may_follow(state, sluice::Limits::unlimited); });
      if (once > 3 * again + 0.3) first.all.push_back(once);
      warm.all.push_back(again);
      auto const limited = 1000 * milliseconds([&] { set = structure.may_follow(state, left); });
      if (left < 60) tight.all.push_back(limited);
      std::vector<Token> some;
      auto const words = set->words();
      for (std::size_t w = 0; w < words.size(); ++w)
        for (auto bits = words[w]; bits != 0; bits &= bits - 1)
          some.push_back(static_cast<Token>(w * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
      if (some.empty()) break;
      auto const token = some[random() % some.size()];
      text += trie.bytes(token);
      next.all.push_back(1000 * milliseconds([&] { state = structure.next(state, token); }));
      if (token == trie.vocabulary().eos[0]) break;
    }
    wrong += grammar.matches(text) ? 0 : 1;
  }
  std::printf("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f | %.1f | %.1f | %.2f | %zu |\n", name.c_str(),
              structure.sizes().first, compiling, joining, first.at(0.5), first.at(0.99), warm.at(0.5), warm.at(0.99),
              tight.at(0.5), tight.at(0.99), next.at(0.5), wrong);
  std::fflush(stdout);
}

/// Scores from a table, as they come: what a beam costs beside a model that costs nothing.
class Scorer {
 public:
  using Source = int;
  explicit Scorer(std::int32_t size) : size_(size), table_(static_cast<std::size_t>(size) * 23) {
    std::mt19937_64 random(3);
    std::normal_distribution<float> draw(0, 2);
    for (auto& x : table_) x = draw(random);
  }
  sluice::Vocabulary vocabulary() const { return {.size = size_, .bos = 0, .eos = {0}}; }
  static void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    auto const first = static_cast<std::size_t>(rows[0].length % 18) * static_cast<std::size_t>(size_);
    return sluice::scores(table_.data() + first, std::ssize(rows), size_);
  }

 private:
  std::int32_t size_;
  std::vector<float> table_;
};

/// Steps of one beam of five, with and without a grammar, one after the other.
void compare_beams(sluice::TokenTrie const& trie) {
  Scorer model(trie.vocabulary().size);
  sluice::BeamSearch const beam{.width = 5, .length = {.min = 90, .max = 100}};
  auto const text = sluice::Grammar::from_json_schema(R"({"type":"array","items":{"type":"string"},"minItems":20})");
  sluice::Structured<sluice::BeamSearch> const structured{beam, sluice::Structure(text, trie)};
  Times plain, under;
  sluice::Result result;
  for (int i = 0; i < 9; ++i) {
    plain.all.push_back(milliseconds([&] { (void)sluice::decode(model, std::vector<int>{1}, beam); }) / 100);
    auto const time = milliseconds([&] { result = sluice::decode(model, std::vector<int>{1}, structured)[0]; }) / 100;
    if (i > 0) under.all.push_back(time);  // the first works out what is kept
  }
  if (!result.message.empty()) throw std::runtime_error(result.message);
  std::printf("\nbeam of 5, milliseconds a step, output layer included: plain %.3f, structured %.3f\n", plain.at(0.5),
              under.at(0.5));
}

}  // namespace

int main(int count, char** arguments) try {
  auto const size = count > 1 ? static_cast<std::size_t>(std::atoi(arguments[1])) : std::size_t{128'000};
  auto const outputs = count > 2 ? std::atoi(arguments[2]) : 50;
  auto const tokens = count > 3 ? read_tokens(arguments[3]) : merged_tokens(size);
  sluice::TokenBytes const bytes(tokens);
  sluice::TokenTrie trie;
  auto const sorting = milliseconds([&] {
    trie = sluice::TokenTrie(bytes, {.size = static_cast<std::int32_t>(tokens.size()), .bos = 0, .eos = {0}});
  });
  std::printf("%zu tokens, %d nodes, trie in %.0f ms; times of sets in microseconds\n\n", tokens.size(), trie.size(),
              sorting);
  std::printf(
      "| | nodes | compiled ms | joined ms | first median | first 99 %% | warm median | warm 99 %% | last 60 tokens: "
      "median | "
      "99 %% | next median | wrong |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (auto const& [name, text] : bench::schemas())
    measure(
        name, [&] { return sluice::Grammar::from_json_schema(text); }, trie, outputs);
  measure(
      "JSON in GBNF", [&] { return sluice::Grammar::from_gbnf(bench::json_gbnf); }, trie, outputs);
  measure(
      "date in a regex", [&] { return sluice::Grammar::from_regex("\\d{4}-\\d\\d-\\d\\d( [a-z]+)*"); }, trie, outputs);
  compare_beams(trie);
} catch (std::exception const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
