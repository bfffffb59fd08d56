// SPDX-License-Identifier: Apache-2.0
#include <support/catch.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <read_line/picture.hpp>
#include <read_line/reader.hpp>
#include <vector>

using namespace read_line;

namespace {

std::filesystem::path const folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/read_line/model";

}  // namespace

TEST_CASE("the reader of lines scores frames as PyTorch does", "[read_line]") {
  Reader const reader(folder / "model.safetensors");
  sluice::example::Safetensors const reference(folder / "reference.safetensors");
  auto const shape = reference.tensors().at("picture").shape;
  REQUIRE(shape.at(0) == line_height);
  Picture line{shape.at(1), line_height, {}};
  for (auto const pixel : reference.floats("picture", shape)) line.pixels.push_back(static_cast<std::uint8_t>(pixel));
  auto const frames = reader.read(line);
  REQUIRE(frames.labels == static_cast<std::ptrdiff_t>(reader.labels().size()));
  REQUIRE(frames.count == (line.width + 3) / 4);
  auto const expected = reference.floats("logits", {frames.count, frames.labels});
  auto worst = 0.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(frames.logits[i] - expected[i]));
  CHECK(worst < 2e-3f);
}

TEST_CASE("pictures are scaled to 32 rows by a triangle as wide as the step", "[read_line]") {
  Picture const plain{16, 32, std::vector<std::uint8_t>(16 * 32, 77)};
  CHECK(to_line(plain).pixels == plain.pixels);
  Picture step{8, 64, std::vector<std::uint8_t>(8 * 64, 0)};  // black above, white below
  for (std::size_t i = 8 * 32; i < step.pixels.size(); ++i) step.pixels[i] = 255;
  auto const half = to_line(step);
  CHECK(half.width == 8);  // never narrower
  REQUIRE(half.pixels.size() == 8 * 32);
  CHECK(half.pixels[8 * 14] == 0);
  CHECK(half.pixels[8 * 15] == 32);  // a row reaches two rows of the picture up and down: weights of 1, 3, 3, 1
  CHECK(half.pixels[8 * 16] == 223);
  CHECK(half.pixels[8 * 17] == 255);
}
