// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files with the key of a watermark.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/watermark/watermark.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <vector>

namespace sluice::inline v0 {

/// Reads a key: integers below 2^64, decimal or with 0x, separated by spaces, commas or line ends; `#` begins a comment that
/// ends with the line. No message contains a part of the file.
/// \throws std::invalid_argument  if the file cannot be read, or holds no key
SLUICE_LAZY WatermarkKey read_watermark_key(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), "watermark key file", path, "cannot be read");
  std::vector<std::uint64_t> words;
  std::string number;
  auto comment = false;
  auto const end_number = [&] {
    if (number.empty()) return;
    auto const hex = number.size() > 2 && number[0] == '0' && (number[1] == 'x' || number[1] == 'X');
    std::uint64_t const base = hex ? 16 : 10;
    std::uint64_t value = 0;
    for (std::size_t i = hex ? 2 : 0; i < number.size(); ++i) {
      auto const c = number[i];
      auto const digit = c >= '0' && c <= '9'   ? static_cast<std::uint64_t>(c - '0')
                         : c >= 'a' && c <= 'f' ? static_cast<std::uint64_t>(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? static_cast<std::uint64_t>(c - 'A') + 10
                                                : 99;
      require(digit < base, "watermark key file", path, "holds something that is no integer");
      require(value <= ((std::numeric_limits<std::uint64_t>::max)() - digit) / base, "watermark key file", path,
              "holds an integer of more than 64 bits");
      value = value * base + digit;
    }
    words.push_back(value), number.clear();
    require(words.size() <= WatermarkKey::most, "watermark key file", path, "holds more than 32 integers");
  };
  for (char c = 0; file.get(c);) {
    if (c == '\n') comment = false;
    if (c == '#') comment = true;
    if (comment || c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t') end_number();
    else number += c;
  }
  end_number();
  require(!words.empty(), "watermark key file", path, "holds no integer");
  return WatermarkKey(words);
}

/// Writes a new key of random words to a file that only its owner may read, and returns it. On Windows the permissions of
/// the folder decide who may read it.
/// \throws std::invalid_argument  if the file is there already, or cannot be written, or for a number of words not in [1, 32]
SLUICE_LAZY WatermarkKey write_new_watermark_key(std::string const& path, std::size_t words = 1) {
  require(words >= 1 && words <= WatermarkKey::most, "watermark key: words", words, "must be in [1, 32]");
  require(!std::filesystem::exists(path), "watermark key file", path, "is there already");
  std::vector<std::uint64_t> key(words);
  std::random_device random;
  for (auto& word : key) word = static_cast<std::uint64_t>(random()) << 32 | random();
  std::ofstream file(path, std::ios::binary);
  std::error_code problem;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, problem);
  require(file.is_open() && !problem, "watermark key file", path, "cannot be written");
  for (auto const word : key) file << word << '\n';
  file.flush();
  require(file.good(), "watermark key file", path, "cannot be written");
  return WatermarkKey(key);
}

}  // namespace sluice::inline v0
