// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of build_catalogue.
#pragma once

#include <sluice/catalogue/catalogue_builder.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace build_catalogue {

struct Options {
  enum class Task { build, check, look };
  Task task = Task::build;

  std::filesystem::path tokens, text;  ///< what to build from: one of these
  std::filesystem::path tokenizer;     ///< SentencePiece's; of texts
  std::filesystem::path out;           ///< of the catalogue
  std::filesystem::path numbers;       ///< where each line's item is written; empty: nowhere
  sluice::Duplicates duplicates = sluice::Duplicates::refuse;

  std::filesystem::path in;  ///< a catalogue to check, or to look into
  std::string prefix;        ///< tokens, or a text where there is a tokenizer
  std::size_t most = 10;     ///< items shown
};

/// Nothing where help or version was asked for, and printed.
/// \throws text::InputError  naming the flag
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace build_catalogue
