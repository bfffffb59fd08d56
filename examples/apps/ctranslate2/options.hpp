// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of translate_ct2.
#pragma once

#include <sluice/output/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace translate_ct2 {

enum class SearchName : std::uint8_t { greedy, beam, sample };

struct Options {
  std::filesystem::path model;   // a folder of CTranslate2
  std::filesystem::path input;   // empty: standard input
  std::filesystem::path output;  // empty: standard output
  std::string device = "cpu", type = "default";
  SearchName search = SearchName::beam;
  std::int32_t width = 5, n_best = 1, max_length = 256;
  double length_penalty = 1;
  float temperature = 1, top_p = 1;
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
  std::size_t batch = 64;
  std::optional<sluice::Precision> precision =
      sluice::Precision::float32;  // of the output layer; none: CTranslate2's own
  bool streaming = false, pieces = false, scores = false, check = false, time = false;
};

/// Nothing where help was asked for and given.
/// \throws text::InputError  for invalid options
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace translate_ct2
