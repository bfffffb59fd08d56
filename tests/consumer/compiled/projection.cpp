// SPDX-License-Identifier: Apache-2.0
// The library's projection against the headers' own, which this file compiles for this machine: the same instructions, the same bits.
#include <sluice/output/compiled_projection.hpp>
#include <sluice/output/dense_projection.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <cmath>
#include <cstddef>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

bool same(sluice::Precision precision) {
  constexpr std::ptrdiff_t size = 3001, inputs = 72, rows = 9;
  std::mt19937 random(7);
  auto const numbers = [&](std::size_t count) {
    std::vector<float> all(count);
    for (auto& x : all) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0f;
    return all;
  };
  auto const weights = numbers(size * inputs), bias = numbers(size), vectors = numbers(rows * inputs);
  sluice::MatrixView<float const> const matrix{weights.data(), size, inputs, inputs};
  sluice::DenseProjection own(matrix, bias, precision);
  sluice::CompiledProjection first(matrix, bias, precision);
  auto library = first;  // shares the weights
  auto const expected_set = std::string(sluice::instruction_set(precision)),
             set = std::string(library.instruction_set());
  std::cout << "projection: " << set << ", here " << expected_set << '\n';

  std::vector<sluice::Token> const probes{0, 17, size - 1};
  std::vector<sluice::Query> const queries(rows, {.best = 5, .probes = probes});
  auto const hidden = sluice::hidden(vectors.data(), rows, inputs);
  auto const expected = own.expand(hidden, queries, {}), found = library.expand(hidden, queries, {});
  auto const close = [&](float x, float y) {
    return set == expected_set ? x == y : std::abs(x - y) < (precision == sluice::Precision::float32 ? 1e-3f : 0.2f);
  };
  for (std::size_t i = 0; i < rows; ++i) {
    if (expected[i].best.size() != 5 || found[i].best.size() != 5) return false;
    for (std::size_t k = 0; k < 5; ++k)
      if (!close(expected[i].best[k].log_prob, found[i].best[k].log_prob) ||
          (set == expected_set && expected[i].best[k].token != found[i].best[k].token))
        return false;
    for (std::size_t p = 0; p < probes.size(); ++p)
      if (!close(expected[i].probes[p], found[i].probes[p])) return false;
  }
  try {
    sluice::CompiledProjection const wrong(matrix, std::vector<float>(3), precision);
    return false;
  } catch (std::invalid_argument const& error) {
    return std::string(error.what()).find("bias") != std::string::npos;
  }
}

}  // namespace

bool same_projection() {
  return same(sluice::Precision::float32) && same(sluice::Precision::bfloat16) && same(sluice::Precision::int8);
}
