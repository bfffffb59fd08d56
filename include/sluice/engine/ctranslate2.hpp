// SPDX-License-Identifier: Apache-2.0
/// \file
/// CTranslate2 as a model: its encoder, its decoder and its vocabularies under any search. Needs CTranslate2's headers
/// (component `ctranslate2`: `sluice::ctranslate2`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/ctranslate2_batch.hpp>
#include <sluice/engine/ctranslate2_loaded.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ctranslate2/layers/transformer.h>
#include <ctranslate2/storage_view.h>
#include <iterator>
#include <list>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An encoder-decoder Transformer loaded by CTranslate2, of any compute type, on any of its devices.
///
/// \tparam Answer  `Hidden<float>`: vectors for an expander such as DenseProjection, which wants output(); or
///                 `Scores<float>`: CTranslate2's own logits
///
/// Slots of equal length share one DecoderState. The keys and values of a source are stored once for all hypotheses of
/// its sentence. Claims `blocks` and `roll_back` unless the model's position encodings rule them out. CTranslate2
/// forbids no token, and neither does this class: `Vocabulary::never` is what the constructor is given.
///
/// All adapters of one model share its weights. Use each adapter in one thread; encode() may run in another thread
/// beside it.
template <class Answer>
  requires std::same_as<Answer, Hidden<float>> || std::same_as<Answer, Scores<float>>
class CTranslate2Model : public CTranslate2Loaded {
  static constexpr bool wants_logits = std::same_as<Answer, Scores<float>>;
  using View = ctranslate2::StorageView;
  using Batch = detail::CTranslate2Batch;
  using Origin = detail::CTranslate2Origin;
  using Decoder = detail::CTranslate2Decoder;

 public:
  /// \throws std::invalid_argument  for a model that is not an encoder-decoder Transformer, or has several source
  ///                                vocabularies or flash attention; with Hidden also for one that changes its logits
  ///                                after the product
  explicit CTranslate2Model(std::shared_ptr<ctranslate2::models::Model const> model, std::vector<Token> never = {})
      : CTranslate2Loaded(std::move(model), std::move(never)), decoder_(std::make_unique<Decoder>(*model_, "decoder")) {
    auto const capped = model_->template get_attribute_with_default<float>("decoder/final_logit_softcapping", 0.0f);
    require(wants_logits || capped == 0, "CTranslate2: final_logit_softcapping", capped, "needs Scores, not Hidden");
  }
  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    auto const scope = model_->get_scoped_device_setter();
    release(slot_numbers);
    Batch batch;
    batch.slot_numbers.assign(slot_numbers.begin(), slot_numbers.end()), batch.alive = slot_numbers.size();
    for (auto const item : items)
      batch.sentences.push_back({sentences_++, encoded.lengths.at(static_cast<std::size_t>(item))});
    batch.state.emplace("memory", detail::rows_of(encoded.memory, {items.begin(), items.end()}, true));
    keep(std::move(batch));
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    auto encoded = encode(sources);
    std::vector<std::int32_t> items(sources.size());
    std::iota(items.begin(), items.end(), 0);
    start(encoded, items, slot_numbers);
  }

  /// Rows of all states: occupied slots, and rows of released slots whose memory is not given back yet.
  std::size_t rows() const {
    return std::accumulate(batches_.begin(), batches_.end(), std::size_t{0},
                           [](std::size_t sum, Batch const& batch) { return sum + batch.slot_numbers.size(); });
  }

  /// Frees memory: a whole state without live slots, and the rows of released slots once they are the majority.
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) vacate(slot);
    std::vector<Batch> smaller;
    for (auto& batch : batches_) {
      if (batch.alive == 0 || 2 * batch.alive > batch.slot_numbers.size()) continue;
      std::vector<Origin> rows;
      std::vector<Slot> to;
      for (std::size_t i = 0; i < batch.slot_numbers.size(); ++i)
        if (batch.slot_numbers[i] != Batch::no_slot) rows.push_back({&batch, i}), to.push_back(batch.slot_numbers[i]);
      auto const scope = model_->get_scoped_device_setter();
      smaller.push_back(detail::assemble(rows, to, batch.length, false, decoder_->initial_state(), model_->device()));
      batch.alive = 0;
    }
    sweep();
    for (auto& batch : smaller) keep(std::move(batch));
  }

  /// \throws std::invalid_argument  for a slot that holds nothing, or fewer tokens than the row says
  Answer step(std::span<Row const> rows) {
    auto const scope = model_->get_scoped_device_setter();
    std::vector<Origin> origins;
    // Rows at length 0, whether new or rolled back to nothing, cannot share a call.
    std::array<std::vector<std::size_t>, 2> parts;
    std::vector<std::ptrdiff_t> first_line;
    std::ptrdiff_t lines = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const from = place(rows[i].from);
      require(from.batch != nullptr, "CTranslate2: slot", rows[i].from, "holds nothing");
      require(rows[i].length <= from.batch->length, "CTranslate2: length", rows[i].length,
              "is more than the slot holds");
      origins.push_back(from), parts[from.batch->fresh() ? 0 : 1].push_back(i);
      first_line.push_back(lines), lines += rows[i].lines;
    }
    for (auto const& row : rows) vacate(row.to);

    View made;
    for (auto const& part : parts) {
      if (part.empty()) continue;
      made = feed(rows, part, origins);
      auto const width = made.dim(-1), block = std::ssize(rows[0].tokens);
      if (part.size() == rows.size() && made.size() == lines * width) break;  // all lines, in order, none repeated
      answer_.resize({lines, width});
      for (auto const i : part) {
        auto const last = static_cast<std::ptrdiff_t>(place(rows[i].to).row + 1) * block;
        std::copy_n(made.data<float>() + (last - rows[i].lines) * width, rows[i].lines * width,
                    answer_.data<float>() + first_line[i] * width);
      }
      made.clear();
    }
    if (!made.empty()) answer_ = std::move(made);
    sweep();
    auto const width = answer_.dim(-1);
    if constexpr (wants_logits) return scores(answer_.data<float>(), lines, vocabulary().size, Kind::logits, width);
    else return hidden(answer_.data<float>(), lines, width);
  }

 private:
  /// Runs these rows in one call. Returns the lines of all their tokens, including padding rows.
  View feed(std::span<Row const> rows, std::vector<std::size_t> const& part, std::vector<Origin> const& all) {
    std::vector<Origin> origins;
    std::vector<Slot> to;
    for (auto const i : part) origins.push_back(all[i]), to.push_back(rows[i].to);
    auto const length = rows[0].length;
    auto const block = rows[0].tokens.size();
    auto batch = detail::assemble(origins, to, length, block > 1, decoder_->initial_state(), model_->device());
    if (length == 0 && !batch.fresh()) {  // the decoder wants a memory at its first step, although it does not read it
      auto const& keys = batch.state.at("memory_keys_0");
      View unread({keys.dim(0), keys.dim(-2), 1}, keys.dtype(), keys.device());
      batch.state.emplace("memory", std::move(unread.zero()));
    }
    std::vector<std::int32_t> tokens;
    auto next = part.begin();
    for (std::size_t i = 0; i < batch.slot_numbers.size(); ++i) {
      auto const repeated = batch.slot_numbers[i] == Batch::no_slot;
      auto const& row = rows[repeated ? *std::prev(next) : *next++];
      tokens.insert(tokens.end(), row.tokens.begin(), row.tokens.end());
    }
    ctranslate2::Shape shape{std::ssize(batch.slot_numbers)};
    if (block > 1) shape.push_back(static_cast<ctranslate2::dim_t>(block));
    View const ids(std::move(shape), tokens, model_->device());
    View answer(decoder_->output_type(), model_->device());
    decoder_->decode(ids, nullptr, length, batch.state, &answer, nullptr, wants_logits);
    batch.length += static_cast<std::int32_t>(block);
    keep(std::move(batch));
    answer.move_to(ctranslate2::Device::CPU, ctranslate2::DataType::FLOAT32);
    return answer;
  }

  Origin& place(Slot slot) {
    require(slot >= 0, "CTranslate2: slot", slot, "must not be negative");
    auto const i = static_cast<std::size_t>(slot);
    return places_.size() <= i ? (places_.resize(i + 1), places_[i]) : places_[i];
  }
  void vacate(Slot slot) {
    auto& from = place(slot);
    if (from.batch) from.batch->slot_numbers[from.row] = Batch::no_slot, --from.batch->alive;
    from = {};
  }
  void keep(Batch batch) {
    auto& kept = batches_.emplace_back(std::move(batch));
    for (std::size_t i = 0; i < kept.slot_numbers.size(); ++i)
      if (kept.slot_numbers[i] != Batch::no_slot) place(kept.slot_numbers[i]) = {&kept, i};
  }
  void sweep() {
    std::erase_if(batches_, [](Batch const& batch) { return batch.alive == 0; });
  }

  std::unique_ptr<Decoder> decoder_;
  std::list<Batch> batches_;
  std::vector<Origin> places_;  // of the slots
  View answer_;                 // of the last step, [lines, d or the outputs]
  std::int64_t sentences_ = 0;  // started so far
};

/// Hidden vectors, for expanders such as DenseProjection: much the faster.
using CTranslate2 = CTranslate2Model<Hidden<float>>;
/// CTranslate2's own logits.
using CTranslate2Logits = CTranslate2Model<Scores<float>>;

}  // namespace sluice::inline v0
