// SPDX-License-Identifier: Apache-2.0
// What Llama reads from a model and a context, and what it refuses.
#include <sluice/core/model.hpp>
#include <sluice/engine/llama.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

static_assert(Model<Llama> && ReleasingModel<Llama>);

namespace {

using Tokens = std::vector<Token>;
constexpr Abilities everything{.ragged = true, .blocks = true, .roll_back = true},
    forward{.ragged = true, .blocks = true};

}  // namespace

TEST_CASE("the vocabulary is the model's") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(1, 256));
  auto const vocabulary = Llama(context.get()).vocabulary();
  CHECK(vocabulary.size == 59);
  CHECK(vocabulary.bos == 1);
  CHECK(vocabulary.eos == Tokens{2, 3});
  CHECK(vocabulary.never == Tokens{4});

  // What the file does not say; an end is generated even if it is suppressed.
  auto const more = Llama(context.get(), {.eos = {4, 1, 1}, .never = {7, 0, 7}}).vocabulary();
  CHECK(more.eos == Tokens{1, 2, 3, 4});
  CHECK(more.never == Tokens{0, 7});
}

TEST_CASE("limits are those of the context") {
  auto const model = draw_llama();
  auto params = exact_params(4, 1024);
  auto const limits_of = [&] {
    auto const context = make_context(model.get(), params);
    return Llama(context.get()).limits();
  };
  auto const shared = limits_of();
  CHECK(shared.slot_count == 4);
  CHECK(shared.length == 1024);
  CHECK(shared.tokens == 1024);

  params.kv_unified = false;  // each has its part
  auto const split = limits_of();
  CHECK(split.slot_count == 4);
  CHECK(split.length == 256);
  CHECK(split.tokens == Limits{}.tokens);

  params.n_seq_max = 1;
  CHECK(limits_of().length == 1024);
  CHECK(limits_of().tokens == 1024);
}

TEST_CASE("a model claims what its memory can do") {
  auto const abilities_of = [](LlamaShape const& shape, bool unified, bool whole = true) {
    auto const model = draw_llama(shape);
    auto params = exact_params(4, 1024);
    params.kv_unified = unified, params.swa_full = whole, params.n_ubatch = 64;
    auto const context = make_context(model.get(), params);
    return Llama(context.get()).abilities();
  };
  CHECK(abilities_of({}, true) == everything);
  CHECK(abilities_of({}, false) == everything);
  CHECK(abilities_of({.architecture = "mamba"}, true) == forward);

  LlamaShape const window{.architecture = "gemma2", .window = 16};
  CHECK(abilities_of(window, true) == forward);
  CHECK(abilities_of(window, false) == everything);
  CHECK(abilities_of(window, true, false) == forward);

  // A state has one size, whatever has been read.
  auto const model = draw_llama({.architecture = "mamba"});
  auto const context = make_context(model.get(), exact_params(4, 256));
  auto const limits = Llama(context.get()).limits();
  CHECK(limits.slot_count == 4);
  CHECK(limits.length == Limits::unlimited);
  CHECK(limits.tokens == Limits{}.tokens);
}

TEST_CASE("texts become tokens and back") {
  auto const model = draw_llama();
  LlamaTokenizer const tokenizer(model.get());
  auto const tokens = tokenizer.tokens("ab c");  // bos, and " a" since a text begins with a space here
  CHECK(tokens == Tokens{1, 7, 34, 9});
  CHECK(tokenizer.text(tokens) == " ab c");
  CHECK(tokenizer.tokens("ab c", false) == Tokens{7, 34, 9});
  CHECK(tokenizer.tokens("", true) == Tokens{1});
  CHECK(tokenizer.tokens("", false).empty());

  CHECK(tokenizer.bytes(5) == "\n");
  CHECK(tokenizer.bytes(1).empty());
  CHECK(tokenizer.bytes(1, true) == "<s>");
  CHECK(tokenizer.tokens("<s>", false, true) == Tokens{1});
  auto const all = tokenizer.token_bytes();
  REQUIRE(all.size() == 59);
  for (Token token = 0; token < 59; ++token) CHECK(all.bytes(token) == tokenizer.bytes(token));

  auto const wide = draw_llama({.words = 3});
  CHECK(LlamaTokenizer(wide.get()).text(Tokens{59, 61}) == "word0word2");
}

TEST_CASE("long pieces and long texts are whole") {
  auto const model = draw_llama();
  LlamaTokenizer const tokenizer(model.get());
  std::string text;
  for (int i = 0; i < 500; ++i) text += "abc ";
  CHECK(tokenizer.text(tokenizer.tokens(text, true)) == " " + text);
}

TEST_CASE("what makes no sense is refused by name") {
  auto const model = draw_llama();
  auto const context = make_context(model.get(), exact_params(1, 256));
  CHECK_THROWS_WITH(Llama(nullptr), "sluice: context = null: must be a context of llama.cpp");
  CHECK_THROWS_WITH(LlamaTokenizer(nullptr), "sluice: model = null: must be a model of llama.cpp");
  CHECK_THROWS_WITH(Llama(context.get(), {.eos = {59}}), "sluice: vocabulary.eos = 59: is outside the vocabulary");
  CHECK_THROWS_WITH(Llama(context.get(), {.never = {-1}}), "sluice: vocabulary.never = -1: is outside the vocabulary");
  Llama const adapter(context.get());
  CHECK_THROWS_WITH(adapter.tokenizer().bytes(59), "sluice: token = 59: is outside the vocabulary");
}

TEST_CASE("real tokenizers, without weights") {
  begin_llama();
  auto params = llama_model_default_params();
  params.vocab_only = true;
  int found = 0;
  for (auto const* name : {"gpt-2", "llama-spm", "llama-bpe", "phi-3", "qwen2"}) {
    auto const file = std::string(SLUICE_LLAMA_MODELS) + "/ggml-vocab-" + name + ".gguf";
    if (!std::filesystem::exists(file)) continue;
    ++found;
    INFO(name);
    LlamaModel const model(llama_model_load_from_file(file.c_str(), params));
    REQUIRE(model != nullptr);
    LlamaTokenizer const tokenizer(model.get());
    CHECK(!tokenizer.vocabulary().eos.empty());
    CHECK(tokenizer.vocabulary().contains(tokenizer.vocabulary().bos));  // qwen2 has none
    for (std::string const text : {"Hello, world!\n\n  two  spaces", "na\u00efve \u4f60\u597d \U0001F600 caf\u00e9"}) {
      auto const back = tokenizer.text(tokenizer.tokens(text, false));
      CHECK((back == text || back == " " + text));
    }
  }
  if (*SLUICE_LLAMA_MODELS != 0) CHECK(found == 5);
}
