// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/llama.md: llama LLAMA_MODEL [BACKENDS]. Prints continuations of stories.
// [include]
#include <sluice/engine/llama.hpp>
#include <sluice/sluice.hpp>
// [/include]

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace {

// [context]
struct Free {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};

/// A context for `prompts` prompts at a time, each with `slots` slots (a beam's width), which share `cells` tokens.
std::unique_ptr<llama_context, Free> make_context(llama_model* model, std::uint32_t prompts, std::uint32_t slots,
                                                  std::uint32_t cells) {
  auto params = llama_context_default_params();
  params.n_seq_max = prompts * slots;  // at most 256
  params.n_ctx = cells;
  params.kv_unified = true;  // forks cost nothing, and prompts share all cells
  params.n_threads = params.n_threads_batch = 1;
  return std::unique_ptr<llama_context, Free>(llama_init_from_model(model, params));
}
// [/context]

void decode(llama_model* model) {
  // [decode]
  auto const context = make_context(model, 8, 4, 2048);
  sluice::Llama llama(context.get(), {.eos = {1}});  // this model marks the end of a story with bos

  std::vector<sluice::Request<std::monostate, sluice::BeamSearch>> requests;
  for (auto const* text : {"Once upon a time", "The dog"})
    requests.push_back({.prompt = llama.tokenizer().tokens(text)});
  auto const results = sluice::decode(llama, requests, sluice::BeamSearch{.width = 4, .length = {.max = 24}},
                                      sluice::Streaming{.size = 8, .refill_below = 1});
  for (auto const& result : results)
    if (result.ok()) std::cout << llama.tokenizer().text(result.hypotheses[0].tokens) << '\n';
    else std::cout << result.message << '\n';
  // [/decode]
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: llama MODEL.gguf [BACKENDS]\n";
    return 2;
  }
  llama_log_set([](ggml_log_level, char const*, void*) {}, nullptr);
  // [load]
  llama_backend_init();
  if (argc > 2) ggml_backend_load_all_from_path(argv[2]);  // for builds that load backends at run time
  std::unique_ptr<llama_model, Free> const model(llama_model_load_from_file(argv[1], llama_model_default_params()));
  // [/load]
  if (model == nullptr) {
    std::cerr << argv[1] << ": llama.cpp cannot load it\n";
    return 1;
  }
  decode(model.get());
}
