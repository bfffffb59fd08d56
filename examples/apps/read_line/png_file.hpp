// SPDX-License-Identifier: Apache-2.0
/// \file
/// Pictures from PNG files.
#pragma once

#include <text/lines.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <png.h>
#include <read_line/picture.hpp>
#include <string>
#include <vector>

namespace read_line {

/// Any PNG, made grey; what is transparent lies on white.
/// \throws text::InputError  naming the file, if it is no PNG, or is larger than a line of text can be
inline Picture read_png(std::filesystem::path const& file) {
  if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  auto const fail = [&] {
    std::string const what = png.message;
    png_image_free(&png);
    throw text::InputError(file.string() + ": is no PNG: " + what);
  };
  if (png_image_begin_read_from_file(&png, file.string().c_str()) == 0) fail();
  auto const width = static_cast<std::ptrdiff_t>(png.width), height = static_cast<std::ptrdiff_t>(png.height);
  if (width > 65536 || height > 4096 || width * line_height > longest_line * height) {
    png_image_free(&png);
    throw text::InputError(file.string() + ": is " + std::to_string(width) + " x " + std::to_string(height) +
                           " pixels, too wide for a line: at most 256 times as wide as high, and 4096 high");
  }
  png.format = PNG_FORMAT_GRAY;
  Picture picture{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  png_color const white{255, 255, 255};
  if (png_image_finish_read(&png, &white, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
}

}  // namespace read_line
