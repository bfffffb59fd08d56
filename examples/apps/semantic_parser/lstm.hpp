// SPDX-License-Identifier: Apache-2.0
/// \file
/// An LSTM cell that reads tokens, many rows at a time, every row on its own to the bit.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace semantic_parser {

using Buffer = sluice::AlignedVector<float>;

/// `d` rounded up to a multiple of 16: vectors are padded with zeros, so that no element is ever a remainder.
constexpr std::ptrdiff_t padded(std::ptrdiff_t d) { return (d + 15) / 16 * 16; }

/// One side of a matrix: so many blocks of so many elements, each to be filled up with zeros to `to`.
struct Blocks {
  std::ptrdiff_t count, from, to;
};

/// A matrix [rows.count * rows.from, columns.count * columns.from], row-major, with zeros where blocks are filled up.
inline Buffer spread(std::span<float const> matrix, Blocks rows, Blocks columns) {
  Buffer result(static_cast<std::size_t>(rows.count * rows.to * columns.count * columns.to));
  auto const* from = matrix.data();
  for (std::ptrdiff_t i = 0; i < rows.count * rows.from; ++i) {
    auto const row = i / rows.from * rows.to + i % rows.from;
    for (std::ptrdiff_t j = 0; j < columns.count; ++j, from += columns.from)
      std::copy_n(from, columns.from, result.data() + (row * columns.count + j) * columns.to);
  }
  return result;
}

/// The tensors of a cell, as trained: chunks of i2h and h2h are input, forget, cell and output gate.
struct LstmTensors {
  std::vector<float> embedding;             ///< [V, d]
  std::vector<float> i2h_weight, i2h_bias;  ///< [4 d, d], [4 d]
  std::vector<float> h2h_weight, h2h_bias;  ///< the same
};

inline namespace SLUICE_ISA {

/// Eight numbers of a row. Of fixed size and aligned: no element is ever a remainder, treated in another way. (Not
/// sixteen: GCC 12 warns of what Eigen then makes of AVX-512.)
using Eight = Eigen::Array<float, 8, 1>;
using Eights = Eigen::Map<Eight, Eigen::Aligned32>;
using ConstEights = Eigen::Map<Eight const, Eigen::Aligned32>;

/// gates = W_i embedding(token) + b_i + W_h h + b_h;  c' = f c + i g;  h' = o tanh(c').
///
/// Vectors are `width()` long: d, and zeros. What a token adds to the gates does not depend on h and is computed once.
class Lstm {
 public:
  Lstm() = default;
  Lstm(LstmTensors const& tensors, std::ptrdiff_t d) : width_(padded(d)) {
    Blocks const gates{4, d, width_}, state{1, d, width_};
    auto const words = std::ssize(tensors.embedding) / d;
    auto const embedding = spread(tensors.embedding, {1, words, words}, state);
    shares_.resize(static_cast<std::size_t>(words * 4 * width_));
    layer(tensors.i2h_weight, tensors.i2h_bias, gates, state)
        .multiply({embedding.data(), words, width_, width_}, {shares_.data(), words, 4 * width_, 4 * width_});
    h2h_ = layer(tensors.h2h_weight, tensors.h2h_bias, gates, state);
  }

  std::ptrdiff_t width() const { return width_; }
  std::ptrdiff_t words() const { return width_ > 0 ? std::ssize(shares_) / (4 * width_) : 0; }  ///< V

  /// Feeds row i the token tokens[i]. Allocates nothing.
  /// \param c,h    [rows, width()], every row 64-byte aligned; replaced
  /// \param gates  scratch of [rows, 4 width()], 64-byte aligned
  void step(std::span<sluice::Token const> tokens, sluice::MatrixView<float> c, sluice::MatrixView<float> h,
            float* gates) const {
    auto const rows = std::ssize(tokens);
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      std::copy_n(shares_.data() + tokens[static_cast<std::size_t>(i)] * 4 * width_, 4 * width_,
                  gates + i * 4 * width_);
    h2h_.multiply({h.data, rows, width_, h.stride}, {gates, rows, 4 * width_, 4 * width_}, {.add = true});
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      for (std::ptrdiff_t j = 0; j < width_; j += 8) {
        auto const* const gate = gates + i * 4 * width_ + j;
        auto const in = ConstEights(gate).logistic(), forget = ConstEights(gate + width_).logistic();
        auto const fresh = ConstEights(gate + 2 * width_).tanh();
        auto const out = ConstEights(gate + 3 * width_).logistic();
        Eights cell(c.data + i * c.stride + j);
        cell = forget * cell + in * fresh;
        Eights(h.data + i * h.stride + j) = out * cell.tanh();
      }
  }

  /// A linear layer of which the sides are filled up with zeros.
  static sluice::PackedMatrix layer(std::span<float const> weight, std::span<float const> bias, Blocks rows,
                                    Blocks columns) {
    auto const n = rows.count * rows.to, k = columns.count * columns.to;
    return sluice::PackedMatrix({spread(weight, rows, columns).data(), n, k, k}, spread(bias, rows, {1, 1, 1}));
  }

 private:
  std::ptrdiff_t width_ = 0;
  Buffer shares_;             // [V, 4 width]: W_i embedding + b_i
  sluice::PackedMatrix h2h_;  // [4 width, width]
};

}  // namespace SLUICE_ISA
}  // namespace semantic_parser
