// SPDX-License-Identifier: Apache-2.0
/// \file
/// The network that reads lines: convolutions, a GRU in both directions, and scores of labels for every four columns.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <text/lines.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <read_line/gru.hpp>
#include <read_line/picture.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace read_line {

/// The characters of a UTF-8 text.
inline std::vector<std::string> characters(std::string const& text) {
  std::vector<std::string> all;
  for (auto const c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) all.emplace_back();
    if (!all.empty()) all.back() += c;
  }
  return all;
}

/// Frames of a picture: one for four columns.
struct Frames {
  std::ptrdiff_t count = 0, labels = 0, hidden = 0;
  std::vector<float> logits;   ///< of CTC, [count, labels]
  std::vector<float> encoded;  ///< what they are made of, [count, hidden]
  sluice::MatrixView<float const> view() const { return {logits.data(), count, labels, labels}; }
  sluice::MatrixView<float const> hidden_view() const { return {encoded.data(), count, hidden, hidden}; }
};

/// As train.py defines it. Label 0 is the blank; the others are the characters of the alphabet.
class Reader {
 public:
  static constexpr std::ptrdiff_t width = 128;  ///< of the GRU in each direction

  /// \throws text::InputError  naming the file and what is wrong with it
  explicit Reader(std::filesystem::path const& file) {
    if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
    try {
      load(sluice::example::Safetensors(file));
    } catch (std::runtime_error const& error) {
      throw text::InputError(error.what());
    }
  }

  /// [label]: its character; nothing for the blank
  std::vector<std::string> const& labels() const { return labels_; }

  /// As many frames as read() returns, of zeros.
  Frames blank_frames(Picture const& line) const {
    auto const count = (line.width + 3) / 4;
    return {count, std::ssize(labels_), 2 * width, std::vector<float>(size(count * std::ssize(labels_))),
            std::vector<float>(size(count * 2 * width))};
  }

  /// \param line  32 rows (to_line)
  Frames read(Picture const& line) const {
    auto map = normal(line);
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      map = convolve(convolutions_[i], map);
      if (i == 1) map = pool(map, 2, 2);
      if (i == 3) map = pool(map, 2, 1);
    }
    auto const frames = map.width, features = map.height * map.channels;
    std::vector<float> columns(size(frames * features));
    for (std::ptrdiff_t y = 0; y < map.height; ++y)
      for (std::ptrdiff_t x = 0; x < frames; ++x)
        std::copy_n(map.at(y, x), map.channels, columns.data() + x * features + y * map.channels);
    std::vector<float> hidden(size(frames * width));
    auto out = blank_frames(line);
    column_.multiply({columns.data(), frames, features, features}, {hidden.data(), frames, width, width},
                     {.relu = true});
    for (std::ptrdiff_t direction = 0; direction < 2; ++direction)
      run(grus_[size(direction)], hidden, frames, out.encoded, direction);
    out_.multiply(out.hidden_view(), {out.logits.data(), frames, out.labels, out.labels});
    return out;
  }

 private:
  static constexpr std::array<std::ptrdiff_t, 6> channels{1, 24, 32, 64, 64, 96};
  static constexpr std::ptrdiff_t rows = 4;  // of the last map

  /// [height, width, channels]
  struct Map {
    std::ptrdiff_t height, width, channels;
    std::vector<float> values;
    float const* at(std::ptrdiff_t y, std::ptrdiff_t x) const { return values.data() + (y * width + x) * channels; }
  };
  struct Convolution {
    sluice::PackedMatrix weight;  // [channels of the result, kernel, kernel, channels]
    std::ptrdiff_t kernel = 3, stride = 1;
  };
  struct Gru {
    sluice::PackedMatrix input, state;  // [3 width, width]: reset, update, new
  };

  static std::size_t size(std::ptrdiff_t n) { return static_cast<std::size_t>(n); }

  void load(sluice::example::Safetensors const& file) {
    auto const alphabet = file.metadata().find("alphabet");
    if (alphabet == file.metadata().end())
      throw std::runtime_error("the metadata name no 'alphabet': is no reader of lines");
    labels_ = characters(alphabet->second);
    labels_.insert(labels_.begin(), std::string());
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      auto const out = channels[i + 1], in = channels[i], kernel = std::ptrdiff_t{i == 0 ? 4 : 3};
      auto const name = "conv." + std::to_string(i);
      auto const weight = file.floats(name + ".weight", {out, in, kernel, kernel});
      std::vector<float> turned(weight.size());
      for (std::ptrdiff_t o = 0; o < out; ++o)
        for (std::ptrdiff_t c = 0; c < in; ++c)
          for (std::ptrdiff_t k = 0; k < kernel * kernel; ++k)
            turned[size((o * kernel * kernel + k) * in + c)] = weight[size((o * in + c) * kernel * kernel + k)];
      auto const inputs = kernel * kernel * in;
      convolutions_[i] = {
          sluice::PackedMatrix({turned.data(), out, inputs, inputs}, file.floats(name + ".bias", {out})), kernel,
          i == 0 ? 2 : 1};
    }
    auto const features = rows * channels.back();
    auto const column = file.floats("column.weight", {width, features});
    std::vector<float> turned(column.size());
    for (std::ptrdiff_t o = 0; o < width; ++o)
      for (std::ptrdiff_t y = 0; y < rows; ++y)
        for (std::ptrdiff_t c = 0; c < channels.back(); ++c)
          turned[size(o * features + y * channels.back() + c)] = column[size(o * features + c * rows + y)];
    column_ = sluice::PackedMatrix({turned.data(), width, features, features}, file.floats("column.bias", {width}));
    auto const layer = [&](std::string const& name, std::string const& end, std::ptrdiff_t out, std::ptrdiff_t in) {
      auto const weight = file.floats(name + "weight" + end, {out, in});
      return sluice::PackedMatrix({weight.data(), out, in, in}, file.floats(name + "bias" + end, {out}));
    };
    for (std::size_t i = 0; i < 2; ++i) {
      std::string const end = i == 0 ? "_l0" : "_l0_reverse";
      grus_[i] = {layer("gru.", "_ih" + end, 3 * width, width), layer("gru.", "_hh" + end, 3 * width, width)};
    }
    out_ = layer("out.", "", std::ssize(labels_), 2 * width);
  }

  /// Less the mean, over the deviation; dark is positive. The last column again and again, to a multiple of four.
  static Map normal(Picture const& line) {
    auto const wide = (line.width + 3) / 4 * 4;
    Map map{line.height, wide, 1, std::vector<float>(size(line.height * wide))};
    double sum = 0, squares = 0;
    for (std::ptrdiff_t y = 0; y < line.height; ++y)
      for (std::ptrdiff_t x = 0; x < wide; ++x) {
        auto const pixel = line.pixels[size(y * line.width + (std::min)(x, line.width - 1))];
        map.values[size(y * wide + x)] = pixel;
        sum += pixel, squares += static_cast<double>(pixel) * pixel;
      }
    auto const count = static_cast<double>(map.values.size()), mean = sum / count;
    auto const deviation = std::sqrt((std::max)(0.0, squares / count - mean * mean)) + 8;
    for (auto& value : map.values) value = static_cast<float>((mean - static_cast<double>(value)) / deviation);
    return map;
  }

  /// With a border of one zero, and relu.
  static Map convolve(Convolution const& layer, Map const& in) {
    auto const step = layer.stride, kernel = layer.kernel, patch = kernel * kernel * in.channels;
    Map out{in.height / step, in.width / step, layer.weight.outputs(), {}};
    out.values.resize(size(out.height * out.width * out.channels));
    std::vector<float> patches(size(out.width * patch));
    for (std::ptrdiff_t y = 0; y < out.height; ++y) {
      std::fill(patches.begin(), patches.end(), 0.0f);
      for (std::ptrdiff_t x = 0; x < out.width; ++x)
        for (std::ptrdiff_t j = 0; j < kernel; ++j)
          for (std::ptrdiff_t i = 0; i < kernel; ++i) {
            auto const v = y * step + j - 1, u = x * step + i - 1;
            if (v >= 0 && v < in.height && u >= 0 && u < in.width)
              std::copy_n(in.at(v, u), in.channels, patches.data() + x * patch + (j * kernel + i) * in.channels);
          }
      layer.weight.multiply({patches.data(), out.width, patch, patch},
                            {out.values.data() + y * out.width * out.channels, out.width, out.channels, out.channels},
                            {.relu = true});
    }
    return out;
  }

  static Map pool(Map const& in, std::ptrdiff_t down, std::ptrdiff_t across) {
    Map out{in.height / down, in.width / across, in.channels, {}};
    out.values.assign(size(out.height * out.width * out.channels), 0.0f);  // after relu nothing is less
    for (std::ptrdiff_t y = 0; y < out.height * down; ++y)
      for (std::ptrdiff_t x = 0; x < out.width * across; ++x) {
        auto* const to = out.values.data() + (y / down * out.width + x / across) * out.channels;
        for (std::ptrdiff_t c = 0; c < in.channels; ++c) to[c] = (std::max)(to[c], in.at(y, x)[c]);
      }
    return out;
  }

  /// One direction (1: from the end), into its half of `both`.
  static void run(Gru const& gru, std::vector<float> const& in, std::ptrdiff_t frames, std::vector<float>& both,
                  std::ptrdiff_t direction) {
    std::vector<float> inputs(size(frames * 3 * width)), gates(size(3 * width)), h(size(width));
    gru.input.multiply({in.data(), frames, width, width}, {inputs.data(), frames, 3 * width, 3 * width});
    for (std::ptrdiff_t t = 0; t < frames; ++t) {
      auto const frame = direction == 0 ? t : frames - 1 - t;
      auto const* const x = inputs.data() + frame * 3 * width;
      gru.state.multiply({h.data(), 1, width, width}, {gates.data(), 1, 3 * width, 3 * width});
      gru_step(x, gates.data(), h.data(), h.data(), width);
      std::copy(h.begin(), h.end(), both.begin() + (frame * 2 + direction) * width);
    }
  }

  std::vector<std::string> labels_;
  std::array<Convolution, 5> convolutions_;
  sluice::PackedMatrix column_, out_;
  std::array<Gru, 2> grus_;
};

}  // namespace read_line
