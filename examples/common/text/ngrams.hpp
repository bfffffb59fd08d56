// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables of n-grams from files, and those of characters.
#pragma once

#include <sluice/ngram/ngram_table.hpp>

#include <text/lines.hpp>
#include <text/words.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// ARPA, or a file of build_ngram, which is mapped.
/// \throws InputError  if the file is neither, or broken
inline sluice::NGramTable load_ngrams(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) throw InputError(path.string() + ": cannot be opened");
  try {
    char first[8] = {};
    file.read(first, sizeof first);
    if (std::string_view(first, static_cast<std::size_t>(file.gcount())) == "SLUICENG")
      return sluice::NGramTable::open(path.string());
    file.clear(), file.seekg(0);
    return sluice::read_arpa(file);
  } catch (std::runtime_error const& problem) {
    std::string const what = problem.what();
    throw InputError(what.starts_with(path.string()) ? what : path.string() + ": " + what);
  }
}

/// The word of the table for each label that is a character, of which the table has n-grams (label_words); "" is none.
/// \throws InputError  if it has hardly any of them, naming the file
inline std::vector<sluice::Word> character_words(sluice::NGramTable const& table,
                                                 std::vector<std::string> const& labels,
                                                 std::filesystem::path const& file) {
  std::vector<sluice::Word> words;
  std::int32_t known = 0;
  for (auto const& label : label_words(labels)) {
    auto const word = label.empty() ? table.unknown() : table.word(label);
    words.push_back(word), known += word != table.unknown();
  }
  if (known < 10)
    throw InputError(file.string() + ": has n-grams of " + std::to_string(known) +
                     " of the characters: its words must be single characters, with _ for the space");
  return words;
}

}  // namespace text
