// SPDX-License-Identifier: Apache-2.0
// Matrices of Eigen that can be no view: each is refused in a sentence, and what is recommended in its place compiles.
#include <sluice/engine/eigen.hpp>

#include <Eigen/Core>

#include <complex>
#include <utility>

namespace eigen {

using Rows = sluice::RowMajorMatrix<float>;

void use(Eigen::MatrixXf const& columns, Rows const& rows);
void use(Eigen::MatrixXf const& columns, Rows const& rows) {
  sluice::RowMajorMatrix<double> const doubles = rows.cast<double>();
#ifdef MUST_FAIL
  (void)sluice::scores(columns);
  (void)sluice::weights(rows + rows);
  (void)sluice::hidden(Rows(rows));
  (void)sluice::view(Eigen::Ref<Rows const>(rows));
  Eigen::Map<Rows const, Eigen::Unaligned, Eigen::InnerStride<2>> const apart(rows.data(), 2, 2);
  (void)sluice::view(apart);
  (void)sluice::weights(doubles);
  (void)sluice::bias(rows);
  (void)sluice::bias(Eigen::VectorXf(rows.col(0)));
  sluice::RowMajorMatrix<std::complex<float>> const complex = rows.cast<std::complex<float>>();
  (void)sluice::scores(complex);
#else
  (void)sluice::scores(columns.transpose());
  Rows const sum = rows + rows;
  (void)sluice::weights(sum);
  (void)sluice::hidden(rows.topRows(1));
  (void)sluice::view(doubles);
  (void)sluice::bias(columns.col(0));
  (void)sluice::bias(rows.row(0));
#endif
}

}  // namespace eigen
