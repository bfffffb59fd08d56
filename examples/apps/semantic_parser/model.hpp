// SPDX-License-Identifier: Apache-2.0
/// \file
/// A recurrent sequence-to-sequence model with attention, as a sluice Model: no cache, no roll-back.
#pragma once

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <transformer/attention.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <semantic_parser/lstm.hpp>
#include <semantic_parser/weights.hpp>
#include <span>
#include <utility>
#include <vector>

namespace semantic_parser {
inline namespace SLUICE_ISA {

/// The parser of Dong and Lapata (2016), "Language to logical form with neural attention".
///
/// An LSTM reads <E> source <S> from the last token to the first and keeps its h at each, H; a second one goes on from
/// its last state, begins with <S>, and looks back: context = softmax(H h) H,
/// logits = W_o tanh(W_a [context; h] + b_a) + b_o.
///
/// What a slot holds is c and h, whatever its length: rows of any lengths run together, and a fork is a copy of two
/// vectors. A line depends on its slot's source and tokens alone, bit for bit. Several instances (one per thread) share
/// one copy of the weights. No step allocates once its buffers have grown.
class SemanticParser {
 public:
  using Source = std::vector<Token>;
  static constexpr sluice::Abilities abilities{.ragged = true};

  /// A source as the decoder sees it. Shared by the slots of its sentence.
  struct Memory {
    std::int32_t length = 0;          ///< <S> and <E> included
    Buffer h;                         ///< [length, width]: after each token was read, in the order of the sentence
    Buffer c;                         ///< [width]: after the last was read, which is the first of the sentence
    std::vector<float const*> pages;  ///< of h, as attention wants it
  };
  /// A batch of encoded sources.
  struct Encoded {
    std::vector<std::shared_ptr<Memory const>> sources;
  };

  explicit SemanticParser(std::shared_ptr<Weights const> weights) : weights_(std::move(weights)) {}

  sluice::Vocabulary const& vocabulary() const { return weights_->vocabulary; }

  /// Encodes sources, all in one product a token, without padding. Touches no slot.
  /// \throws std::invalid_argument  for a token outside the source vocabulary
  Encoded encode(std::span<Source const* const> sources) const;

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<sluice::Slot const> slots);
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    auto encoded = encode(sources);
    std::vector<std::int32_t> items(sources.size());
    std::iota(items.begin(), items.end(), 0);
    start(encoded, items, slots);
  }
  void release(std::span<sluice::Slot const> slots) {
    for (auto const slot : slots) at(slot).memory.reset();
  }

  /// \throws std::invalid_argument  for a row that breaks the contract; then nothing has changed
  sluice::Scores<float> step(std::span<sluice::Row const> rows);

 private:
  using Matrix = sluice::MatrixView<float>;

  /// What a slot holds.
  struct State {
    std::shared_ptr<Memory const> memory;  // null: nothing
    std::int32_t length = 0;               // tokens
    Buffer c, h;                           // [width]; kept when the slot is released, for the next
  };

  State& at(sluice::Slot slot) {
    sluice::require(slot >= 0, "SemanticParser: slot", slot, "must be >= 0");
    auto const i = static_cast<std::size_t>(slot);
    if (i >= states_.size()) states_.resize(i + 1);
    return states_[i];
  }
  void check(sluice::Row const& row);
  void keep(sluice::Row const& row, float const* c, float const* h);
  /// `buffer` as [rows, columns], made larger where it is too small.
  static Matrix view(Buffer& buffer, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    auto const size = static_cast<std::size_t>(rows * columns);
    if (buffer.size() < size) buffer.resize(size);
    return {buffer.data(), rows, columns, columns};
  }
  static sluice::MatrixView<float const> read(Matrix m) { return {m.data, m.rows, m.columns, m.stride}; }

  std::shared_ptr<Weights const> weights_;
  std::vector<State> states_;  // by slot

  // Of the step: reused, so that nothing is allocated.
  std::vector<Token> tokens_;
  Buffer c_, joint_, gates_, scores_, hidden_, logits_;
};

inline SemanticParser::Encoded SemanticParser::encode(std::span<Source const* const> sources) const {
  auto const& lstm = weights_->encoder;
  auto const width = lstm.width();
  auto const count = std::ssize(sources);
  Encoded encoded;
  std::vector<std::shared_ptr<Memory>> memories;
  for (auto const* const source : sources) {
    for (auto const token : *source)
      sluice::require(token >= 0 && token < lstm.words(), "SemanticParser: source token", token,
                      "is outside the source vocabulary of " + std::to_string(lstm.words()));
    auto memory = std::make_shared<Memory>();
    memory->length = static_cast<std::int32_t>(source->size()) + 2;
    memory->h.resize(static_cast<std::size_t>(memory->length * width));
    memories.push_back(std::move(memory));
  }

  // Longest first: those that still read are the first `reading` rows.
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return sources[a]->size() > sources[b]->size(); });
  Buffer c_memory, h_memory, gates;
  auto const c = view(c_memory, count, width), h = view(h_memory, count, width);
  view(gates, count, 4 * width);
  std::vector<Token> tokens;
  auto reading = count;
  for (std::int32_t t = 0; reading > 0; ++t) {
    tokens.clear();
    for (std::ptrdiff_t i = 0; i < reading; ++i) {
      auto const& source = *sources[order[static_cast<std::size_t>(i)]];
      auto const left = std::ssize(source) - t;  // not yet read, <E> aside
      tokens.push_back(t == 0 ? start_token : left >= 0 ? source[static_cast<std::size_t>(left)] : end_token);
    }
    lstm.step(tokens, c, h, gates.data());
    for (std::ptrdiff_t i = 0; i < reading; ++i) {
      auto& memory = *memories[order[static_cast<std::size_t>(i)]];
      auto const position = memory.length - 1 - t;
      std::copy_n(h.data + i * width, width, memory.h.data() + position * width);
      if (position == 0) memory.c.assign(c.data + i * width, c.data + (i + 1) * width);
    }
    while (reading > 0 && memories[order[static_cast<std::size_t>(reading - 1)]]->length == t + 1) --reading;
  }
  for (auto& memory : memories) {
    for (std::int32_t p = 0; p < memory->length; p += sluice::example::KeysValues::page)
      memory->pages.push_back(memory->h.data() + p * width);
    encoded.sources.push_back(std::move(memory));
  }
  return encoded;
}

inline void SemanticParser::start(Encoded& encoded, std::span<std::int32_t const> items,
                                  std::span<sluice::Slot const> slots) {
  auto const width = weights_->width();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto& state = at(slots[i]);
    state.memory = encoded.sources.at(static_cast<std::size_t>(items[i]));
    state.length = 0;
    state.c = state.memory->c;
    state.h.assign(state.memory->h.begin(), state.memory->h.begin() + width);
  }
}

inline void SemanticParser::check(sluice::Row const& row) {
  using sluice::require;
  auto const& from = at(row.from);
  require(from.memory != nullptr, "SemanticParser: row.from", row.from, "must be a slot that was started");
  require(row.length == from.length, "SemanticParser: row.length", row.length,
          "must be what row.from holds: nothing is rolled back");
  require(row.tokens.size() == 1, "SemanticParser: row.tokens.size()", row.tokens.size(), "must be 1");
  require(row.lines == 1, "SemanticParser: row.lines", row.lines, "must be 1");
  require(vocabulary().contains(row.tokens[0]), "SemanticParser: token", row.tokens[0], "must be in [0, V)");
  at(row.to);
}

/// Sets row.to to its state after the step.
inline void SemanticParser::keep(sluice::Row const& row, float const* c, float const* h) {
  auto& to = at(row.to);
  if (row.from != row.to) to.memory = at(row.from).memory;
  to.length = row.length + 1;
  to.c.assign(c, c + weights_->width());
  to.h.assign(h, h + weights_->width());
}

inline sluice::Scores<float> SemanticParser::step(std::span<sluice::Row const> rows) {
  auto const& w = *weights_;
  auto const width = w.width();
  auto const count = std::ssize(rows);
  for (auto const& row : rows) check(row);
  auto const c = view(c_, count, width);
  auto const joint = view(joint_, count, 2 * width);  // context, h
  Matrix const h{joint.data + width, count, width, joint.stride};
  tokens_.clear();
  std::int32_t longest = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    auto const& row = rows[static_cast<std::size_t>(i)];
    auto const& from = at(row.from);
    std::ranges::copy(from.c, c[i].begin());
    std::ranges::copy(from.h, h[i].begin());
    tokens_.push_back(row.tokens[0]);
    longest = std::max(longest, from.memory->length);
  }
  w.decoder.step(tokens_, c, h, view(gates_, count, 4 * width).data);

  auto const scores = view(scores_, 1, sluice::example::attention_scratch(1, longest));
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    auto const& memory = *at(rows[static_cast<std::size_t>(i)].from).memory;
    sluice::example::KeysValues const source{memory.pages, 0, width, 0};  // what is looked for is also what is found
    sluice::example::attend(h[i].data(), width, 1, source, memory.length, scores.data, joint[i].data());
  }
  auto const hidden = view(hidden_, count, width);
  w.attention.multiply(read(joint), hidden);
  for (std::ptrdiff_t j = 0; j < count * width; j += 8) {
    Eights part(hidden.data + j);
    part = part.tanh();
  }
  auto const logits = view(logits_, count, w.vocabulary.size);
  w.output.multiply(read(hidden), logits);
  // Not before every row has read what it continues.
  for (std::ptrdiff_t i = 0; i < count; ++i) keep(rows[static_cast<std::size_t>(i)], c[i].data(), h[i].data());
  return sluice::scores<float>(logits.data, count, w.vocabulary.size);
}

}  // namespace SLUICE_ISA
}  // namespace semantic_parser
