// SPDX-License-Identifier: Apache-2.0
/// \file
/// A recogniser of PaddleOCR (PP-OCR) as an ONNX graph: a picture of a line in, frames of characters out.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>

#include <text/lines.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <read_line/picture.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace onnx_read_line {

/// Log-probabilities of the labels of a picture's frames.
struct Frames {
  std::ptrdiff_t count = 0, labels = 0;
  std::vector<float> log_probs;  ///< [count, labels]

  sluice::MatrixView<float const> view() const { return {log_probs.data(), count, labels, labels}; }

  /// As NumPy's .npy, float32.
  /// \throws text::InputError  if the file cannot be written
  void write(std::filesystem::path const& file) const {
    auto header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(count) + ", " +
                  std::to_string(labels) + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');  // 10 bytes before it and a newline behind
    header += '\n';
    std::ofstream stream(file, std::ios::binary);
    stream.write("\x93NUMPY\x01\x00", 8);
    stream.put(static_cast<char>(header.size() & 255)).put(static_cast<char>(header.size() >> 8));
    stream << header;
    stream.write(reinterpret_cast<char const*>(log_probs.data()),
                 static_cast<std::streamsize>(log_probs.size() * sizeof(float)));
    if (!stream.flush()) throw text::InputError(file.string() + ": cannot be written");
  }
};

/// Resizes as OpenCV's INTER_LINEAR does, with which these networks were trained: of the two nearest pixels in each direction.
inline std::vector<float> resized(read_line::Picture const& picture, std::ptrdiff_t width, std::ptrdiff_t height) {
  struct Mix {
    std::ptrdiff_t first, second;
    float share;  // of the second
  };
  auto const mixes = [](std::ptrdiff_t from, std::ptrdiff_t to) {
    std::vector<Mix> all;
    for (std::ptrdiff_t i = 0; i < to; ++i) {
      auto const at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
      auto const below = static_cast<std::ptrdiff_t>(std::floor(at));
      all.push_back({std::clamp(below, std::ptrdiff_t{0}, from - 1), std::clamp(below + 1, std::ptrdiff_t{0}, from - 1),
                     static_cast<float>(at - static_cast<double>(below))});
    }
    return all;
  };
  auto const columns = mixes(picture.width, width), rows = mixes(picture.height, height);
  std::vector<float> out;
  for (auto const& row : rows)
    for (auto const& column : columns) {
      auto const across = [&](std::ptrdiff_t y) {
        auto const pixel = [&](std::ptrdiff_t x) {
          return static_cast<float>(picture.pixels[static_cast<std::size_t>(y * picture.width + x)]);
        };
        return pixel(column.first) + column.share * (pixel(column.second) - pixel(column.first));
      };
      out.push_back(across(row.first) + row.share * (across(row.second) - across(row.first)));
    }
  return out;
}

/// The graph takes [1, 3, 48, width] and gives the probabilities of its labels, [1, frames, labels]: the blank, those of the file of
/// characters, and the space.
class Recogniser {
 public:
  static constexpr std::ptrdiff_t height = 48, least_width = 320;  // of pictures, as PaddleOCR makes them

  /// \param characters  one in a line
  /// \throws text::InputError  for a file that cannot be read
  Recogniser(sluice::OnnxGraph graph, std::filesystem::path const& characters) : graph_(std::move(graph)) {
    labels_ = text::read_lines(characters);
    labels_.insert(labels_.begin(), std::string());  // the blank
    labels_.emplace_back(" ");
    auto const& session = *graph_.session;
    if (session.GetInputCount() != 1 || session.GetOutputCount() != 1)
      throw text::InputError(graph_.name + ": has not one input and one output, as a recogniser of PP-OCR has");
    Ort::AllocatorWithDefaultOptions allocator;
    input_ = session.GetInputNameAllocated(0, allocator).get(),
    output_ = session.GetOutputNameAllocated(0, allocator).get();
    auto const shape = session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
    if (shape.size() != 4 || shape[1] != 3 || (shape[2] != -1 && shape[2] != height))
      throw text::InputError(graph_.name + ": does not take pictures of 3 x 48 x any, as a recogniser of PP-OCR does");
  }

  std::vector<std::string> const& labels() const { return labels_; }

  /// \throws std::runtime_error  if ONNX Runtime fails, or the graph has other labels
  Frames read(read_line::Picture const& picture) const {
    auto const ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
    auto const width = (std::max)(std::ptrdiff_t{8}, static_cast<std::ptrdiff_t>(std::ceil(height * ratio)));
    auto const whole = (std::max)(width, least_width);
    auto const pixels = resized(picture, width, height);
    std::vector<float> planes(static_cast<std::size_t>(3 * height * whole), 0);  // 0: grey, where the picture has ended
    for (std::ptrdiff_t line = 0; line < 3 * height; ++line)
      for (std::ptrdiff_t x = 0; x < width; ++x)
        planes[static_cast<std::size_t>(line * whole + x)] =
            pixels[static_cast<std::size_t>(line % height * width + x)] / 127.5f - 1;
    std::array<std::int64_t, 4> const shape{1, 3, height, whole};
    auto const memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
    auto const tensor =
        Ort::Value::CreateTensor<float>(memory, planes.data(), planes.size(), shape.data(), shape.size());
    auto const answers = sluice::detail::onnx_call(graph_.name, [&] {
      auto const *const input = input_.c_str(), *const output = output_.c_str();
      return graph_.session->Run(Ort::RunOptions{nullptr}, &input, &tensor, 1, &output, 1);
    });
    auto const size = answers[0].GetTensorTypeAndShapeInfo().GetShape();
    if (size.size() != 3 || size[2] != std::ssize(labels_))
      throw std::runtime_error(graph_.name + ": gives " + std::to_string(size.empty() ? 0 : size.back()) +
                               " labels, and the characters, blank and space are " + std::to_string(labels_.size()));
    Frames frames{static_cast<std::ptrdiff_t>(size[1]), static_cast<std::ptrdiff_t>(size[2]), {}};
    auto const* const probabilities = answers[0].GetTensorData<float>();
    for (std::ptrdiff_t i = 0; i < frames.count * frames.labels; ++i)
      frames.log_probs.push_back(std::log(probabilities[i]));
    return frames;
  }

 private:
  sluice::OnnxGraph graph_;
  std::vector<std::string> labels_;
  std::string input_, output_;
};

}  // namespace onnx_read_line
