// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of train_clusters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace train_clusters {

enum class KMeansName { lloyd, faiss };

struct Options {
  std::filesystem::path model;   ///< of the weights; the tokenizer is beside them
  std::filesystem::path input;   ///< empty: standard input
  std::filesystem::path output;  ///< of the clusters
  std::string direction = "de-en";
  bool append = false;  ///< keep the other directions of `output`

  std::ptrdiff_t clusters = 400;
  std::ptrdiff_t likely = 1;
  std::int32_t width = 1;            ///< of the beam that is recorded; 1: greedy
  std::ptrdiff_t samples = 2000000;  ///< vectors kept, at most
  std::ptrdiff_t points = 256;       ///< of them per cluster that k-means sees
  std::int32_t iterations = 20;
  std::uint64_t seed = 1;
  KMeansName k_means = KMeansName::lloyd;
};

/// Nothing where help or version was asked for, and printed.
/// \throws text::InputError  naming the flag
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace train_clusters
