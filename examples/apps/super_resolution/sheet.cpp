// SPDX-License-Identifier: Apache-2.0
#include <text/lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <png.h>
#include <super_resolution/sheet.hpp>

namespace super_resolution {

void write_sheet(std::filesystem::path const& file, std::vector<std::vector<Image>> const& rows) {
  constexpr std::size_t tile = 8 * large_size, gap = 8;
  std::size_t columns = 0;
  for (auto const& row : rows) columns = std::max(columns, row.size());
  auto const width = columns * (tile + gap) + gap, height = rows.size() * (tile + gap) + gap;
  std::vector<std::uint8_t> pixels(width * height, 255);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      auto const& image = rows[r][c];
      auto const size = static_cast<std::size_t>(side(image)), scale = tile / size;
      for (std::size_t y = 0; y < tile; ++y)
        for (std::size_t x = 0; x < tile; ++x)
          pixels[(r * (tile + gap) + gap + y) * width + c * (tile + gap) + gap + x] =
              image[y / scale * size + x / scale];
    }
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.format = PNG_FORMAT_GRAY;
  png.width = static_cast<png_uint_32>(width), png.height = static_cast<png_uint_32>(height);
  if (png_image_write_to_file(&png, file.string().c_str(), 0, pixels.data(), 0, nullptr) == 0)
    throw text::InputError(file.string() + ": cannot be written: " + png.message);
}

}  // namespace super_resolution
