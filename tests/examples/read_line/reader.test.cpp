// SPDX-License-Identifier: Apache-2.0
// The network of read_line against its definition in double precision (train.py reference), on a picture that was scanned badly.
#include <support/catch.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <read_line/reader.hpp>
#include <string>
#include <vector>

using sluice::example::Safetensors;

namespace {

std::filesystem::path const root = SLUICE_SOURCE_DIR;
auto const model = root / "examples/apps/read_line/model/model.safetensors";

}  // namespace

TEST_CASE("the reader of lines computes what its definition computes", "[read_line]") {
  Safetensors const reference(root / "tests/examples/read_line/reference.safetensors");
  auto const& shape = reference.tensors().at("picture").shape;
  auto const& expected_shape = reference.tensors().at("logits").shape;
  REQUIRE(shape.at(0) == 32);
  auto const pixels = reference.floats("picture", shape);
  auto const expected = reference.floats("logits", expected_shape);
  read_line::Picture picture{shape.at(1), 32, {}};
  for (auto const pixel : pixels) picture.pixels.push_back(static_cast<std::uint8_t>(pixel));

  read_line::Reader const reader(model);
  auto const found = reader.read(picture);
  REQUIRE(found.count == expected_shape.at(0));
  REQUIRE(found.labels == expected_shape.at(1));
  REQUIRE(static_cast<std::ptrdiff_t>(reader.labels().size()) == found.labels);
  float worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(found.logits[i] - expected[i]));
  CHECK(worst < 2e-3f);

  std::string text;
  std::ptrdiff_t before = 0;
  for (std::ptrdiff_t t = 0; t < found.count; ++t) {
    auto const* const line = found.logits.data() + t * found.labels;
    auto const best = std::max_element(line, line + found.labels) - line;
    if (best != before) text += reader.labels()[static_cast<std::size_t>(best)];
    before = best;
  }
  CHECK(text == reference.metadata().at("text"));
}

TEST_CASE("pictures of any size become lines of 32 rows", "[read_line]") {
  read_line::Picture const grey{10, 4, std::vector<std::uint8_t>(40, 77)};
  auto const line = read_line::to_line(grey);
  CHECK(line.height == 32);
  CHECK(line.width == 80);
  CHECK(std::count(line.pixels.begin(), line.pixels.end(), 77) == 32 * 80);
  CHECK(read_line::to_line({1, 400, std::vector<std::uint8_t>(400, 3)}).width == 8);
}

TEST_CASE("weights that are none are named", "[read_line]") {
  CHECK_THROWS(read_line::Reader(root / "no such file"));
  CHECK_THROWS(read_line::Reader(root / "tests/examples/read_line/reference.safetensors"));
}
