// SPDX-License-Identifier: Apache-2.0
// A file of 200,003 words that others made, and the scores that others gave for it (log10, with the end).
#include <sluice/ngram/ngram_table.hpp>

#include <support/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::test;

TEST_CASE("n-grams of others score as others say", "[ngram]") {
  auto const file = std::filesystem::path(SLUICE_SHARED_DIR) / "frames/letters/lm.arpa";
  if (!std::filesystem::is_regular_file(file)) {
    std::cout << "SKIPPED: needs " << file << '\n';
    return;
  }
  std::ifstream stream(file);
  auto const table = read_arpa(stream);
  CHECK(table.size() == 200003);
  std::vector<double> const expected{-1.05971, -4.19448, -3.33383, -2.76726, -1.16237, -4.64589, -2.348754};
  auto state = table.start();
  double sum = 0;
  std::istringstream sentence("the cat sat on the mat </s>");
  std::string word;
  for (std::size_t i = 0; sentence >> word; ++i) {
    auto const own = static_cast<double>(table.advance(state, table.word(word))) / std::numbers::ln10;
    CHECK_THAT(own, WithinAbs(expected[i], 1.1e-5));
    sum += own;
  }
  CHECK_THAT(sum, WithinAbs(-19.5123, 1e-4));
}
