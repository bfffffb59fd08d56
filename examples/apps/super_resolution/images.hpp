// SPDX-License-Identifier: Apache-2.0
/// \file
/// Square grey images, and files of them.
#pragma once

#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace super_resolution {

inline constexpr std::int32_t small_size = 4, large_size = 16;  ///< pixels of a side: of the input, of the output

/// Intensities, row by row: small_size or large_size of them in a row, and as many rows.
using Image = std::vector<std::uint8_t>;

inline std::int32_t side(Image const& image) {
  return image.size() == small_size * small_size ? small_size : large_size;
}

/// The images of a binary PGM file, which stand one below the other and are all small or all large.
/// \throws text::InputError  for a file that is not such a one
inline std::vector<Image> read_images(std::filesystem::path const& file) {
  auto const fail = [&](std::string const& what) { return text::InputError(file.string() + ": " + what); };
  if (std::filesystem::is_directory(file)) throw fail("is a directory");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw fail("cannot be opened");
  std::string kind;
  std::int64_t width = 0, height = 0, white = 0;
  if (!(stream >> kind) || kind != "P5") throw fail("is no binary PGM file (P5)");
  if (!(stream >> width >> height >> white) || stream.get() == std::istream::traits_type::eof())
    throw fail("its header must be: P5, width, height, 255");
  if (white != 255) throw fail("white is " + std::to_string(white) + ", must be 255");
  if (width != small_size && width != large_size)
    throw fail("is " + std::to_string(width) + " pixels wide, must be 4 (images to enlarge) or 16 (originals)");
  if (height < 1 || height % width != 0)
    throw fail("is " + std::to_string(height) + " pixels high, must be a multiple of its width, " +
               std::to_string(width));
  std::vector<char> const pixels{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (std::ssize(pixels) / width != height || std::ssize(pixels) % width != 0)
    throw fail("holds " + std::to_string(pixels.size()) + " pixels, its header says " + std::to_string(width) + " x " +
               std::to_string(height));
  std::vector<Image> images;
  for (auto at = pixels.begin(); at != pixels.end(); at += width * width) images.emplace_back(at, at + width * width);
  return images;
}

/// What read_images reads. \throws text::InputError  if it cannot be written
inline void write_images(std::filesystem::path const& file, std::vector<Image> const& images) {
  std::ofstream stream(file, std::ios::binary);
  auto const size = images.empty() ? large_size : side(images[0]);
  stream << "P5\n" << size << ' ' << size * std::ssize(images) << "\n255\n";
  for (auto const& image : images)
    stream.write(reinterpret_cast<char const*>(image.data()), static_cast<std::streamsize>(image.size()));
  stream.close();
  if (!stream) throw text::InputError(file.string() + ": cannot be written");
}

/// The means of squares of 4 x 4 pixels, halves rounded up.
inline Image shrink(Image const& large) {
  constexpr auto step = large_size / small_size;
  Image small;
  for (std::int32_t y = 0; y < large_size; y += step)
    for (std::int32_t x = 0; x < large_size; x += step) {
      std::int32_t sum = 0;
      for (std::int32_t i = 0; i < step * step; ++i)
        sum += large[static_cast<std::size_t>((y + i / step) * large_size + x + i % step)];
      small.push_back(static_cast<std::uint8_t>((sum + step * step / 2) / (step * step)));
    }
  return small;
}

/// Each pixel is interpolated linearly between the middles of the four nearest ones, halves rounded up.
inline Image interpolate(Image const& small) {
  constexpr auto step = static_cast<float>(large_size / small_size);
  auto const along = [&](std::int32_t i) {
    return std::clamp((static_cast<float>(i) + 0.5f) / step - 0.5f, 0.0f, static_cast<float>(small_size - 1));
  };
  Image large;
  for (std::int32_t y = 0; y < large_size; ++y)
    for (std::int32_t x = 0; x < large_size; ++x) {
      auto const v = along(y), u = along(x);
      auto const top = std::min(static_cast<std::int32_t>(v), small_size - 2);
      auto const left = std::min(static_cast<std::int32_t>(u), small_size - 2);
      auto const b = v - static_cast<float>(top), a = u - static_cast<float>(left);
      auto const pixel = [&](std::int32_t j, std::int32_t i) {
        return static_cast<float>(small[static_cast<std::size_t>((top + j) * small_size + left + i)]);
      };
      auto const value =
          (1 - b) * ((1 - a) * pixel(0, 0) + a * pixel(0, 1)) + b * ((1 - a) * pixel(1, 0) + a * pixel(1, 1));
      large.push_back(static_cast<std::uint8_t>(std::floor(value + 0.5f)));
    }
  return large;
}

/// Of all pixels of images that belong together.
struct Comparison {
  double difference = 0;   ///< mean, absolute, in levels
  double psnr = 0;         ///< of the mean squared difference, in dB; infinite for equal images
  std::int64_t equal = 0;  ///< images without a difference
};

inline Comparison compare(std::vector<Image> const& a, std::vector<Image> const& b) {
  Comparison result;
  double squares = 0, pixels = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t p = 0; p < a[i].size(); ++p) {
      auto const difference = static_cast<double>(std::abs(a[i][p] - b[i][p]));
      result.difference += difference, squares += difference * difference;
    }
    pixels += static_cast<double>(a[i].size());
    result.equal += a[i] == b[i];
  }
  result.difference /= pixels;
  result.psnr = squares == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(255 * 255 * pixels / squares);
  return result;
}

}  // namespace super_resolution
