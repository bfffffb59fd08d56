// SPDX-License-Identifier: Apache-2.0
/// \file
/// llama.cpp contexts for tests, and the results of its own sampler.
#pragma once

#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <gguf.h>
#include <limits>
#include <llama.h>
#include <memory>
#include <stdexcept>
#include <vector>

namespace sluice::test {

struct LlamaDeleter {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
  void operator()(gguf_context* file) const { gguf_free(file); }
  void operator()(ggml_context* tensors) const { ggml_free(tensors); }
};
using LlamaModel = std::unique_ptr<llama_model, LlamaDeleter>;
using LlamaContext = std::unique_ptr<llama_context, LlamaDeleter>;

/// Once per process: silences reports on stderr, and loads a CPU backend. `SLUICE_LLAMA_BACKENDS` is the folder of
/// ggml's backends if they are loaded at run time.
inline void begin_llama() {
  static bool const begun = [] {
    llama_log_set([](ggml_log_level, char const*, void*) {}, nullptr);
    llama_backend_init();
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all();
    if (ggml_backend_dev_count() == 0) ggml_backend_load_all_from_path(SLUICE_LLAMA_BACKENDS);
    return true;
  }();
  static_cast<void>(begun);
}

/// Parameters for which a line does not depend on its batch: keys and values in float32, no flash attention, one
/// thread.
inline llama_context_params exact_params(std::uint32_t sequences, std::uint32_t cells) {
  auto params = llama_context_default_params();
  params.n_seq_max = sequences, params.n_ctx = cells;
  params.kv_unified = true;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.n_threads = params.n_threads_batch = 1;
  return params;
}

inline LlamaContext make_context(llama_model* model, llama_context_params const& params) {
  LlamaContext context(llama_init_from_model(model, params));
  if (context == nullptr) throw std::runtime_error("llama.cpp makes no such context");
  return context;
}

/// The tokens that llama.cpp's own greedy sampler generates after a prompt, including the one that ends the output.
inline std::vector<Token> own_greedy(llama_model* model, std::vector<Token> prompt, std::size_t most,
                                     std::vector<Token> const& ends = {}) {
  auto const context = make_context(model, exact_params(1, 1024));
  auto const* const tokens = llama_model_get_vocab(model);
  std::vector<llama_logit_bias> never;  // as llama.cpp's own programs do
  std::int32_t count = 0;
  auto const* const suppressed = llama_vocab_get_suppress_tokens(tokens, &count);
  for (std::int32_t i = 0; i < count; ++i) never.push_back({suppressed[i], -std::numeric_limits<float>::infinity()});
  std::unique_ptr<llama_sampler, LlamaDeleter> const sampler(
      llama_sampler_chain_init(llama_sampler_chain_default_params()));
  llama_sampler_chain_add(sampler.get(),
                          llama_sampler_init_logit_bias(llama_vocab_n_tokens(tokens), count, never.data()));
  llama_sampler_chain_add(sampler.get(), llama_sampler_init_greedy());
  std::vector<Token> output;
  auto batch = llama_batch_get_one(prompt.data(), static_cast<std::int32_t>(prompt.size()));
  while (output.size() < most) {
    if (llama_decode(context.get(), batch) != 0) throw std::runtime_error("llama_decode failed");
    output.push_back(llama_sampler_sample(sampler.get(), context.get(), -1));
    auto ended = llama_vocab_is_eog(tokens, output.back());
    for (auto const end : ends) ended = ended || output.back() == end;
    if (ended) break;
    batch = llama_batch_get_one(&output.back(), 1);
  }
  return output;
}

}  // namespace sluice::test
