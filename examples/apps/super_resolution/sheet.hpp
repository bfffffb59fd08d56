// SPDX-License-Identifier: Apache-2.0
/// \file
/// Images side by side, as a PNG file.
#pragma once

#include <filesystem>
#include <super_resolution/images.hpp>
#include <vector>

namespace super_resolution {

/// Writes rows of images, small ones as large as the others: a pixel of a large one is 8 x 8.
/// \throws text::InputError  if the file cannot be written
void write_sheet(std::filesystem::path const& file, std::vector<std::vector<Image>> const& rows);

}  // namespace super_resolution
