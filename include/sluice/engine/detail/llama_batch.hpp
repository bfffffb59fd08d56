// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows of a step as a batch of llama.cpp. Needs llama.h (component `llama`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// Tokens with positions, sequences and whether a line is wanted, and the moves of sequences that come first.
/// A token of a tree belongs to one sequence per leaf below it. The first path uses the slot's own sequence, the others
/// use lent sequences. If there are more leaves than lent sequences, the batch is split into parts that reuse them: the
/// last path of a part holds everything that the next part's first token follows.
class LlamaBatch {
 public:
  /// Before a part is decoded, `to` must hold the first `length` tokens of `from`, which may equal `to`.
  struct Move {
    Slot from, to;
    std::int32_t length;
  };
  /// Ends at token `tokens`; its moves end at `moves`.
  struct Part {
    std::size_t tokens, moves;
  };

  /// \param lent  sequences that hold nothing; at least one if a row branches
  void lay_out(std::span<Row const> rows, std::span<Slot const> lent) {
    tokens_.clear(), positions_.clear(), counts_.clear(), sequences_.clear(), wanted_.clear();
    parts_.clear(), moves_.clear();
    lent_ = lent, free_.assign(lent.rbegin(), lent.rend());
    for (auto const& row : rows) {
      if (row.kept() < row.tokens.size()) branch(row);
      else
        for (std::size_t i = 0; i < row.tokens.size(); ++i) push(row, i), sequences_.push_back(row.to);
    }
    parts_.push_back({tokens_.size(), moves_.size()});
    pointers_.clear();
    for (auto* sequence = sequences_.data(); auto const count : counts_)
      pointers_.push_back(sequence), sequence += count;
  }

  std::size_t size() const { return tokens_.size(); }
  std::vector<Part> const& parts() const { return parts_; }
  std::span<Move const> moves(std::size_t first, std::size_t last) const {
    return std::span(moves_).subspan(first, last - first);
  }
  /// Tokens [first, first + count), valid until the next lay_out().
  llama_batch tokens(std::size_t first, std::size_t count) {
    return {.n_tokens = static_cast<std::int32_t>(count),
            .token = &tokens_[first],
            .embd = nullptr,
            .pos = &positions_[first],
            .n_seq_id = &counts_[first],
            .seq_id = &pointers_[first],
            .logits = &wanted_[first]};
  }
  std::ptrdiff_t lines(std::size_t first, std::size_t count) const {
    return std::count(&wanted_[first], &wanted_[first] + count, 1);
  }

 private:
  void push(Row const& row, std::size_t i, std::int32_t sequences = 1) {
    tokens_.push_back(row.tokens[i]);
    positions_.push_back(row.length + row.depth(i));
    counts_.push_back(sequences);
    wanted_.push_back(i + static_cast<std::size_t>(row.lines) >= row.tokens.size());
  }

  void branch(Row const& row) {
    require(!lent_.empty(), "row.depths", "a tree", "needs LlamaOptions::leaves");
    auto before = row.to;  // holds what the next token follows
    for (std::size_t begin = 0; begin < row.tokens.size();) {
      leaves_.clear();
      if (begin == 0) leaves_.push_back({first_leaf(row, 0), row.to});
      else if (free_.empty()) begin_part(row, begin, before);
      auto least = row.depth(begin);
      for (auto i = leaves_.empty() ? begin : leaves_.back().token + 1; i < row.tokens.size() && !free_.empty();) {
        auto const leaf = first_leaf(row, i);
        for (; i <= leaf; ++i) least = (std::min)(least, row.depth(i));
        moves_.push_back({before, free_.back(), row.length + least});
        leaves_.push_back({leaf, free_.back()}), free_.pop_back();
      }
      before = leaves_.back().sequence;
      for (; begin <= leaves_.back().token; ++begin) push_shared(row, begin);
    }
  }
  /// The first leaf at or below a token.
  static std::size_t first_leaf(Row const& row, std::size_t i) {
    while (i + 1 < row.tokens.size() && row.depth(i + 1) > row.depth(i)) ++i;
    return i;
  }
  /// Makes all lent sequences available again. If the last path used one, the next path takes it over.
  void begin_part(Row const& row, std::size_t begin, Slot before) {
    parts_.push_back({tokens_.size(), moves_.size()});
    free_.clear();
    for (auto const sequence : lent_)
      if (sequence != before) free_.push_back(sequence), moves_.push_back({sequence, sequence, 0});
    if (std::ranges::find(lent_, before) == lent_.end()) return;
    auto const leaf = first_leaf(row, begin);
    moves_.push_back({before, before, row.length + row.depth(begin)});
    leaves_.push_back({leaf, before});
  }
  /// A token, with the sequences of all leaves of this part that are below it.
  void push_shared(Row const& row, std::size_t i) {
    std::int32_t count = 0;
    auto end = i + 1;
    while (end < row.tokens.size() && row.depth(end) > row.depth(i)) ++end;
    for (auto const& leaf : leaves_)
      if (leaf.token >= i && leaf.token < end) sequences_.push_back(leaf.sequence), ++count;
    push(row, i, count);
  }

  struct Leaf {
    std::size_t token;
    Slot sequence;
  };
  std::span<Slot const> lent_;
  std::vector<Slot> free_;
  std::vector<Leaf> leaves_;  // of a row, in a part
  std::vector<Part> parts_;
  std::vector<Move> moves_;
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<std::int32_t> counts_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> pointers_;
  std::vector<std::int8_t> wanted_;
};

}  // namespace sluice::inline v0::detail
