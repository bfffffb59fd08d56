// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line of super_resolution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace super_resolution {

struct Options {
  std::filesystem::path model;       ///< folder of model.safetensors, heads.safetensors, samples.pgm
  std::filesystem::path input;       ///< see read_images
  std::filesystem::path output;      ///< folder; empty: none
  std::size_t images = 0;            ///< the first so many; 0: all
  std::vector<std::int32_t> blocks;  ///< empty: 1, 2, 4, 6, 8, as far as the model has heads; none if it has none
  std::int32_t epsilon = 2;
  std::size_t batch = 64;  ///< images in a call of the model
};

/// Nothing if the command line asked for help or the version, which is then printed.
/// \throws text::InputError  for invalid flags or values, before any file is read
std::optional<Options> parse(int argc, char const* const* argv);

}  // namespace super_resolution
