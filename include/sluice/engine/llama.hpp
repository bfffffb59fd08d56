// SPDX-License-Identifier: Apache-2.0
/// \file
/// llama.cpp as a model: a llama_context, whatever it has loaded. Needs llama.h (component `llama`: `sluice::llama`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/detail/llama_batch.hpp>
#include <sluice/engine/detail/llama_swap.hpp>
#include <sluice/engine/llama_tokenizer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::inline v0 {

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
