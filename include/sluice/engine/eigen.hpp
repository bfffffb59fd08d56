// SPDX-License-Identifier: Apache-2.0
/// \file
/// Eigen's matrices as sluice's views: scores, hidden vectors, weights and biases, without a copy. Needs Eigen's headers, 3.4 or newer.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>

#include <Eigen/Core>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

namespace sluice::inline v0 {

/// A row-major matrix of Eigen, which has no name for it: Eigen's own default is column-major.
template <class T>
using RowMajorMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace detail {

template <class Derived>
void takes_eigen(Eigen::DenseBase<Derived> const&);

/// Any dense object of Eigen: matrix, array, map, reference, block, or an expression that is yet to be computed.
template <class M>
concept EigenDense = requires(std::remove_cvref_t<M> const& matrix) {
  detail::takes_eigen(matrix);
};

/// Whether an object has its numbers in memory of its own, which end with it. A Ref to a constant has where it had to copy.
template <class M>
inline constexpr bool eigen_owns = std::is_base_of_v<Eigen::PlainObjectBase<M>, M>;
template <class M, int options, class Stride>
inline constexpr bool eigen_owns<Eigen::Ref<M const, options, Stride>> = true;

/// What the types of maps and blocks leave open is checked when they are read.
template <class M>
inline constexpr bool eigen_side_by_side =
    M::InnerStrideAtCompileTime == 1 || M::InnerStrideAtCompileTime == Eigen::Dynamic;

/// Refuses what can be no view, of whatever shape. `M` as deduced from M&&.
template <class M>
consteval bool check_eigen() {
  using Plain = std::remove_cvref_t<M>;
  constexpr bool stored = (int{Plain::Flags} & int{Eigen::DirectAccessBit}) != 0;
  constexpr bool lasts = std::is_lvalue_reference_v<M> || !eigen_owns<Plain>;
  static_assert(
      stored,
      "sluice: this expression is not computed yet, and so has no numbers to look at: assign it to a matrix that "
      "lives as long as they are needed, and pass that");
  static_assert(!stored || lasts,
                "sluice: the numbers of a temporary would be gone when they are read: give it a name");
  static_assert(
      !stored || eigen_side_by_side<Plain>,
      "sluice: the numbers of a line must lie side by side, but this matrix has an inner stride: assign it to a "
      "matrix without, and pass that");
  return stored && lasts && eigen_side_by_side<Plain>;
}

/// Refuses also what has its columns, not its rows, one after the other.
template <class M>
consteval bool check_eigen_rows() {
  using Plain = std::remove_cvref_t<M>;
  static_assert(
      bool{Plain::IsRowMajor},
      "sluice: this matrix is column-major, but a line must be a row, and the rows lie one after the other. If its "
      "columns are the lines, pass matrix.transpose(), which copies nothing; else assign it to a "
      "sluice::RowMajorMatrix, and pass that");
  if constexpr (Plain::IsRowMajor) return check_eigen<M>();
  else return false;
}

template <class T>
consteval bool check_eigen_float() {
  static_assert(
      std::is_same_v<T, float>,
      "sluice: hidden vectors, weights and biases are numbers of type float: assign matrix.cast<float>() to a "
      "matrix of these, and pass that");
  return std::is_same_v<T, float>;
}

/// \param who  the function that was called, for messages
template <class M>
auto eigen_view(M& matrix, char const* who) {
  using T = std::remove_pointer_t<decltype(matrix.data())>;
  std::ptrdiff_t const rows = matrix.rows(), columns = matrix.cols();
  auto const name = [&](char const* member) { return std::string(who) + ": matrix." + member; };
  if (columns > 1)
    require(matrix.innerStride() == 1, name("innerStride()"), matrix.innerStride(),
            "must be 1: the numbers of a line lie side by side");
  if (rows <= 1) return MatrixView<T>{matrix.data(), rows, columns, columns};
  std::ptrdiff_t const stride = matrix.outerStride();
  require(stride >= columns, name("outerStride()"), stride, "must be at least the number of columns");
  return MatrixView<T>{matrix.data(), rows, columns, stride};
}

}  // namespace detail

/// A row-major matrix, map or block, of any type of numbers, as a view of the same memory: nothing is copied. It is a MatrixView<T>
/// where the numbers may be written, else a MatrixView<T const>. Of a column-major matrix, matrix.transpose() is row-major.
///
/// What cannot be looked at so is refused by the compiler, in a sentence: column-major matrices, expressions that are not computed
/// yet, temporaries that own their numbers. A block or transpose of a temporary looks like one of a variable: it is not
/// refused, and dangles.
/// \throws std::invalid_argument  if a map or a block turns out to have an inner stride, or rows that overlap
template <detail::EigenDense M>
auto view(M&& matrix) {
  if constexpr (detail::check_eigen_rows<M>()) return detail::eigen_view(matrix, "view");
  else return MatrixView<typename std::remove_cvref_t<M>::Scalar>{};
}

/// Scores, a line for each row of a matrix [lines, V] of float or of what converts to float, as view() looks at it. Where logits
/// were computed as [V, lines], column-major, pass logits.transpose().
/// \throws std::invalid_argument  like view()
template <detail::EigenDense M>
Scores<typename std::remove_cvref_t<M>::Scalar> scores(M&& matrix, Kind kind = Kind::logits) {
  using T = typename std::remove_cvref_t<M>::Scalar;
  constexpr bool real = requires(T const& x) { static_cast<float>(x); };
  static_assert(real, "sluice: scores are float, or numbers that convert to float");
  if constexpr (real && detail::check_eigen_rows<M>()) {
    auto const view = detail::eigen_view(matrix, "scores");
    return {{view.data, view.rows, view.columns, view.stride}, kind};
  } else {
    return {};
  }
}

/// Hidden vectors, one for each row of a matrix [lines, d] of float, as view() looks at it.
/// \throws std::invalid_argument  like view()
template <detail::EigenDense M>
Hidden<float> hidden(M&& matrix) {
  if constexpr (detail::check_eigen_float<typename std::remove_cvref_t<M>::Scalar>() && detail::check_eigen_rows<M>()) {
    auto const view = detail::eigen_view(matrix, "hidden");
    return {{view.data, view.rows, view.columns, view.stride}};
  } else {
    return {};
  }
}

/// Weights [n, d] of a linear layer y = W x + b, float, as view() looks at them. PackedMatrix and DenseProjection copy them;
/// ClusteredProjection, ShortlistProjection and ProbeProjection refer to the matrix, which must outlive them.
/// \throws std::invalid_argument  like view()
template <detail::EigenDense M>
MatrixView<float const> weights(M&& matrix) {
  if constexpr (detail::check_eigen_float<typename std::remove_cvref_t<M>::Scalar>() && detail::check_eigen_rows<M>()) {
    auto const view = detail::eigen_view(matrix, "weights");
    return {view.data, view.rows, view.columns, view.stride};
  } else {
    return {};
  }
}

/// The bias [n] of a linear layer from a row or a column vector of float; nothing is copied. Refuses what view() refuses.
/// \throws std::invalid_argument  if a map or a block turns out to have an inner stride
template <detail::EigenDense M>
std::span<float const> bias(M&& vector) {
  using Plain = std::remove_cvref_t<M>;
  static_assert(bool{Plain::IsVectorAtCompileTime},
                "sluice: a bias is a vector: pass matrix.row(i), matrix.col(i) or an Eigen::VectorXf");
  if constexpr (Plain::IsVectorAtCompileTime && detail::check_eigen_float<typename Plain::Scalar>() &&
                detail::check_eigen<M>()) {
    if (vector.size() > 1)
      require(vector.innerStride() == 1, "bias: vector.innerStride()", vector.innerStride(),
              "must be 1: its numbers lie side by side");
    return {vector.data(), static_cast<std::size_t>(vector.size())};
  } else {
    return {};
  }
}

}  // namespace sluice::inline v0
