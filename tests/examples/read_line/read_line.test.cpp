// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decode.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/frames/transducer_beam.hpp>

#include <support/catch.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <read_line/picture.hpp>
#include <read_line/reader.hpp>
#include <read_line/rnnt_network.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace read_line;

namespace {

std::filesystem::path const folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/apps/read_line/model";

/// The picture of reference.safetensors.
Picture reference_picture() {
  sluice::example::Safetensors const file(folder / "reference.safetensors");
  auto const shape = file.tensors().at("picture").shape;
  Picture line{shape.at(1), shape.at(0), {}};
  for (auto const pixel : file.floats("picture", shape)) line.pixels.push_back(static_cast<std::uint8_t>(pixel));
  return line;
}

std::string text_of(std::vector<sluice::Token> const& tokens, Reader const& reader) {
  std::string text;
  for (auto const token : tokens) text += reader.labels().at(static_cast<std::size_t>(token));
  return text;
}

}  // namespace

TEST_CASE("the reader of lines scores frames as PyTorch does", "[read_line]") {
  Reader const reader(folder / "model.safetensors");
  sluice::example::Safetensors const reference(folder / "reference.safetensors");
  auto const line = reference_picture();
  REQUIRE(line.height == line_height);
  auto const frames = reader.read(line);
  REQUIRE(frames.labels == static_cast<std::ptrdiff_t>(reader.labels().size()));
  REQUIRE(frames.count == (line.width + 3) / 4);
  auto const expected = reference.floats("logits", {frames.count, frames.labels});
  auto worst = 0.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(frames.logits[i] - expected[i]));
  CHECK(worst < 2e-3f);
}

TEST_CASE("predictor and joiner score labels as PyTorch does", "[read_line]") {
  Reader const reader(folder / "model.safetensors");
  RnntNetwork network(folder / "rnnt.safetensors", reader.labels());
  auto const frames = reader.read(reference_picture());
  auto const* const source = &frames;
  sluice::example::Safetensors const reference(folder / "rnnt-reference.safetensors");
  auto const count = reference.tensors().at("labels").shape.at(0);
  auto const labels = reference.floats("labels", {count}), at = reference.floats("frames", {count + 1});

  std::int32_t const utterance = 3;
  auto const* const sources = &source;
  network.start({&sources, 1}, {&utterance, 1});
  std::vector<sluice::JoinerRow> joins;
  for (std::int32_t state = 0; state <= count; ++state) {
    auto const label = state == 0 ? 0 : static_cast<sluice::Token>(labels[static_cast<std::size_t>(state - 1)]);
    std::vector const rows{sluice::PredictorRow{state - 1, state, label},  // beside it, one that shall not matter
                           sluice::PredictorRow{-1, 100, 7}};
    network.predict(rows);
    joins.push_back({utterance, static_cast<std::int32_t>(at[static_cast<std::size_t>(state)]), state});
  }
  auto const logits = network.join(joins);
  auto const expected = reference.floats("logits", {count + 1, std::ssize(reader.labels())});
  auto worst = 0.0f;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(logits.data[i] - expected[i]));
  CHECK(worst < 4e-3f);

  // The searches: PyTorch's text; a batch changes nothing; a beam of one text and the sum over its alignments.
  sluice::Transducer model(std::move(network));
  auto const half = [&] {
    auto cut = frames;
    cut.count /= 2;
    return cut;
  }();
  std::vector<Frames const*> const pictures{&frames, &half, &frames};
  auto const greedy = decode(model, pictures, sluice::TransducerGreedy<>{.tokens = model.tokens()});
  CHECK(text_of(greedy.at(0).hypotheses.at(0).tokens, reader) == reference.metadata().at("text"));
  auto const beam =
      decode(model, pictures, sluice::TransducerBeam<>{.tokens = model.tokens(), .width = 4, .n_best = 2});
  CHECK(text_of(beam.at(0).hypotheses.at(0).tokens, reader) == reference.metadata().at("text"));
  CHECK(beam.at(0).hypotheses.at(0).log_prob > greedy.at(0).hypotheses.at(0).log_prob);
  CHECK(beam.at(0).hypotheses.at(0).log_prob > beam.at(0).hypotheses.at(1).log_prob);
  CHECK(beam.at(2).hypotheses.at(0).log_prob == beam.at(0).hypotheses.at(0).log_prob);
  auto const alone = decode(model, std::vector{&half}, sluice::TransducerBeam<>{.tokens = model.tokens(), .width = 4});
  CHECK(alone.at(0).hypotheses.at(0).tokens == beam.at(1).hypotheses.at(0).tokens);
  CHECK(alone.at(0).hypotheses.at(0).log_prob == beam.at(1).hypotheses.at(0).log_prob);
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
