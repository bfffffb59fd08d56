// SPDX-License-Identifier: Apache-2.0
/// \file
/// Attention of queries to keys and values that lie in slots.
#pragma once

#include <libtorch/upload.hpp>

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::example {

/// Which queries [N] look at which keys and values [slots]: the queries are laid out as [slots, width], so that one
/// product serves all. Slots that lie between are computed along, unless they are more than those wanted: reading them
/// costs less than a copy of the others.
class Layout {
 public:
  /// \param slots   of each query, [N]; those of one slot need not be neighbours
  /// \param limits  the positions [0, limits[i]) are what query i may see, [N]; each >= 1
  Layout(std::span<std::int64_t const> slots, std::span<std::int64_t const> limits, Upload& upload);

  /// Takes what the constructor has left in `upload`, which has been sent since.
  void receive(Upload const& upload);

  /// \param queries  [N, d], divided by the square root of the head's size
  /// \param keys     [slots, heads, length, d / heads]; so values
  /// \return [N, d]
  at::Tensor attend(at::Tensor const& queries, at::Tensor const& keys, at::Tensor const& values) const;

  /// Tensors whose leading dimension is N, as [slots * width, ...]; places without a query hold another row
  /// of the same slot, or any where the slot has none.
  at::Tensor spread(at::Tensor const& rows) const;
  std::int64_t slots() const { return slots_; }
  std::int64_t width() const { return width_; }
  std::int64_t length() const { return length_; }

 private:
  at::Tensor seen(at::Tensor const& cache) const;

  std::int64_t first_ = 0, slots_ = 0, width_ = 0, length_ = 0;
  Upload::Part chosen_part_, spread_part_, gather_part_, limits_part_;
  at::Tensor chosen_;  ///< [slots]: not all of a range, but these
  at::Tensor spread_;  ///< [slots * width]: the query there
  at::Tensor gather_;  ///< [N]: where each query is
  at::Tensor hidden_;  ///< [slots, 1, width, length]: what is not to be seen
};

}  // namespace sluice::example
