// SPDX-License-Identifier: Apache-2.0
/// \file
/// llama.cpp models with random weights, created in memory.
#pragma once

#include <support/llama_contexts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <gguf.h>
#include <llama.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

/// The properties of a random model.
struct LlamaShape {
  char const* architecture = "llama";  ///< "llama", "gemma2" (every other layer a sliding window), "mamba" (recurrent)
  std::uint32_t layers = 2, width = 64, heads = 4, hidden = 128;
  std::uint32_t words = 0;      ///< tokens in addition to a small alphabet
  std::uint32_t window = 0;     ///< for gemma2
  std::uint32_t length = 1024;  ///< the training length that it states
  std::uint64_t seed = 1;
  char const* chat = "";  ///< chat template; empty: none
  bool json = false;  ///< also tokens for all other printable characters, and tokens around calls of tools and thoughts
};

/// The tokens of random models: <unk>, <s>, </s>, <end> (end of turn: also ends an output), <spare> (suppressed), a
/// line end, letters with and without a leading space; then as many words as a shape asks for, and what JSON is written with.
inline std::vector<std::string> llama_tokens(std::uint32_t words = 0, bool json = false) {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "<end>", "<spare>", "<0x0A>", "\u2581"};
  for (char c = 'a'; c <= 'z'; ++c) tokens.push_back(std::string("\u2581") + c);
  for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
  for (std::uint32_t i = 0; i < words; ++i) tokens.push_back("word" + std::to_string(i));
  for (char c = '!'; json && c <= '~'; ++c)
    if (c < 'a' || c > 'z') tokens.emplace_back(1, c);
  if (json) tokens.insert(tokens.end(), {"<tool_call>", "</tool_call>", "<think>", "</think>"});
  return tokens;
}

namespace detail {

/// Fast random numbers of mean 0 and variance 1: whole models are drawn.
struct Draws {
  std::uint64_t state;
  float operator()() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1) * 1.7320508f;
  }
};

/// Writes a llama.cpp file: keys, and tensors drawn one after another.
class LlamaWriter {
 public:
  explicit LlamaWriter(LlamaShape const& shape)
      : shape_(shape),
        draws_{shape.seed},
        file_(gguf_init_empty()),
        tensors_(ggml_init({.mem_size = bytes(shape), .mem_buffer = nullptr, .no_alloc = false})) {
    keys(), tokens(), weights();
  }
  void write(std::FILE* file) const {
    if (!gguf_write_to_file_ptr(file_.get(), file, false)) throw std::runtime_error("the model cannot be written");
  }

 private:
  static std::size_t bytes(LlamaShape const& s) {
    auto const vocabulary = std::size_t{60} + s.words + (s.json ? 80 : 0);
    return ((2 * vocabulary + s.layers * (4 * s.width + 3 * std::max(s.hidden, 4 * s.width))) * s.width + 4096) * 4 +
           (64 + 16 * s.layers) * ggml_tensor_overhead();
  }
  bool is(char const* architecture) const { return std::strcmp(shape_.architecture, architecture) == 0; }

  void number(std::string const& key, std::uint32_t value) {
    gguf_set_val_u32(file_.get(), (std::string(shape_.architecture) + '.' + key).c_str(), value);
  }
  void keys() {
    auto const& s = shape_;
    gguf_set_val_str(file_.get(), "general.architecture", s.architecture);
    number("context_length", s.length), number("embedding_length", s.width), number("block_count", s.layers);
    number("feed_forward_length", s.hidden);
    gguf_set_val_f32(file_.get(), (std::string(s.architecture) + ".attention.layer_norm_rms_epsilon").c_str(), 1e-5f);
    if (is("mamba")) {
      number("ssm.conv_kernel", 4), number("ssm.inner_size", 2 * s.width);
      number("ssm.state_size", 8), number("ssm.time_step_rank", 4);
      return;
    }
    number("attention.head_count", s.heads), number("attention.head_count_kv", s.heads);
    number("attention.key_length", s.width / s.heads), number("attention.value_length", s.width / s.heads);
    number("rope.dimension_count", s.width / s.heads);
    if (s.window > 0) number("attention.sliding_window", s.window);
  }
  void tokens() {
    auto const all = llama_tokens(shape_.words, shape_.json);
    std::vector<char const*> texts;
    std::vector<float> scores;
    std::vector<std::int32_t> types(all.size(), LLAMA_TOKEN_TYPE_NORMAL);
    for (auto const& token : all) texts.push_back(token.c_str()), scores.push_back(-static_cast<float>(texts.size()));
    types[0] = LLAMA_TOKEN_TYPE_UNKNOWN, types[1] = types[2] = types[3] = LLAMA_TOKEN_TYPE_CONTROL;
    if (shape_.json) {
      types[all.size() - 4] = types[all.size() - 3] = LLAMA_TOKEN_TYPE_CONTROL;
      types[all.size() - 2] = types[all.size() - 1] = LLAMA_TOKEN_TYPE_USER_DEFINED;  // as in Qwen 3
    }
    types[4] = LLAMA_TOKEN_TYPE_UNUSED, types[5] = LLAMA_TOKEN_TYPE_BYTE;
    gguf_set_val_str(file_.get(), "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(file_.get(), "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(file_.get(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
    gguf_set_arr_data(file_.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
    gguf_set_val_u32(file_.get(), "tokenizer.ggml.eot_token_id", 3);
    if (*shape_.chat != '\0') gguf_set_val_str(file_.get(), "tokenizer.chat_template", shape_.chat);
    std::int32_t const spare = 4;
    gguf_set_arr_data(file_.get(), "tokenizer.ggml.suppress_tokens", GGUF_TYPE_INT32, &spare, 1);
  }

  /// A tensor of numbers base + scale * draw.
  void tensor(std::string const& name, std::int64_t columns, std::int64_t rows, float scale, float base = 0) {
    auto* const made = rows == 0 ? ggml_new_tensor_1d(tensors_.get(), GGML_TYPE_F32, columns)
                                 : ggml_new_tensor_2d(tensors_.get(), GGML_TYPE_F32, columns, rows);
    ggml_set_name(made, name.c_str());
    for (auto& x : std::span(static_cast<float*>(made->data), static_cast<std::size_t>(ggml_nelements(made))))
      x = base + scale * draws_();
    gguf_add_tensor(file_.get(), made);
  }
  void matrix(std::string const& name, std::int64_t columns, std::int64_t rows, float scale = 1) {
    tensor(name + ".weight", columns, rows, scale / std::sqrt(static_cast<float>(columns)));
  }
  void norm(std::string const& name, float base = 1) { tensor(name + ".weight", shape_.width, 0, 0.1f, base); }

  void weights() {
    auto const d = std::int64_t{shape_.width};
    auto const V = std::ssize(llama_tokens(shape_.words, shape_.json));
    // Logits differ by some units; gemma2 scales its embeddings, and projects with the same weights.
    tensor("token_embd.weight", d, V, is("gemma2") ? 0.5f / std::sqrt(static_cast<float>(d)) : 1);
    norm("output_norm", is("gemma2") ? 6 : 1);
    if (!is("gemma2")) matrix("output", d, V, 3);
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      auto const block = "blk." + std::to_string(i) + '.';
      norm(block + "attn_norm");
      if (is("mamba")) state_space(block);
      else attention(block);
    }
  }
  void attention(std::string const& block) {
    auto const d = std::int64_t{shape_.width}, hidden = std::int64_t{shape_.hidden};
    for (auto const* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) matrix(block + name, d, d);
    norm(block + "ffn_norm");
    matrix(block + "ffn_gate", d, hidden), matrix(block + "ffn_up", d, hidden), matrix(block + "ffn_down", hidden, d);
    if (is("gemma2")) norm(block + "post_attention_norm"), norm(block + "post_ffw_norm");
  }
  void state_space(std::string const& block) {
    auto const d = std::int64_t{shape_.width}, inner = 2 * d;
    matrix(block + "ssm_in", d, 2 * inner), matrix(block + "ssm_conv1d", 4, inner);
    tensor(block + "ssm_conv1d.bias", inner, 0, 0.1f);
    matrix(block + "ssm_x", inner, 4 + 2 * 8), matrix(block + "ssm_dt", 4, inner);
    tensor(block + "ssm_dt.bias", inner, 0, 0.5f);
    tensor(block + "ssm_a", 8, inner, 0.5f, -1);  // < 0: the state decays
    tensor(block + "ssm_d", inner, 0, 0.1f, 1);
    matrix(block + "ssm_out", inner, d);
  }

  LlamaShape shape_;
  Draws draws_;
  std::unique_ptr<gguf_context, LlamaDeleter> file_;
  std::unique_ptr<ggml_context, LlamaDeleter> tensors_;
};

}  // namespace detail

/// Writes a random model as GGUF.
inline void write_llama(LlamaShape const& shape, std::FILE* file) { detail::LlamaWriter(shape).write(file); }

/// The same, loaded by llama.cpp.
inline LlamaModel draw_llama(LlamaShape const& shape = {}) {
  begin_llama();
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::tmpfile(), std::fclose);
  if (file == nullptr) throw std::runtime_error("no temporary file for a drawn model");
  write_llama(shape, file.get());
  std::rewind(file.get());
  auto params = llama_model_default_params();
  params.use_extra_bufts = false;  // weights unchanged, not repacked
  params.load_mode = LLAMA_LOAD_MODE_NONE;
  LlamaModel model(llama_model_load_from_file_ptr(file.get(), params));
  if (model == nullptr)
    throw std::runtime_error(std::string("llama.cpp does not take the drawn ") + shape.architecture);
  return model;
}

}  // namespace sluice::test
