// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lines of UTF-8 text, from files and streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// Invalid input; what() names the flag or file, and the line. Programs exit with code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a program's main() does: runs `work`, and says on standard error what went wrong.
/// \returns what `work` returns; 2 for an InputError or a std::invalid_argument, 1 for any other exception
template <class Work>
int run_program(char const* program, Work const& work) {
  auto const complain = [&](std::exception const& error, int code) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return code;
  };
  try {
    return work();
  } catch (InputError const& error) {
    return complain(error, 2);
  } catch (std::invalid_argument const& error) {
    return complain(error, 2);
  } catch (std::exception const& error) {
    return complain(error, 1);
  }
}

/// Whether `s` is well-formed UTF-8 (Unicode 15, table 3-7).
inline bool valid_utf8(std::string_view s) {
  auto const byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  for (std::size_t i = 0; i < s.size();) {
    auto const lead = byte(i);
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
    std::size_t const length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length > 1) {
      // The second byte keeps out overlong forms, surrogates and what lies above U+10FFFF.
      auto const low = lead == 0xE0 ? 0xA0u : lead == 0xF0 ? 0x90u : 0x80u;
      auto const high = lead == 0xED ? 0x9Fu : lead == 0xF4 ? 0x8Fu : 0xBFu;
      if (byte(i + 1) < low || byte(i + 1) > high) return false;
      for (std::size_t k = 2; k < length; ++k)
        if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

/// Reads line after line; drops a byte order mark and carriage returns.
class LineReader {
 public:
  /// \param number, position  the lines and bytes before
  explicit LineReader(std::istream& stream, std::size_t number = 0, std::uint64_t position = 0)
      : stream_(&stream), number_(number), position_(position) {}

  /// Whether there was another line.
  bool next(std::string& line) {
    if (!std::getline(*stream_, line)) return false;
    position_ += line.size() + (stream_->eof() ? 0 : 1);
    if (++number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }
  /// The number of the line read last, from 1.
  std::size_t number() const { return number_; }
  /// The position of the byte after it, from 0.
  std::uint64_t position() const { return position_; }

 private:
  std::istream* stream_;
  std::size_t number_;
  std::uint64_t position_;
};

/// All lines of a stream called `name`.
/// \throws InputError  for a line that is not UTF-8, or a read error
inline std::vector<std::string> read_lines(std::istream& stream, std::string const& name) {
  std::vector<std::string> lines;
  LineReader reader(stream);
  for (std::string line; reader.next(line); lines.push_back(line))
    if (!valid_utf8(line)) throw InputError(name + ":" + std::to_string(reader.number()) + ": not valid UTF-8");
  if (stream.bad()) throw InputError(name + ": cannot be read");
  return lines;
}

/// All lines of a file.
/// \throws InputError  if it cannot be opened too
inline std::vector<std::string> read_lines(std::filesystem::path const& file) {
  if (std::filesystem::is_directory(file)) throw InputError(file.string() + ": is a directory");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(file.string() + ": cannot be opened");
  return read_lines(stream, file.string());
}

/// The whole of a file.
/// \throws InputError  if it cannot be read, or is not UTF-8
inline std::string read_text(std::filesystem::path const& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw InputError(file.string() + ": cannot be read");
  std::string all(std::istreambuf_iterator<char>(stream), {});
  if (!valid_utf8(all)) throw InputError(file.string() + ": not valid UTF-8");
  return all;
}

/// To call when all is printed.
/// \throws std::runtime_error  if standard output could not be written: a full disk, say
inline void finish_standard_output() {
  auto const before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 || before) throw std::runtime_error("standard output cannot be written");
}

}  // namespace text
