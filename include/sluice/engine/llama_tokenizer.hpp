// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a llama.cpp model, and their texts. Needs llama.h (component `llama`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0 {

/// What neither a model's file nor a context says.
struct LlamaOptions {
  std::vector<Token> eos{};    ///< also end an output, besides llama.cpp's end-of-generation tokens
  std::vector<Token> never{};  ///< never generated, besides those that the file suppresses
  /// For Llama: this many of the context's sequences are not slots; they hold tree paths (Row::depths) during a step.
  /// If the memory supports it, the model then takes trees; with fewer sequences than paths in a step, it needs several
  /// calls of llama_decode.
  std::int32_t leaves = 0;
  /// For Llama, where sequences share their cells (kv_unified): one that no step has named for so many steps is swapped out, that is, copied to
  /// memory outside the KV cache until a step names it. So tokens kept for prefix caching do not slow others. 0: never.
  std::int32_t swap_after = 4;
};

/// The vocabulary of a llama.cpp model, with or without weights (`llama_model_params::vocab_only`). Refers to the
/// model, which must outlive it. All members are const and thread-safe.
class LlamaTokenizer {
 public:
  /// \throws std::invalid_argument  for a null model, a model without a vocabulary, and options out of range
  explicit LlamaTokenizer(llama_model const* model, LlamaOptions const& options = {})
      : tokens_(llama_model_get_vocab(required(model))), vocabulary_(read(tokens_, options)) {
    vocabulary_.check();
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }

  /// The bytes that a token adds to a text; empty for a control token, unless `special`.
  std::string bytes(Token token, bool special = false) const {
    require(vocabulary_.contains(token), "token", token, "is outside the vocabulary");
    std::string piece(32, '\0');
    auto const write = [&] {
      return llama_token_to_piece(tokens_, token, piece.data(), static_cast<std::int32_t>(piece.size()), 0, special);
    };
    auto length = write();
    if (length < 0) piece.resize(static_cast<std::size_t>(-length)), length = write();
    piece.resize(static_cast<std::size_t>(length));
    return piece;
  }
  /// The bytes of every token, for stop strings and streamed text.
  TokenBytes token_bytes() const {
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(vocabulary_.size));
    for (Token token = 0; token < vocabulary_.size; ++token) all.push_back(bytes(token));
    return TokenBytes(all);
  }
  /// The text of tokens: the concatenation of the bytes that each adds.
  std::string text(std::span<Token const> tokens) const {
    std::string result;
    for (auto const token : tokens) result += bytes(token);
    return result;
  }
  /// Tokenizes a text. `begins`: adds what the model wants at the front (usually bos); `special`: names of control
  /// tokens become those tokens, as chat templates need.
  std::vector<Token> tokens(std::string_view text, bool begins = true, bool special = false) const {
    std::vector<Token> result(text.size() + 8);
    auto const write = [&] {  // NOLINTNEXTLINE(readability-suspicious-call-argument): the names are similar
      return llama_tokenize(tokens_, text.data(), static_cast<std::int32_t>(text.size()), result.data(),
                            static_cast<std::int32_t>(result.size()), begins, special);
    };
    auto count = write();
    if (count < 0) result.resize(static_cast<std::size_t>(-count)), count = write();
    result.resize(static_cast<std::size_t>(count));
    if (begins && llama_vocab_get_add_eos(tokens_) && !result.empty()) result.pop_back();
    return result;
  }

 private:
  static llama_model const* required(llama_model const* model) {
    require(model != nullptr, "model", "null", "must be a model of llama.cpp");
    return model;
  }

  static Vocabulary read(llama_vocab const* tokenizer, LlamaOptions const& options) {
    require(llama_vocab_type(tokenizer) != LLAMA_VOCAB_TYPE_NONE, "llama_vocab_type", "none", "there are no tokens");
    Vocabulary result{.size = llama_vocab_n_tokens(tokenizer), .eos = options.eos, .never = options.never};
    for (Token token = 0; token < result.size; ++token)
      if (llama_vocab_is_eog(tokenizer, token)) result.eos.push_back(token);
    std::int32_t count = 0;
    auto const* const suppressed = llama_vocab_get_suppress_tokens(tokenizer, &count);
    result.never.insert(result.never.end(), suppressed, suppressed + count);
    for (auto* const list : {&result.eos, &result.never}) {
      std::ranges::sort(*list);
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    std::erase_if(result.never, [&](Token token) { return std::ranges::binary_search(result.eos, token); });

    // A model without bos was trained on texts separated by the token that ends them.
    result.bos = llama_vocab_bos(tokenizer);
    if (result.bos < 0) result.bos = llama_vocab_eos(tokenizer);
    if (result.bos < 0) result.bos = 0;
    return result;
  }

  llama_vocab const* tokens_;
  Vocabulary vocabulary_;
};

}  // namespace sluice::inline v0
