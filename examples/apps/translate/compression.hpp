// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compressed files, read as a stream and written member by member.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace translate {

enum class Format : std::uint8_t { plain, gzip, zstd };

/// The format of a file, by its name: .gz, .zst, or neither.
/// \throws text::InputError  for a format without which the program was built
Format format_of_name(std::filesystem::path const& file);

/// The format of a file, by its first bytes.
/// \throws text::InputError  where the name says otherwise, or for a format without which the program was built
Format format_of_file(std::filesystem::path const& file);

/// A whole gzip member or zstd frame. Several in a row are a file of that format, too. The same text gives the
/// same bytes with the same release of the format's library.
std::string compressed(Format format, std::string_view text);

/// The text of a file, all its members in a row.
class TextBuffer : public std::streambuf {
 public:
  /// What is wrong with the file, once its stream is bad; empty: nothing.
  std::string const& problem() const { return problem_; }

 protected:
  std::string problem_;
};

/// \throws text::InputError  if the file cannot be opened
std::unique_ptr<TextBuffer> open_compressed(std::filesystem::path const& file, Format format);

}  // namespace translate
