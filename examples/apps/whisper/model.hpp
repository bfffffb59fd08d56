// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whisper under ONNX Runtime, with windows of sound that are encoded once, however often they are decoded.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/onnxruntime.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <whisper/vocabulary.hpp>

namespace whisper {

/// Scores as log-probabilities.
inline std::vector<double> log_softmax(std::span<float const> line) {
  auto const best = static_cast<double>(*std::max_element(line.begin(), line.end()));
  double sum = 0;
  for (auto const x : line) sum += std::exp(static_cast<double>(x) - best);
  std::vector<double> result(line.begin(), line.end());
  for (auto& x : result) x -= best + std::log(sum);
  return result;
}

using Decoder = sluice::OnnxEncoderDecoder<sluice::Scores<float>, sluice::OnnxNumbers>;

/// 30 seconds of features, and what the encoder makes of them.
struct Window {
  sluice::OnnxNumbers features{};
  std::optional<Decoder::Encoded> encoded{};
};

/// The decoder over windows. A graph with attention_mask and position_ids is ragged: windows of different prompts step together.
class Model {
 public:
  using Source = std::shared_ptr<Window>;

  Model(sluice::OnnxGraphs const& graphs, Vocabulary const& vocabulary)
      : decoder_(graphs, {.bos = vocabulary.start,
                          .eos = {vocabulary.eot},
                          .size = vocabulary.size(),
                          .length = 448,
                          .abilities = sluice::Abilities{.ragged = true, .blocks = true, .roll_back = true}}) {}

  sluice::Vocabulary const& vocabulary() const { return decoder_.vocabulary(); }
  sluice::Abilities abilities() const { return decoder_.abilities(); }
  sluice::Limits limits() const { return decoder_.limits(); }

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    constexpr std::array<std::int32_t, 1> first{0};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto& window = **sources[i];
      hear(window);
      decoder_.start(*window.encoded, first, slots.subspan(i, 1));
    }
  }
  void release(std::span<sluice::Slot const> slots) { decoder_.release(slots); }
  sluice::Scores<float> step(std::span<sluice::Row const> rows) { return decoder_.step(rows); }

  /// Calls use(scores) with the scores after each of the last `lines` tokens of some, fed all at once to a slot of their own. For a
  /// model that no decoder steps.
  template <class Use>
  void look(Window& window, std::span<Token const> tokens, std::int32_t lines, Use&& use) {
    constexpr std::array<std::int32_t, 1> item{0};
    constexpr std::array<sluice::Slot, 1> slot{0};
    hear(window);
    decoder_.start(*window.encoded, item, slot);
    std::array<sluice::Row, 1> const rows{
        sluice::Row{.from = 0, .to = 0, .length = 0, .tokens = tokens, .lines = lines}};
    use(decoder_.step(rows));
    decoder_.release(slot);
  }

 private:
  void hear(Window& window) const {
    if (window.encoded) return;
    sluice::OnnxNumbers const* const source = &window.features;
    window.encoded = decoder_.encode({&source, 1});
  }
  Decoder decoder_;
};

}  // namespace whisper
