// SPDX-License-Identifier: Apache-2.0
// The component eigen as others meet it: it brings Eigen.
#include <sluice/engine/eigen.hpp>

#include <Eigen/Core>

int main() {
  Eigen::MatrixXf const columns = Eigen::MatrixXf::Constant(3, 2, 1);
  auto const scores = sluice::scores(columns.transpose());
  return scores.rows == 2 && scores.columns == 3 && scores.data == columns.data() ? 0 : 1;
}
