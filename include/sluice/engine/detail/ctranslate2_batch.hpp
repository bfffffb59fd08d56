// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rows of CTranslate2's decoder state: selected, cut, padded and joined. Needs CTranslate2's headers.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctranslate2/layers/transformer.h>
#include <ctranslate2/ops/ops.h>
#include <ctranslate2/storage_view.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// CTranslate2's decoder, which can also return hidden vectors.
struct CTranslate2Decoder final : ctranslate2::layers::TransformerDecoder {
  using TransformerDecoder::TransformerDecoder, TransformerDecoder::decode;
};

/// Some slots that hold equally many tokens, in one DecoderState: the keys and values of generated tokens have a row
/// per slot, those of the source (`memory`, later memory_keys_* and memory_values_*) a row per sentence.
struct CTranslate2Batch {
  struct Sentence {
    std::int64_t id;
    std::int32_t length;  ///< of its source
  };
  static constexpr Slot no_slot = -1;

  ctranslate2::layers::DecoderState state;
  std::int32_t length = 0;          ///< tokens in each slot
  std::vector<Slot> slot_numbers;   ///< row i belongs to slot_numbers[i], or to no slot any more
  std::vector<Sentence> sentences;  ///< each with equally many adjacent rows
  std::size_t alive = 0;            ///< rows that still belong to a slot

  /// Not fed yet: the source is as the encoder returned it.
  bool fresh() const { return state.find("memory") != state.end(); }
  std::size_t sentence_of(std::size_t row) const { return row * sentences.size() / slot_numbers.size(); }
};

/// A row or sentence of a batch.
struct CTranslate2Origin {
  CTranslate2Batch* batch = nullptr;
  std::size_t row = 0;
};

/// `x` with another number of positions (the axis before the last): cut at the end if it has more than `most`, or
/// padded with zeros, which `memory_lengths` masks.
inline ctranslate2::StorageView with_positions(ctranslate2::StorageView x, ctranslate2::dim_t width,
                                               ctranslate2::dim_t most) {
  auto const axis = x.rank() - 2;
  auto const present = x.dim(axis);
  if (present == width || (present > width && present <= most)) return x;
  ctranslate2::StorageView result(x.dtype(), x.device());
  if (present > width) {
    ctranslate2::ops::Slide(axis, 0, width)(x, result);
  } else {
    auto shape = x.shape();
    shape[static_cast<std::size_t>(axis)] = width - present;
    ctranslate2::StorageView padding(std::move(shape), x.dtype(), x.device());
    padding.zero();
    ctranslate2::ops::Concat(static_cast<int>(axis))({&x, &padding}, result);
  }
  return result;
}

/// Rows of `x` in another order. Copies nothing if these are all its rows in order and `x` is no longer needed.
inline ctranslate2::StorageView rows_of(ctranslate2::StorageView& x, std::vector<std::int32_t> const& rows,
                                        bool needed) {
  auto whole = std::ssize(rows) == x.dim(0);
  for (std::size_t i = 0; i < rows.size() && whole; ++i) whole = rows[i] == static_cast<std::int32_t>(i);
  if (whole && !needed) return std::move(x);
  ctranslate2::StorageView const index({static_cast<ctranslate2::dim_t>(rows.size())}, rows, x.device());
  auto const bytes = std::ssize(rows) * x.stride(0) * x.item_size();
  if (!needed && 2 * bytes > x.reserved_memory()) {  // in place, if the rows ascend and most of the memory stays in use
    ctranslate2::ops::Gather()(x, index);
    return std::move(x);
  }
  ctranslate2::StorageView result(x.dtype(), x.device());
  ctranslate2::ops::Gather()(x, index, result);
  return result;
}

/// The tensor `name` of the origins, one row each, all padded or cut to `width` positions, or up to `slack` more.
inline ctranslate2::StorageView collect(std::string const& name, std::span<CTranslate2Origin const> origins,
                                        ctranslate2::dim_t width, ctranslate2::dim_t slack = 0) {
  std::vector<CTranslate2Batch*> batches;
  for (auto const& origin : origins)
    if (std::find(batches.begin(), batches.end(), origin.batch) == batches.end()) batches.push_back(origin.batch);
  std::vector<ctranslate2::StorageView> parts;
  std::vector<std::int32_t> order(origins.size());  // where each origin's row lies once the parts are joined
  std::int32_t joined = 0;
  for (auto* const batch : batches) {
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < origins.size(); ++i)
      if (origins[i].batch == batch) {
        order[i] = joined++;
        rows.push_back(static_cast<std::int32_t>(origins[i].row));
      }
    parts.push_back(with_positions(rows_of(batch->state.at(name), rows, batch->alive > 0), width,
                                   batches.size() == 1 ? width + slack : width));
  }
  if (parts.size() == 1) return std::move(parts.front());
  std::vector<ctranslate2::StorageView const*> pointers;
  for (auto const& part : parts) pointers.push_back(&part);
  ctranslate2::StorageView whole(parts.front().dtype(), parts.front().device());
  ctranslate2::ops::Concat(0)(pointers, whole);
  return rows_of(whole, order, false);
}

/// A batch of the rows that `rows` names, each cut to its first `length` tokens, for the slots `to`. Batches without
/// live slots give up their tensors.
/// \param blocks   whether several tokens will be fed to each row: CTranslate2 then needs a memory for each row
/// \param initial  the empty state, with all its names
inline CTranslate2Batch assemble(std::span<CTranslate2Origin const> rows, std::span<Slot const> to, std::int32_t length,
                                 bool blocks, ctranslate2::layers::DecoderState initial, ctranslate2::Device device) {
  auto const sentence = [](CTranslate2Origin const& from) -> CTranslate2Batch::Sentence const& {
    return from.batch->sentences[from.batch->sentence_of(from.row)];
  };
  std::vector<std::size_t> begins;  // where the rows of each sentence begin
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (blocks || i == 0 || sentence(rows[i]).id != sentence(rows[i - 1]).id) begins.push_back(i);
  begins.push_back(rows.size());
  std::size_t width = 1;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) width = (std::max)(width, begins[i + 1] - begins[i]);
  // All sentences need equally many rows: those with fewer repeat their last row, unless that adds too many.
  if (width * (begins.size() - 1) > rows.size() + rows.size() / 4) {
    begins.clear(), width = 1;
    for (std::size_t i = 0; i <= rows.size(); ++i) begins.push_back(i);
  }

  CTranslate2Batch next{
      .state = std::move(initial), .length = length, .slot_numbers = {}, .sentences = {}, .alive = rows.size()};
  std::vector<CTranslate2Origin> taken, memories;
  std::vector<std::int32_t> lengths;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    auto const& first = rows[begins[i]];
    memories.push_back({first.batch, first.batch->sentence_of(first.row)});
    next.sentences.push_back(sentence(first)), lengths.push_back(sentence(first).length);
    for (std::size_t j = 0; j < width; ++j) {
      auto const row = begins[i] + j, last = begins[i + 1] - 1;
      taken.push_back(rows[(std::min)(row, last)]);
      next.slot_numbers.push_back(row <= last ? to[row] : CTranslate2Batch::no_slot);
    }
  }
  auto const longest = *std::max_element(lengths.begin(), lengths.end());
  auto const fresh = rows.front().batch->fresh();
  for (auto& [name, tensor] : next.state) {
    if (!name.starts_with("memory")) {
      if (length > 0) tensor = collect(name, taken, length);
    } else if (!fresh) {
      tensor = collect(name, memories, longest, longest / 4);
    }
  }
  if (fresh) next.state.emplace("memory", collect("memory", memories, longest, longest / 4));
  next.state.emplace("memory_lengths", ctranslate2::StorageView({std::ssize(lengths)}, lengths, device));
  return next;
}

}  // namespace sluice::inline v0::detail
