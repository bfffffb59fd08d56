// SPDX-License-Identifier: Apache-2.0
/// \file
/// Pictures of lines, made as high as the model wants them.
#pragma once

#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <png.h>
#include <string>
#include <vector>

namespace read_line {

/// Grey pixels, row by row; 0 is black.
struct Picture {
  std::ptrdiff_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width]
};

inline constexpr std::ptrdiff_t line_height = 32;     ///< rows that the model sees
inline constexpr std::ptrdiff_t longest_line = 8192;  ///< columns that it sees, at most

namespace detail {

/// `lines` lines of `from` numbers, `step` apart and each number `stride` from the next, to `to` numbers each: a triangle as wide as
/// the step, as PIL's BILINEAR does.
inline std::vector<std::uint8_t> resample(std::vector<std::uint8_t> const& in, std::ptrdiff_t lines,
                                          std::ptrdiff_t from, std::ptrdiff_t to, std::ptrdiff_t line_step,
                                          std::ptrdiff_t step, std::ptrdiff_t out_line_step, std::ptrdiff_t out_step) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(lines * to));
  auto const scale = static_cast<double>(from) / static_cast<double>(to);
  auto const reach = (std::max)(1.0, scale);
  std::vector<double> weights;
  for (std::ptrdiff_t x = 0; x < to; ++x) {
    auto const middle = (static_cast<double>(x) + 0.5) * scale;
    auto const begin = (std::max)(std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(middle - reach + 0.5));
    auto const end = (std::min)(from, static_cast<std::ptrdiff_t>(middle + reach + 0.5));
    weights.clear();
    double sum = 0;
    for (auto i = begin; i < end; ++i) {
      weights.push_back((std::max)(0.0, 1 - std::abs((static_cast<double>(i) - middle + 0.5) / reach)));
      sum += weights.back();
    }
    for (std::ptrdiff_t line = 0; line < lines; ++line) {
      double value = 0;
      for (auto i = begin; i < end; ++i)
        value +=
            weights[static_cast<std::size_t>(i - begin)] * in[static_cast<std::size_t>(line * line_step + i * step)];
      out[static_cast<std::size_t>(line * out_line_step + x * out_step)] =
          static_cast<std::uint8_t>(std::clamp(value / sum + 0.5, 0.0, 255.0));
    }
  }
  return out;
}

}  // namespace detail

/// 32 rows high, and as wide as that makes it.
inline Picture to_line(Picture const& picture) {
  auto const scaled =
      std::nearbyint(static_cast<double>(picture.width * line_height) / static_cast<double>(picture.height));
  auto const width = (std::max)(std::ptrdiff_t{8}, static_cast<std::ptrdiff_t>(scaled));
  auto const narrow =
      detail::resample(picture.pixels, picture.height, picture.width, width, picture.width, 1, width, 1);
  return {width, line_height, detail::resample(narrow, width, picture.height, line_height, 1, width, 1, width)};
}

}  // namespace read_line
