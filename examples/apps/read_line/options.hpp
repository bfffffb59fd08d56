// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of read_line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace read_line {

struct Options {
  enum class Search : std::uint8_t { best_path, beam, exact, rnnt_greedy, rnnt_beam };

  std::vector<std::string> pictures;  ///< PNG files
  std::filesystem::path model;        ///< folder of model.safetensors, and rnnt.safetensors
  Search search = Search::beam;
  std::int32_t beam = 32;
  std::int64_t steps = 0;         ///< of the exact search, for each picture; 0: no bound
  std::int32_t n_best = 0;        ///< 0: the best text alone, without its score
  std::filesystem::path lexicon;  ///< empty: none, as below
  std::filesystem::path ngram;    ///< of characters
  double ngram_weight = 0.6, ngram_bonus = 0.8;
  std::filesystem::path bias;  ///< see text::read_bias
  std::optional<std::string> regex;
  std::filesystem::path trace;
  std::filesystem::path frames;  ///< folder that keeps frames
};

/// Nothing if the command line asked for help or the version, which is then printed.
/// \throws text::InputError  for invalid flags or values, before any file is read
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace read_line
