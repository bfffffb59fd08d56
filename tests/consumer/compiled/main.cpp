// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

using Answers = std::pair<std::string, std::vector<double>>;
Answers by_headers();
Answers by_library();
bool same_projection();

int main() {
  auto const [expected, expected_scores] = by_headers();
  auto const [found, scores] = by_library();
  if (found != expected || scores.size() != expected_scores.size() || scores.size() < 500) {
    std::cout << expected << "the library:\n" << found;
    return 1;
  }
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!(std::abs(scores[i] - expected_scores[i]) < 1e-4)) {
      std::cout << "score " << i << ": " << expected_scores[i] << ", the library: " << scores[i] << '\n';
      return 1;
    }
  if (!same_projection()) {
    std::cout << "the library's projection differs\n";
    return 1;
  }
}
