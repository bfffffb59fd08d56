// SPDX-License-Identifier: Apache-2.0
/// \file
/// Matrices of frames from files: .npy of NumPy, or numbers as text.
#pragma once

#include <text/lines.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace ctc_decode {

struct Matrix {
  std::size_t frames = 0, labels = 0;
  std::vector<float> scores{};  ///< [frames, labels]
};

namespace detail {

inline float half(std::uint16_t bits) {
  auto const exponent = bits >> 10 & 31;
  auto const fraction = static_cast<float>(bits & 1023);
  auto const value = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

/// What follows a key in the header, which is a dictionary of Python.
inline std::string_view member(std::string_view header, std::string_view key) {
  auto const at = header.find(key);
  if (at == header.npos) return {};
  auto const begin = header.find_first_not_of(": '\"", at + key.size());
  return begin == header.npos ? std::string_view() : header.substr(begin);
}

template <class T>
T number_at(std::string const& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

inline Matrix from_npy(std::string const& bytes, std::string const& name) {
  auto const broken = [&](std::string const& what) { return text::InputError(name + ": " + what); };
  auto const wide = bytes.size() > 6 && bytes[6] > 1;  // the version
  std::size_t const begin = wide ? 12 : 10;
  if (bytes.size() < begin) throw broken("ends within its header");
  auto const length = wide ? std::size_t{number_at<std::uint32_t>(bytes, 8)} : number_at<std::uint16_t>(bytes, 8);
  if (bytes.size() - begin < length) throw broken("ends within its header");
  auto const header = std::string_view(bytes).substr(begin, length);
  auto const type = member(header, "descr'").substr(0, 3);
  std::size_t const size = type == "<f4" ? 4 : type == "<f8" ? 8 : type == "<f2" ? 2 : 0;
  if (size == 0) throw broken("has numbers of type '" + std::string(type) + "': must be '<f4', '<f8' or '<f2'");
  auto const columns_first = member(header, "fortran_order'").starts_with("True");
  auto const shape = member(header, "shape'");
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < shape.size() && shape[i] != ')';) {
    std::size_t value = 0;
    auto const read = std::from_chars(shape.data() + i, shape.data() + shape.size(), value);
    if (read.ec == std::errc()) sizes.push_back(value), i = static_cast<std::size_t>(read.ptr - shape.data());
    else ++i;
  }
  if (sizes.size() == 3 && sizes[0] == 1) sizes.erase(sizes.begin());
  if (sizes.size() != 2) throw broken("has " + std::to_string(sizes.size()) + " dimensions: must be [frames, labels]");
  Matrix made{sizes[0], sizes[1]};
  auto const held = (bytes.size() - begin - length) / size;
  if (made.labels == 0 || made.frames > held / made.labels) throw broken("ends before its last number");
  made.scores.resize(made.frames * made.labels);
  for (std::size_t frame = 0; frame < made.frames; ++frame)
    for (std::size_t label = 0; label < made.labels; ++label) {
      auto const at =
          begin + length + size * (columns_first ? label * made.frames + frame : frame * made.labels + label);
      made.scores[frame * made.labels + label] = size == 4   ? number_at<float>(bytes, at)
                                                 : size == 8 ? static_cast<float>(number_at<double>(bytes, at))
                                                             : half(number_at<std::uint16_t>(bytes, at));
    }
  return made;
}

inline Matrix from_text(std::string_view bytes, std::string const& name) {
  Matrix made;
  for (std::size_t begin = 0, line = 1; begin < bytes.size(); ++line) {
    auto const end = (std::min)(bytes.find('\n', begin), bytes.size());
    auto rest = bytes.substr(begin, end - begin);
    begin = end + 1;
    auto const before = made.scores.size();
    while (!rest.empty()) {
      auto const skipped = rest.find_first_not_of(", ;\t\r");
      if (skipped == rest.npos) break;
      rest.remove_prefix(skipped + (rest[skipped] == '+' ? 1 : 0));
      float value = 0;
      auto const read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (read.ec == std::errc::invalid_argument)
        throw text::InputError(name + ":" + std::to_string(line) + ": '" +
                               std::string(rest.substr(0, rest.find_first_of(", ;\t\r"))) + "' is not a number");
      made.scores.push_back(read.ec == std::errc() ? value : rest.starts_with('-') ? -INFINITY : 0.0f);
      rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
    }
    auto const count = made.scores.size() - before;
    if (count == 0) continue;  // an empty line
    if (made.frames > 0 && count != made.labels)
      throw text::InputError(name + ":" + std::to_string(line) + ": has " + std::to_string(count) +
                             " numbers, lines before it " + std::to_string(made.labels));
    ++made.frames, made.labels = count;
  }
  return made;
}

}  // namespace detail

/// A matrix [frames, labels]: .npy of float16, float32 or float64, or a line of numbers for each frame.
/// \param labels  that it must have
/// \throws text::InputError  naming the file
inline Matrix read_matrix(std::filesystem::path const& file, std::size_t labels) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) throw text::InputError(file.string() + ": cannot be opened");
  std::string const bytes{std::istreambuf_iterator<char>(stream), {}};
  auto made =
      bytes.starts_with("\x93NUMPY") ? detail::from_npy(bytes, file.string()) : detail::from_text(bytes, file.string());
  if (made.frames == 0) throw text::InputError(file.string() + ": has no frame");
  if (made.labels != labels)
    throw text::InputError(file.string() + ": has " + std::to_string(made.labels) + " columns, --labels " +
                           std::to_string(labels));
  return made;
}

}  // namespace ctc_decode
