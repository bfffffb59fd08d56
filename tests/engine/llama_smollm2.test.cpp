// SPDX-License-Identifier: Apache-2.0
// A real model with quantised weights: SmolLM2-135M-Instruct, as tools/fetch-smollm2 brings it.
#include <sluice/decode/decode.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/engine/llama.hpp>
#include <sluice/search/greedy.hpp>

#include <support/catch.hpp>
#include <support/llama_contexts.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

using namespace sluice;
using namespace sluice::test;

// Activations are rounded to 8 bits before each product, so a batch changes tokens unless each sequence has cells of its own.
TEST_CASE("20 prompts of a quantised model are llama.cpp's own greedy sampler's, one by one and 8 at a time") {
  if (!std::filesystem::exists(SLUICE_SMOLLM2)) {
    std::cout << "SKIPPED: needs SMOLLM2_ROOT, from tools/fetch-smollm2\n";
    return;
  }
  begin_llama();
  auto params = llama_model_default_params();
  params.use_extra_bufts = false;
  LlamaModel const model(llama_model_load_from_file(SLUICE_SMOLLM2, params));
  REQUIRE(model != nullptr);
  auto own = exact_params(8, 8 * 256);
  own.kv_unified = false;
  auto const context = make_context(model.get(), own);
  Llama adapter(context.get());

  std::vector<Request<std::monostate, Greedy>> requests;
  std::vector<std::vector<Token>> expected;
  constexpr std::size_t most = 24;
  for (auto const* asked : {"What is the capital of Norway?",
                            "Count to ten.",
                            "Write a line about rain.",
                            "Why is the sky blue?",
                            "Name three fruits.",
                            "Translate to French: good morning",
                            "What is 12 times 7?",
                            "Tell me a joke.",
                            "Who wrote Hamlet?",
                            "Give me a recipe for pancakes.",
                            "Explain gravity to a child.",
                            "What rhymes with moon?",
                            "Is a tomato a fruit?",
                            "Write JSON with a name and an age.",
                            "How do bees make honey?",
                            "List the primes below 20.",
                            "What does a compiler do?",
                            "Say hello in German.",
                            "How tall is Mount Everest?",
                            "Finish: once upon a time"}) {
    auto const chat = "<|im_start|>user\n" + std::string(asked) + "<|im_end|>\n<|im_start|>assistant\n";
    requests.push_back({.prompt = adapter.tokenizer().tokens(chat, true, true)});
    expected.push_back(own_greedy(model.get(), requests.back().prompt, most));
  }
  CHECK(adapter.tokenizer().text(expected[0]).find("Oslo") != std::string::npos);
  Greedy const greedy{.length = {.max = static_cast<std::int32_t>(most)}};
  for (auto const& schedule : {Streaming{.size = 1}, Streaming{.size = 8, .refill_below = 1}}) {
    auto const results = decode(adapter, requests, greedy, schedule);
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("prompt " << i << ", " << schedule.size << " at a time: " << results[i].message);
      REQUIRE(results[i].ok());
      CHECK(results[i].hypotheses.at(0).tokens == expected[i]);
    }
  }
}
