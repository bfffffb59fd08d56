// SPDX-License-Identifier: Apache-2.0
/// \file
/// A folder of frames that have been computed once.
#pragma once

#include <text/checksum.hpp>
#include <text/lines.hpp>
#include <text/write_file.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <read_line/picture.hpp>
#include <read_line/reader.hpp>
#include <string>
#include <utility>
#include <vector>

namespace read_line {

/// Files are named by the checksum of model and picture, and hold what Reader::read returns for it, bit for bit.
class FramesCache {
 public:
  /// \param folder  empty: nothing is kept
  /// \param model   the Reader's file
  FramesCache(std::filesystem::path folder, std::filesystem::path const& model) : folder_(std::move(folder)) {
    if (folder_.empty()) return;
    if (!std::filesystem::is_directory(folder_)) throw text::InputError(folder_.string() + ": no such folder");
    std::ifstream stream(model, std::ios::binary);
    model_.add(std::string(std::istreambuf_iterator<char>(stream), {}));
  }

  /// \throws text::InputError  if a file cannot be written
  Frames read(Reader const& reader, Picture const& line) const {
    if (folder_.empty()) return reader.read(line);
    auto sum = model_;
    sum.add(std::string(line.pixels.begin(), line.pixels.end()));
    auto const file = folder_ / (text::hexadecimal(sum.value()) + ".frames");
    auto frames = reader.blank_frames(line);
    if (load(file, frames)) return frames;
    frames = reader.read(line);
    text::write_file(file, [&](std::ostream& stream) {
      for (auto const* part : {&frames.logits, &frames.encoded})
        stream.write(reinterpret_cast<char const*>(part->data()), bytes(*part));
    });
    return frames;
  }

 private:
  static std::streamsize bytes(std::vector<float> const& part) {
    return static_cast<std::streamsize>(part.size() * sizeof(float));
  }
  /// Whether the file is there, and as long as it must be.
  static bool load(std::filesystem::path const& file, Frames& frames) {
    std::ifstream stream(file, std::ios::binary);
    for (auto* part : {&frames.logits, &frames.encoded})
      if (!stream.read(reinterpret_cast<char*>(part->data()), bytes(*part))) return false;
    return stream.peek() == std::ifstream::traits_type::eof();
  }

  std::filesystem::path folder_;
  text::Checksum model_;
};

}  // namespace read_line
