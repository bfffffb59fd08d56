// SPDX-License-Identifier: Apache-2.0
/// \file
/// llama.cpp as a model: a llama_context, whatever it has loaded; its tokens and their texts. Needs llama.h (component `llama`:
/// `sluice::llama`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/token_bytes.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/detail/llama_batch.hpp>
#include <sluice/engine/detail/llama_swap.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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
  /// \throws std::invalid_argument  for a text with a byte that the vocabulary cannot spell, as small ones may not
  std::vector<Token> tokens(std::string_view text, bool begins = true, bool special = false) const {
    std::vector<Token> result(text.size() + 8);
    auto const write = [&] {
      try {  // NOLINTNEXTLINE(readability-suspicious-call-argument): the names are similar
        return llama_tokenize(tokens_, text.data(), static_cast<std::int32_t>(text.size()), result.data(),
                              static_cast<std::int32_t>(result.size()), begins, special);
      } catch (std::out_of_range const&) {  // llama.cpp's table of bytes
        throw std::invalid_argument("sluice: text: the model's vocabulary has no token for one of its bytes");
      }
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

/// A context of llama.cpp. A slot is a sequence id; the whole source is in the request's prompt.
///
/// Create the context with `n_seq_max` = sentences decoded together * slots of each (the beam width; llama.cpp allows
/// at most 256), and `n_ctx` cells for the tokens of all of them. With `kv_unified` sequences share these cells
/// (Limits::tokens) and a fork copies nothing; without it, each sequence has an equal part (Limits::length) and a fork
/// copies its keys and values.
///
/// Claims what the loaded model can do: `ragged` and `blocks`; `roll_back` unless its memory is (partly) recurrent or
/// uses a sliding window that forgets tokens (with sliding windows, it needs a full-size cache, `swa_full`, that is not
/// unified); `trees` if it can roll back, sequences share their cells (`kv_unified`), and LlamaOptions::leaves reserves
/// sequences for paths.
///
/// Refers to the context, which must outlive it and which nothing else may use. Any number of contexts may be used in
/// parallel, each in one thread. A step whose tokens find no free cells throws NoRoom. A step that is aborted
/// (llama_set_abort_callback) or fails throws std::runtime_error and leaves all other slots unchanged.
class Llama {
 public:
  using Source = std::monostate;

  /// \throws std::invalid_argument  for a null context, a model that needs an encoder or has no vocabulary, and options
  ///                                out of range
  explicit Llama(llama_context* context, LlamaOptions const& options = {})
      : context_(required(context)), memory_(llama_get_memory(context)), tokenizer_(llama_get_model(context), options) {
    auto const* const model = llama_get_model(context);
    require(!llama_model_has_encoder(model), "llama_model_has_encoder", "true", "only decoders are driven");
    require(memory_ != nullptr, "llama_get_memory", "null", "the model keeps no tokens, so it generates none");
    auto const sequences = llama_n_seq_max(context);
    require(options.leaves >= 0 && options.leaves < static_cast<std::int32_t>(sequences), "leaves", options.leaves,
            "must be in [0, n_seq_max - 1 = " + std::to_string(sequences - 1) + "]");
    auto const unified = sequences == 1 || llama_n_ctx_seq(context) == llama_n_ctx(context);
    limits_ = {.slot_count = static_cast<std::int32_t>(sequences),
               .length = static_cast<std::int32_t>(llama_n_ctx_seq(context))};
    require(options.swap_after >= 0, "swap_after", options.swap_after, "must not be negative");
    swap_.begin(context, unified && sequences > 1 && !llama_model_is_recurrent(model) && !llama_model_is_hybrid(model)
                             ? options.swap_after
                             : 0);
    if (unified) limits_.tokens = llama_n_ctx(context);
    auto const recurrent = llama_model_is_recurrent(model);
    if (recurrent)
      limits_.length = Limits::unlimited, limits_.tokens = Limits{}.tokens;  // state of fixed size per slot

    // A unified cache reuses cells outside the window, which a roll-back may need.
    auto const forgets =
        llama_model_n_swa(model) > 0 && !(llama_memory_can_shift(memory_) && (sequences == 1 || !unified));
    abilities_ = {.ragged = true, .blocks = true, .roll_back = !recurrent && !llama_model_is_hybrid(model) && !forgets};
    abilities_.trees = options.leaves > 0 && unified && abilities_.roll_back;
    for (auto i = abilities_.trees ? options.leaves : 0; i > 0; --i) lent_.push_back(--limits_.slot_count);
  }

  /// Converts between text and tokens.
  LlamaTokenizer const& tokenizer() const { return tokenizer_; }
  Vocabulary const& vocabulary() const { return tokenizer_.vocabulary(); }
  Limits limits() const { return limits_; }
  Abilities abilities() const { return abilities_; }

  void start(std::span<Source const* const>, std::span<Slot const> slot_numbers) { release(slot_numbers); }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) swap_.forget(slot), cut(slot, 0);
  }

  /// The answer lies in llama.cpp's own memory if its lines come from one call of llama_decode, at most n_batch tokens.
  Scores<float> step(std::span<Row const> rows) {
    swap_.fetch(rows);
    auto const answer = run(rows);
    swap_.put_away(rows);
    return answer;
  }

 private:
  Scores<float> run(std::span<Row const> rows) {
    for (auto const& row : rows)
      if (row.from != row.to) {
        cut(row.to, 0);
        llama_memory_seq_cp(memory_, row.from, row.to, -1, -1);  // whole: without kv_unified a part would cost the same
      }
    for (auto const& row : rows) cut(row.to, row.length);
    batch_.lay_out(rows, lent_);
    Clearing const clearing(*this);

    auto const size = vocabulary().size;
    auto const most = static_cast<std::size_t>(llama_n_batch(context_));
    std::ptrdiff_t lines = 0;
    std::size_t first = 0, moved = 0;
    for (auto const& part : batch_.parts()) {
      for (auto const& move : batch_.moves(std::exchange(moved, part.moves), part.moves)) apply(move);
      while (first < part.tokens) {
        auto const count = (std::min)(part.tokens - first, most);
        auto const found = decode(first, count);
        first += count;
        if (first == batch_.size() && lines == 0) return scores(llama_get_logits(context_), found, size);
        if (found == 0) continue;
        auto const* const data = llama_get_logits(context_);  // the next call overwrites them
        logits_.resize(static_cast<std::size_t>((lines + found) * size));
        std::copy_n(data, found * size, logits_.begin() + lines * size);
        lines += found;
      }
    }
    return scores(logits_.data(), lines, size);
  }

  static llama_context* required(llama_context* context) {
    require(context != nullptr, "context", "null", "must be a context of llama.cpp");
    return context;
  }

  /// Keeps the first `length` tokens of a slot. Skips the removal if there is nothing to cut, since it scans all cells.
  void cut(Slot slot, std::int32_t length) {
    if (llama_memory_seq_pos_max(memory_, slot) < length) return;
    if (!llama_memory_seq_rm(memory_, slot, length == 0 ? -1 : length, -1))
      throw std::runtime_error("llama.cpp cannot cut sequence " + std::to_string(slot) + " to " +
                               std::to_string(length) + " tokens");
  }

  void apply(detail::LlamaBatch::Move const& move) {
    if (move.from == move.to) cut(move.to, move.length);
    else if (move.length > 0) llama_memory_seq_cp(memory_, move.from, move.to, 0, move.length);
  }

  /// At the end of a step, even after an exception, only the first path of a tree stays.
  struct Clearing {
    Llama& llama;
    explicit Clearing(Llama& of) : llama(of) {}
    Clearing(Clearing const&) = delete;
    Clearing& operator=(Clearing const&) = delete;
    ~Clearing() {
      for (auto const sequence : llama.lent_)
        if (llama_memory_seq_pos_max(llama.memory_, sequence) >= 0)
          llama_memory_seq_rm(llama.memory_, sequence, -1, -1);  // never fails for a whole sequence
    }
  };

  /// Feeds tokens [first, first + count); returns the number of their lines.
  std::ptrdiff_t decode(std::size_t first, std::size_t count) {
    auto const code = llama_decode(context_, batch_.tokens(first, count));
    if (code == 1) throw NoRoom("llama.cpp has no cells for " + std::to_string(count) + " tokens more");
    if (code == 2) throw std::runtime_error("llama_decode was aborted");
    if (code != 0) throw std::runtime_error("llama_decode failed with " + std::to_string(code));
    return batch_.lines(first, count);
  }

  llama_context* context_;
  llama_memory_t memory_;
  LlamaTokenizer tokenizer_;
  Limits limits_;
  Abilities abilities_;
  std::vector<Slot> lent_;  // beyond the slots: for paths of trees
  detail::LlamaBatch batch_;
  detail::LlamaSwap swap_;
  std::vector<float> logits_;
};

}  // namespace sluice::inline v0
