// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of build_ngram.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace build_ngram {

struct Options {
  enum class Task { train, convert, check, score };
  Task task = Task::train;

  std::filesystem::path text;       ///< to train from, or to score
  std::filesystem::path tokenizer;  ///< SentencePiece's: its pieces are the words
  std::filesystem::path arpa;       ///< to read
  std::filesystem::path in;         ///< a table, to check or to score with
  std::filesystem::path out;        ///< of the table
  std::filesystem::path out_arpa;   ///< of the same as text
  std::int32_t order = 3;
  bool fallback = false, quantise = false;
  std::optional<double> unknown{};  ///< log10 p of <unk>, if the ARPA file has none
};

/// Nothing where help or version was asked for, and printed.
/// \throws text::InputError  naming the flag
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace build_ngram
