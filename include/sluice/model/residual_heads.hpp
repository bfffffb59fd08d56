// SPDX-License-Identifier: Apache-2.0
/// \file
/// The proposal heads of blockwise parallel decoding.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/output/packed/packed_matrix.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Heads of one hidden layer with a residual connection over a decoder's output (Stern, Shazeer and Uszkoreit 2018,
/// section 6): z_i = h + W2_i relu(W1_i h + b1_i) + b2_i; the model's own output layer turns z_i into scores. Head 0
/// guesses the token after the model's own next token. The next token itself comes from the unchanged model, without a
/// head.
class ResidualHeads {
 public:
  /// One head. \throws std::invalid_argument  if the shapes do not fit
  struct Head {
    PackedMatrix up, down;  // [inner, d] and [d, inner]
  };

  ResidualHeads() = default;
  template <class = void>
  explicit ResidualHeads(std::vector<Head> heads) : heads_(std::move(heads)) {
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      auto const& [up, down] = heads_[i];
      auto const name = "ResidualHeads: heads[" + std::to_string(i) + "]";
      require(up.inputs() == heads_[0].up.inputs(), name + ".up.inputs", up.inputs(), "must be that of the first");
      require(down.outputs() == up.inputs(), name + ".down.outputs", down.outputs(), "must be up.inputs");
      require(down.inputs() == up.outputs(), name + ".down.inputs", down.inputs(), "must be up.outputs");
    }
  }

  std::int32_t size() const { return static_cast<std::int32_t>(heads_.size()); }
  template <class = void>
  std::ptrdiff_t hidden_size() const {
    return heads_.empty() ? 0 : heads_[0].up.inputs();
  }

  /// z = head `i` of h, both [n, d]; they must not overlap. Allocates nothing once warm.
  template <class = void>
  void apply(std::int32_t i, MatrixView<float const> h, MatrixView<float> z) {
    auto const& [up, down] = heads_[static_cast<std::size_t>(i)];
    auto const inner = up.outputs();
    if (inner_.size() < static_cast<std::size_t>(h.rows * inner))
      inner_.resize(static_cast<std::size_t>(h.rows * inner));
    MatrixView<float> const middle{inner_.data(), h.rows, inner, inner};
    up.multiply(h, middle, {.relu = true});
    for (std::ptrdiff_t row = 0; row < h.rows; ++row) std::copy(h[row].begin(), h[row].end(), z[row].begin());
    down.multiply({middle.data, middle.rows, middle.columns, middle.stride}, z, {.add = true});
  }

 private:
  std::vector<Head> heads_;
  std::vector<float> inner_;
};

}  // namespace sluice::inline v0
