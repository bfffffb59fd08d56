// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of semantic_parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace semantic_parser {

enum class SearchName { greedy, fixed, variable };
enum class ScheduleName { batched, streaming, fifo };

/// Of the paper: width k, absolute_threshold delta, max_per_parent M, size n, max_rows n k. What a search or a schedule
/// does not need is ignored, so that one may vary while the rest of the line stays.
struct Options {
  std::filesystem::path model;   ///< folder, see Data
  std::filesystem::path output;  ///< empty: standard output
  std::filesystem::path stats;   ///< JSON; empty: none

  SearchName search = SearchName::variable;
  ScheduleName schedule = ScheduleName::streaming;
  std::int32_t width = 10;
  double absolute_threshold = 10;
  std::int32_t max_per_parent = 3;
  std::size_t size = 10;  ///< sentences in a batch; where not given, 100 for SearchName::greedy, which has a row each
  std::int32_t max_rows = 100;
};

/// Nothing if the command line asked for help or the version, which is then printed.
/// \throws text::InputError  for invalid flags or values, before any file is read
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace semantic_parser
