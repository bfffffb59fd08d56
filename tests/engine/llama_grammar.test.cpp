// SPDX-License-Identifier: Apache-2.0
// The tokens that a grammar allows, beside those of llama.cpp's own grammar sampler, over vocabularies of real models.
#include <sluice/engine/llama.hpp>
#include <sluice/engine/llama_tokenizer.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/structure.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/grammar/utf8.hpp>

#include <support/catch.hpp>
#include <support/llama_contexts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <llama.h>
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
)g"};

}  // namespace

TEST_CASE("a grammar allows what llama.cpp's sampler allows") {
  begin_llama();
  auto params = llama_model_default_params();
  params.vocab_only = true;
  std::mt19937_64 random(1);
  int steps = 0;
  for (auto const* name : {"llama-bpe", "llama-spm", "gpt-2"}) {
    auto const file = std::string(SLUICE_LLAMA_MODELS) + "/ggml-vocab-" + name + ".gguf";
    if (!std::filesystem::exists(file)) continue;
    INFO(name);
    LlamaModel const model(llama_model_load_from_file(file.c_str(), params));
    REQUIRE(model != nullptr);
    LlamaTokenizer const tokenizer(model.get());
    auto const& vocabulary = tokenizer.vocabulary();
    auto const bytes = tokenizer.token_bytes();
    TokenTrie const trie(bytes, vocabulary);
    std::vector<llama_token_data> data(static_cast<std::size_t>(vocabulary.size));
    for (auto const& grammar : grammars) {
      Structure const structure(Grammar::from_gbnf(grammar), trie);
      auto* const tokens = llama_model_get_vocab(model.get());
      std::unique_ptr<llama_sampler, LlamaDeleter> const sampler(
          llama_sampler_init_grammar(tokens, grammar.c_str(), "root"));
      REQUIRE(sampler != nullptr);
      auto state = structure.start();
      std::string text;
      for (int step = 0; step < 15; ++step, ++steps) {
        CAPTURE(text);
        for (Token t = 0; t < vocabulary.size; ++t) data[static_cast<std::size_t>(t)] = {t, 0, 0};
        llama_token_data_array all{data.data(), data.size(), -1, false};
        llama_sampler_apply(sampler.get(), &all);
        auto const set = structure.may_follow(state, Limits::unlimited);
        std::vector<Token> some;
        for (Token t = 0; t < vocabulary.size; ++t) {
          auto const ends = std::ranges::find(vocabulary.eos, t) != vocabulary.eos.end();
          auto const never = std::ranges::find(vocabulary.never, t) != vocabulary.never.end();
          if (never || (!ends && (bytes.bytes(t).empty() || !is_utf8(text + std::string(bytes.bytes(t)))))) continue;
          auto const theirs = std::isfinite(data[static_cast<std::size_t>(t)].logit);
          if (theirs != set->contains(t)) FAIL(t << " '" << bytes.bytes(t) << "': theirs " << theirs);
          if (theirs && !ends) some.push_back(t);
        }
        if (some.empty()) break;
        auto token = some[random() % some.size()];
        for (int i = 0; i < 40 && bytes.bytes(token).find_first_of("\"}],:=)") == std::string_view::npos; ++i)
          token = some[random() % some.size()];  // rather out of a string than on in it
        text += bytes.bytes(token), state = structure.next(state, token);
        llama_sampler_accept(sampler.get(), token);
      }
    }
  }
  if (*SLUICE_LLAMA_MODELS != 0) CHECK(steps > 60);
}
