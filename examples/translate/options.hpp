// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of translate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace translate {

enum class SearchName { greedy, beam };
enum class ScheduleName { batched };

struct Options {
  std::filesystem::path model;   ///< of the weights; the tokenizer lies beside them
  std::filesystem::path input;   ///< empty: standard input
  std::filesystem::path output;  ///< empty: standard output
  std::filesystem::path prefix;  ///< what the output of each line begins with; empty: nothing
  std::filesystem::path score;   ///< targets to score instead of searching; empty: none
  std::filesystem::path stats;   ///< JSON; empty: none
  SearchName search = SearchName::beam;
  std::int32_t width = 5;
  std::optional<std::int32_t> n_best{};  ///< print so many hypotheses with index and score
  double length_penalty = 1;
  std::int32_t max_length = 256;
  ScheduleName schedule = ScheduleName::batched;
  std::size_t batch = 64;
  std::size_t threads = 1;
  bool progress = false;
};

/// Nothing if the command line asked for help or the version, which is then printed.
/// \throws text::InputError  for flags, values or combinations that make no sense; no file has been looked at
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace translate
