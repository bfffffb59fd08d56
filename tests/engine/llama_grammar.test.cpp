// SPDX-License-Identifier: Apache-2.0
// The tokens that a grammar allows, beside those of llama.cpp's own grammar sampler, over vocabularies of real models.
#include <sluice/engine/llama.hpp>
#include <sluice/grammar/detail/utf8.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>

#include <support/catch.hpp>
#include <support/llama_contexts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <llama.h>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

/// Whole characters only. Of half ones llama.cpp's sampler allows some that no character begins with.
bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    auto const size = sluice::detail::read_utf8(text).second;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::vector<std::string> const grammars{
    R"g(
root ::= object
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,3})? ws
ws ::= [ \t\n]{0,20}
)g",
    R"g(
root ::= (expression "=" [ ]? number "\n")+
expression ::= term ([-+*/] term)*
term ::= number | [a-zäöü] [a-z0-9_]* | "(" expression ")"
number ::= [0-9]+
)g",
    R"g(
root ::= ("yes" | "no" | "may" "be"?) ("," [ ] [a-zA-Z]+ [.!?]?)?
)g",
    R"g(
root ::= "[" item ("," item){0,3} "]"
item ::= "-"? [0-9]{1,4} | "\"" [^"\\\x00-\x1F]{0,12} "\""
)g",
    R"g(
root ::= date | name "=" date
date ::= [12] [0-9]{3} "-" ("0" [1-9] | "1" [0-2]) "-" [0-3] [0-9]
name ::= [A-Z] [a-z]{0,9} (" " [A-Z] [a-z]{0,9})?
)g"};

/// What a vocabulary's tokens are.
struct Tokens {
  explicit Tokens(llama_model& model)
      : vocab(llama_model_get_vocab(&model)),
        tokenizer(&model),
        vocabulary(tokenizer.vocabulary()),
        bytes(tokenizer.token_bytes()),
        trie(bytes, vocabulary) {}
  bool ends(Token t) const { return std::ranges::find(vocabulary.eos, t) != vocabulary.eos.end(); }
  bool never(Token t) const { return std::ranges::find(vocabulary.never, t) != vocabulary.never.end(); }

  llama_vocab const* vocab;
  LlamaTokenizer tokenizer;
  Vocabulary vocabulary;
  TokenBytes bytes;
  TokenTrie trie;
};

/// Draws outputs and compares what may follow each of their tokens.
struct Beside {
  std::mt19937_64 random{1};
  int outputs = 0, complete = 0, steps = 0;
  std::int64_t tokens = 0;
  std::map<std::string, Structure> structures{};  // of the last vocabulary
  TokenTrie of{};
  std::vector<llama_token_data> data{};

  void compare(Tokens const& with, std::string const& grammar, int most) {
    if (of.data().vocabulary().size != with.vocabulary.size) structures.clear(), of = with.trie;
    auto const& structure =
        structures.try_emplace(grammar, Structure(Grammar::from_gbnf(grammar), with.trie)).first->second;
    std::unique_ptr<llama_sampler, LlamaDeleter> const sampler(
        llama_sampler_init_grammar(with.vocab, grammar.c_str(), "root"));
    REQUIRE(sampler != nullptr);
    auto state = structure.start();
    std::string text;
    ++outputs;
    for (int step = 0; step < most; ++step, ++steps) {
      CAPTURE(text);
      data.resize(static_cast<std::size_t>(with.vocabulary.size));
      for (Token t = 0; t < with.vocabulary.size; ++t) data[static_cast<std::size_t>(t)] = {t, 0, 0};
      llama_token_data_array candidates{data.data(), data.size(), -1, false};
      llama_sampler_apply(sampler.get(), &candidates);
      auto const set = structure.may_follow(state, Limits::unlimited);
      std::vector<Token> some;
      auto end = false;
      for (Token t = 0; t < with.vocabulary.size; ++t) {
        auto const bytes = with.bytes.bytes(t);
        if (with.never(t) || (!with.ends(t) && (bytes.empty() || !is_utf8(text + std::string(bytes))))) continue;
        auto const theirs = std::isfinite(data[static_cast<std::size_t>(t)].logit);
        if (theirs != set->contains(t)) FAIL(t << " '" << bytes << "': theirs " << theirs);
        ++tokens;
        if (theirs && with.ends(t)) end = true;
        else if (theirs) some.push_back(t);
      }
      if (some.empty() || (end && random() % 3 == 0)) {
        ++complete, ++steps;
        break;
      }
      auto token = some[random() % some.size()];
      for (int i = 0; i < 40 && with.bytes.bytes(token).find_first_of("\"}],:=)") == std::string_view::npos; ++i)
        token = some[random() % some.size()];  // rather out of a string than on in it
      text += with.bytes.bytes(token), state = structure.next(state, token);
      llama_sampler_accept(sampler.get(), token);
    }
  }
};

}  // namespace

TEST_CASE("a grammar allows what llama.cpp's sampler allows") {
  if (*SLUICE_LLAMA_MODELS == 0) {
    std::cout << "SKIPPED: needs vocabularies, as tools/fetch-llama brings them\n";
    return;
  }
  begin_llama();
  auto params = llama_model_default_params();
  params.vocab_only = true;
  Beside all;
  for (auto const* name : {"llama-bpe", "llama-spm", "gpt-2"}) {
    auto const file = std::string(SLUICE_LLAMA_MODELS) + "/ggml-vocab-" + name + ".gguf";
    if (!std::filesystem::exists(file)) continue;
    INFO(name);
    LlamaModel const model(llama_model_load_from_file(file.c_str(), params));
    REQUIRE(model != nullptr);
    Tokens const tokens(*model);
    for (std::size_t i = 0; i < 2; ++i) all.compare(tokens, grammars[i], 15);
    // Many short outputs over 128,000 tokens: llama.cpp takes some 0.1 s a step.
    auto const* const more = std::getenv("SLUICE_GRAMMAR_OUTPUTS");
    if (more == nullptr || std::string_view(name) != "llama-bpe") continue;
    auto const count = std::stoi(more);
    for (int i = 0; i < count; ++i) all.compare(tokens, grammars[static_cast<std::size_t>(i) % grammars.size()], 8);
    std::cout << all.outputs << " outputs, " << all.complete << " of them complete, " << all.steps << " steps, "
              << all.tokens << " tokens compared\n";
  }
  CHECK(all.steps > 60);
}
