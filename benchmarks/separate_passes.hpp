// SPDX-License-Identifier: Apache-2.0
/// \file
/// The output layer in separate passes, as programs did it before the passes were fused ("Faster Neural Machine
/// Translation Inference", algorithm 1), and alternative selections: the peers of LogSoftmaxTopK. Also the fused
/// layer's parts.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace sluice::bench {

using ConstRow = std::span<float const>;

inline auto array(ConstRow row) {
  return Eigen::Map<Eigen::ArrayXf const>(row.data(), static_cast<Eigen::Index>(row.size()));
}
inline auto array(std::span<float> row) {
  return Eigen::Map<Eigen::ArrayXf>(row.data(), static_cast<Eigen::Index>(row.size()));
}

inline bool better(Candidate a, Candidate b) {
  return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.token < b.token;
}

/// The k best, best first, by a heap of those seen so far.
inline void heap_top_k(ConstRow row, std::size_t k, std::vector<Candidate>& best) {
  best.clear();
  auto bar = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!(row[i] > bar)) continue;  // of equal scores, the first stays
    if (best.size() == k) std::ranges::pop_heap(best, better), best.pop_back();
    best.push_back({static_cast<Token>(i), row[i]});
    std::ranges::push_heap(best, better);
    if (best.size() == k) bar = best.front().log_prob;
  }
  std::ranges::sort_heap(best, better);
}

/// The same by std::partial_sort of all indices.
inline void sort_top_k(ConstRow row, std::size_t k, std::vector<Token>& indices, std::vector<Candidate>& best) {
  indices.resize(row.size());
  std::iota(indices.begin(), indices.end(), 0);
  auto const value = [row](Token i) { return row[static_cast<std::size_t>(i)]; };
  std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(k), indices.end(),
                    [value](Token a, Token b) {
                      return better({a, value(a)}, {b, value(b)});
                    });
  best.clear();
  for (std::size_t i = 0; i < k; ++i) best.push_back({indices[i], value(indices[i])});
}

/// Four passes of plain loops: bias, maximum, sum, log-probabilities.
template <class T>
void naive_log_softmax(std::span<T const> scores, ConstRow bias, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(scores[i]) + bias[i];
  auto maximum = -std::numeric_limits<float>::infinity();
  for (auto const x : out)
    if (x > maximum) maximum = x;
  double sum = 0;  // a float is off by 5e-4 at V = 250,000
  for (auto const x : out) sum += static_cast<double>(std::exp(x - maximum));
  auto const shift = maximum + static_cast<float>(std::log(sum));
  for (auto& x : out) x -= shift;
}

/// The same passes with Eigen's vectors.
inline void eigen_softmax_pass(std::span<float> row) {
  auto const maximum = array(row).maxCoeff();
  auto const sum = (array(row) - maximum).exp().sum();
  array(row) -= maximum + std::log(sum);
}
template <class T>
void eigen_log_softmax(std::span<T const> scores, ConstRow bias, std::span<float> out) {
  Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1> const> const x(scores.data(), static_cast<Eigen::Index>(scores.size()));
  array(out) = x.template cast<float>() + array(bias);
  eigen_softmax_pass(out);
}

/// A packed product alone, by tiles that stay in the L2 cache and are not read: a lower bound for the time of a fused
/// layer.
class ProductAlone {
 public:
  void operator()(PackedMatrix const& matrix, MatrixView<float const> x) {
    auto const blocks = (x.rows + most_rows - 1) / most_rows;
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      auto const begin = x.rows * b / blocks, rows = x.rows * (b + 1) / blocks - begin;
      rows_.assign({x.data + begin * x.stride, rows, x.columns, x.stride}, matrix.precision());
      auto const width = std::min<std::ptrdiff_t>(std::ssize(tile_) / rows / 1024 * 1024, 32768);
      for (std::ptrdiff_t first = 0; first < matrix.outputs(); first += width) {
        matrix.multiply(rows_, {tile_.data(), rows, std::min(width, matrix.outputs() - first), width}, {}, first);
        benchmark::DoNotOptimize(tile_.data());
      }
    }
  }

 private:
  static constexpr std::ptrdiff_t most_rows = 128;
  PackedRows rows_;
  AlignedVector<float> tile_ = AlignedVector<float>(static_cast<std::size_t>(most_rows * 1024));
};

}  // namespace sluice::bench
