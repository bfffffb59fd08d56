// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables of n-grams from files.
#pragma once

#include <sluice/ngram/ngram_table.hpp>

#include <text/lines.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

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

}  // namespace text
