// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers by which further passes over a line select.
#pragma once

#include <sluice/language.hpp>

#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/detail/line_reader.cuh>
#include <sluice/cuda/line/line_select.cuh>
#include <sluice/cuda/select/detail/double_precision.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// A line's scores as seen by the selection: after the softmax and after edits that apply then, with penalties if
/// LineSelect::rounded says so.
template <class Format>
class SelectReader {
 public:
  static constexpr int wide = Format::wide;

  template <class Block>
  SLUICE_DEVICE SelectReader(Block&, SelectLaunch<Format> const& launch, std::int32_t row)
      : reader_(launch.line, row),
        norm_(DoubleNorm::of<Block>(launch.line.totals[row], launch.line.query(row))),
        rounded_(launch.selection.queries[row].rounded != 0) {}

  /// Converts scores to log-probabilities.
  SLUICE_DEVICE DoubleNorm norm() const { return norm_; }

  /// A group's scores as seen by the softmax.
  template <class Block>
  SLUICE_DEVICE void softmax_scores(Block& block, std::uint32_t group, float (&x)[wide]) const {
    reader_.scores(block, reader_.load_any(block, group), group, reader_.all_edits(), x);
  }
  /// A group's scores as seen by the selection.
  template <class Block>
  SLUICE_DEVICE void scores(Block& block, std::uint32_t group, float (&x)[wide]) const {
    softmax_scores(block, group, x);
    if (rounded_) reader_.rank_penalised(block, group, norm_, x);
    else reader_.rank(block, group, reader_.all_edits(), x);
  }
  /// One score as seen by the selection, at any place; -infinity beyond the end.
  template <class Block>
  SLUICE_DEVICE float score(Block& block, std::uint32_t place) const {
    if (!rounded_) return reader_.ranked(block, place);
    return reader_.penalised(block, place, norm_, reader_.softmax_score(block, place));
  }

 private:
  LineReader<Format> const reader_;
  DoubleNorm const norm_;
  bool const rounded_;
};

}  // namespace sluice::inline v0::cuda::detail
