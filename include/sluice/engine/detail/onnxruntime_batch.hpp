// SPDX-License-Identifier: Apache-2.0
/// \file
/// States of slots as tensors of ONNX Runtime: gathered, cut, padded. Needs onnxruntime_cxx_api.h (component `onnxruntime`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <onnxruntime_cxx_api.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// How a tensor holds rows, and positions of each: [before, rows, between, positions, after]. A state of fixed size has one
/// position.
struct OnnxLayout {
  std::vector<std::int64_t> shape{};
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t row_axis = 0;
  std::size_t position_axis = 0;                    ///< 0: none; it comes after that of rows
  std::int64_t before = 1, between = 1, after = 1;  ///< numbers; `after` in bytes

  bool positional() const { return position_axis > 0; }
  std::vector<std::int64_t> of(std::int64_t rows, std::int64_t positions) const {
    auto result = shape;
    result[row_axis] = rows;
    if (positional()) result[position_axis] = positions;
    return result;
  }
};

/// Reads the layout from an input. The axis of rows is the one with the symbol `batch`, else the first whose size is open;
/// that of positions is the next whose size is open. \throws std::invalid_argument  if others are open, or none is
inline OnnxLayout onnx_layout(OnnxSession const& session, OnnxTensor const& input, std::string const& batch) {
  OnnxLayout result{.shape = input.shape, .type = input.type};
  auto const what = "onnxruntime: " + session.name() + ": " + input.name;
  auto const rank = input.rank();
  auto row = rank;
  for (std::size_t i = rank; i-- > 0;)
    if (input.shape[i] < 0 && !batch.empty() && input.symbols[i] == batch) row = i;
  for (std::size_t i = 0; i < rank && row == rank; ++i)
    if (input.shape[i] < 0) row = i;
  require(row < rank, what, "its shape", "must have an axis of rows, whose size is open");
  result.row_axis = row;
  for (auto i = row + 1; i < rank && result.position_axis == 0; ++i)
    if (input.shape[i] < 0) result.position_axis = i;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i == row || (result.positional() && i == result.position_axis)) continue;
    require(input.shape[i] > 0, what, "axis " + std::to_string(i),
            "must have a fixed size: only rows and, after them, positions may be open");
    if (i < row) result.before *= input.shape[i];
    else if (result.positional() && i > result.position_axis) result.after *= input.shape[i];
    else result.between *= input.shape[i];
  }
  if (!result.positional()) result.after = std::exchange(result.between, 1);
  result.after *= onnx_bytes(input);
  return result;
}

/// Positions [first, first + count) of a row of a tensor that has `rows` of `width` positions. Null: zeros.
struct OnnxPiece {
  Ort::Value const* from = nullptr;
  std::int64_t rows = 0, width = 0;
  std::int64_t row = 0, first = 0, count = 0;
};

/// A tensor of one row for each piece, all of `width` positions: zeros before the pieces (`right`), or behind them.
inline std::shared_ptr<Ort::Value> onnx_gather(OnnxLayout const& layout, std::span<OnnxPiece const> pieces,
                                               std::int64_t width, bool right) {
  if (!layout.positional()) width = 1;
  auto const rows = std::ssize(pieces);
  auto result = std::make_shared<Ort::Value>(onnx_value(layout.of(rows, width), layout.type));
  if (rows * width == 0) return result;
  auto* const to = static_cast<std::byte*>(result->GetTensorMutableRawData());
  auto const size = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes); };
  for (std::int64_t r = 0; r < rows; ++r) {
    auto piece = pieces[static_cast<std::size_t>(r)];
    if (piece.from == nullptr) piece.count = 0;
    else if (!layout.positional()) piece.width = 1, piece.first = 0, piece.count = 1;
    auto const* const from =
        piece.from == nullptr ? nullptr : static_cast<std::byte const*>(piece.from->GetTensorRawData());
    auto const ahead = right ? width - piece.count : 0, behind = width - piece.count - ahead;
    for (std::int64_t b = 0; b < layout.before; ++b)
      for (std::int64_t m = 0; m < layout.between; ++m) {
        auto* line = to + ((b * rows + r) * layout.between + m) * width * layout.after;
        std::memset(line, 0, size(ahead * layout.after));
        line += ahead * layout.after;
        if (piece.count > 0)
          std::memcpy(line,
                      from + (((b * piece.rows + piece.row) * layout.between + m) * piece.width + piece.first) *
                                 layout.after,
                      size(piece.count * layout.after));
        std::memset(line + piece.count * layout.after, 0, size(behind * layout.after));
      }
  }
  return result;
}

/// Some slots whose states lie in the same tensors, one row each.
struct OnnxBatch {
  /// What a slot is decoded from.
  struct Sentence {
    std::int64_t id = 0;
    std::int32_t length = 0;
  };
  static constexpr Slot no_slot = -1;

  std::vector<std::shared_ptr<Ort::Value>> states{};  ///< of tokens; null where none was fed
  std::vector<std::shared_ptr<Ort::Value>> memory{};  ///< of sources; null where not computed yet
  std::vector<Slot> slot_numbers{};                   ///< row i belongs to slot_numbers[i], or to no slot any more
  std::vector<std::int32_t> lengths{};                ///< tokens in each row: the last positions of `width`
  std::vector<Sentence> sentences{};                  ///< of each row; its memory is the first positions
  std::int64_t width = 0, source_width = 0;
  std::size_t alive = 0;  ///< rows that still belong to a slot
};

/// A row of a batch.
struct OnnxOrigin {
  OnnxBatch* batch = nullptr;
  std::size_t row = 0;
};

/// The layouts of a model's tensors.
struct OnnxLayouts {
  std::vector<OnnxLayout> states{}, memory{};
};

/// A batch of these rows, each cut to its first lengths[i] tokens, for the slots `to`. Copies no states if these are all
/// rows of a batch in order, nothing cut, and no memory if the rows are of the same sentences as those of a batch.
inline OnnxBatch onnx_assemble(OnnxLayouts const& layouts, std::span<OnnxOrigin const> rows,
                               std::span<std::int32_t const> lengths, std::span<Slot const> to) {
  OnnxBatch next{.states = std::vector<std::shared_ptr<Ort::Value>>(layouts.states.size()),
                 .memory = std::vector<std::shared_ptr<Ort::Value>>(layouts.memory.size()),
                 .slot_numbers = {to.begin(), to.end()},
                 .lengths = {lengths.begin(), lengths.end()},
                 .alive = rows.size()};
  auto const& first = *rows.front().batch;
  auto in_place = rows.size() == first.slot_numbers.size(), same_sentences = in_place, fed = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto const& [batch, row] = rows[i];
    auto const& sentence = batch->sentences[row];
    in_place = in_place && batch == &first && row == i && lengths[i] == batch->lengths[row];
    same_sentences = same_sentences && sentence.id == first.sentences[i].id;
    next.sentences.push_back(sentence);
    next.width = (std::max)(next.width, std::int64_t{lengths[i]});
    next.source_width = (std::max)(next.source_width, std::int64_t{sentence.length});
    fed = fed || batch->lengths[row] > 0;
  }

  std::vector<OnnxPiece> pieces(rows.size());
  if (in_place) {
    next.states = first.states, next.width = first.width;
  } else if (fed) {
    for (std::size_t k = 0; k < layouts.states.size(); ++k) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        auto const& [batch, row] = rows[i];
        auto const width = batch->width;
        pieces[i] = {batch->states[k].get(),         std::ssize(batch->slot_numbers), width,
                     static_cast<std::int64_t>(row), width - batch->lengths[row],     lengths[i]};
      }
      next.states[k] = onnx_gather(layouts.states[k], pieces, next.width, true);
    }
  }
  if (same_sentences) {
    next.memory = first.memory, next.source_width = first.source_width;
    return next;
  }
  for (std::size_t k = 0; k < layouts.memory.size(); ++k) {
    auto known = true;
    for (std::size_t i = 0; i < rows.size() && known; ++i) {
      auto const& [batch, row] = rows[i];
      known = batch->memory[k] != nullptr;
      pieces[i] = {batch->memory[k].get(),
                   std::ssize(batch->slot_numbers),
                   batch->source_width,
                   static_cast<std::int64_t>(row),
                   0,
                   batch->sentences[row].length};
    }
    if (known) next.memory[k] = onnx_gather(layouts.memory[k], pieces, next.source_width, false);
  }
  return next;
}

}  // namespace sluice::inline v0::detail
