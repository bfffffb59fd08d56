// SPDX-License-Identifier: Apache-2.0
/// \file
/// Files that appear under their names when they are complete.
#pragma once

#include <text/lines.hpp>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <system_error>

namespace text {

/// Calls write(stream), a binary one. A process that has the old file mapped keeps it.
/// \throws InputError  if it cannot be written; then the old file is left
template <class Write>
void write_file(std::filesystem::path const& file, Write&& write) {
  auto const part = std::filesystem::path(file.string() + ".part");
  auto const fail = [&] {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw InputError(file.string() + ": cannot be written");
  };
  std::ofstream stream(part, std::ios::binary);
  if (!stream) throw InputError(file.string() + ": cannot be written");
  try {
    write(stream);
  } catch (std::runtime_error const&) {
    fail();
  }
  stream.close();
  std::error_code problem;
  if (stream) std::filesystem::rename(part, file, problem);
  if (!stream || problem) fail();
}

}  // namespace text
