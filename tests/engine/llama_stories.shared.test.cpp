// SPDX-License-Identifier: Apache-2.0
// A trained model, whose outputs are of many lengths and repeat themselves: stories.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/catch.hpp>
#include <support/llama_models.hpp>

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

std::string const file = std::string(SLUICE_SHARED_DIR) + "/llama/stories260K.gguf";

template <class S>
std::vector<Request<std::monostate, S>> stories(LlamaTokenizer const& tokenizer) {
  std::vector<Request<std::monostate, S>> all;
  for (auto const* text : {"Once upon a time", "Tom and Sam", "The dog", "One day, a little girl", "Lily wanted",
                           "A big red ball", "Mum said", "The sun was", "Ben had a", "It was raining", "The cat sat on",
                           "In the park", "Her friend", "They were", "He ran", "She saw a bird"})
    all.push_back({.prompt = tokenizer.tokens(text)});
  return all;
}

}  // namespace

TEST_CASE("stories are those of llama.cpp's own greedy sampler, whatever the batch, the schedule and the blocks") {
  if (!std::filesystem::exists(file)) {
    std::cout << "SKIPPED: " << file << " is missing\n";
    return;
  }
  begin_llama();
  auto params = llama_model_default_params();
  params.use_extra_bufts = false;
  LlamaModel const model(llama_model_load_from_file(file.c_str(), params));
  REQUIRE(model != nullptr);
  auto const context = make_context(model.get(), exact_params(16, 8192));
  Llama adapter(context.get(), {.eos = {1}});  // a story ends where the next begins

  std::vector<std::vector<Token>> expected;
  for (auto const& request : stories<Greedy>(adapter.tokenizer()))
    expected.push_back(own_greedy(model.get(), request.prompt, 300, {1}));
  CHECK(adapter.tokenizer().text(expected[0]).starts_with(", there was a little girl named Lily."));

  auto const check = [&](std::vector<Result> const& results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO(i << ": " << results[i].message);
      REQUIRE(results[i].ok());
      CHECK(results[i].hypotheses.at(0).tokens == expected[i]);
    }
  };
  Greedy const greedy{.length = {.max = 300}};
  for (std::size_t const size : {1, 4, 16})
    check(decode(adapter, stories<Greedy>(adapter.tokenizer()), greedy, Batched{.size = size}));
  check(decode(adapter, stories<Greedy>(adapter.tokenizer()), greedy, Streaming{.size = 4, .refill_below = 1}));
  Speculated lookup(adapter, PromptLookup());
  using Blocks = Blockwise<>;
  check(decode(lookup, stories<Blocks>(adapter.tokenizer()), Blocks{.block = 6, .length = {.max = 300}}));
}
