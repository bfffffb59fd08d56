// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sequences of llama.cpp that wait outside its KV cache. Needs llama.h (component `llama`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Copies a sequence that no step has named for a while to memory of its own, and back when one does. In a cache that sequences share, each
/// step reads the cells of all, up to the highest: those of ended requests, kept for their beginnings, slow all others.
class LlamaSwap {
 public:
  /// \param after  steps; 0: never
  void begin(llama_context* context, std::int32_t after) {
    context_ = context, memory_ = llama_get_memory(context), after_ = after;
  }

  /// Before a step: its sequences are in the cache.
  void fetch(std::span<Row const> rows) {
    if (after_ <= 0) return;
    for (auto const& row : rows) {
      if (row.from != row.to) forget(row.to);
      fetch(row.from), fetch(row.to);
    }
  }
  /// After a step.
  void put_away(std::span<Row const> rows) {
    if (after_ <= 0) return;
    for (auto const& row : rows) touch(row.from), touch(row.to);
    for (std::size_t i = 0; i < waits_.size(); ++i)
      if (auto& one = waits_[i]; one.holds && one.bytes.empty() && ++one.idle > after_) put_away(static_cast<Slot>(i));
  }
  /// The sequence is emptied.
  void forget(Slot slot) {
    if (auto const i = static_cast<std::size_t>(slot); i < waits_.size()) waits_[i] = {};
  }

 private:
  struct Wait {
    bool holds = false;  // the sequence has tokens
    std::int32_t idle = 0;
    std::vector<std::uint8_t> bytes{};  // while it is outside
  };

  void touch(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= waits_.size()) waits_.resize(i + 1);
    waits_[i].holds = true, waits_[i].idle = 0;
  }
  void fetch(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= waits_.size() || waits_[i].bytes.empty()) return;
    auto& bytes = waits_[i].bytes;
    if (llama_state_seq_set_data(context_, bytes.data(), bytes.size(), slot) == 0)
      throw NoRoom("llama.cpp has no cells for a sequence that waited outside");
    bytes = {}, waits_[i].idle = 0;
  }
  void put_away(Slot slot) {
    auto& one = waits_[static_cast<std::size_t>(slot)];
    if (llama_memory_seq_pos_max(memory_, slot) < 0) return one.holds = false, void();
    std::vector<std::uint8_t> bytes(llama_state_seq_get_size(context_, slot));
    bytes.resize(llama_state_seq_get_data(context_, bytes.data(), bytes.size(), slot));
    if (bytes.empty()) return one.idle = 0, void();  // it stays
    one.bytes = std::move(bytes);
    llama_memory_seq_rm(memory_, slot, -1, -1);  // never fails for a whole sequence
  }

  llama_context* context_ = nullptr;
  llama_memory_t memory_ = nullptr;
  std::int32_t after_ = 0;
  std::vector<Wait> waits_;  // [slot]
};

}  // namespace sluice::inline v0::detail
