// SPDX-License-Identifier: Apache-2.0
/// \file
/// ONNX Runtime as a model: decoders with a KV cache, with or without an encoder, and recurrent ones, under any search. Needs
/// onnxruntime_cxx_api.h (component `onnxruntime`: `sluice::onnxruntime`).
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/engine/onnxruntime_batch.hpp>
#include <sluice/engine/onnxruntime_decoder.hpp>
#include <sluice/engine/onnxruntime_graph.hpp>
#include <sluice/engine/onnxruntime_roles.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <onnxruntime_cxx_api.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// An encoder and a decoder, as Optimum exports them. The source is what the encoder takes: its tokens, with the eos that most
/// models want at its end. What was computed of a source is repeated for each of its slots, as such graphs demand, but gathered
/// only when the slots' sentences change.
///
/// encode() may run in another thread. Never claims `blocks` by itself, since a graph does not show whether its decoder has a
/// causal mask; OnnxOptions::abilities does.
template <class Answer = Scores<float>>
class OnnxEncoderDecoder : public OnnxDecoder<Answer> {
  using Base = OnnxDecoder<Answer>;
  using Base::roles_;

 public:
  using Source = std::vector<Token>;
  /// What the encoder makes of a batch of sources.
  struct Encoded {
    std::vector<std::shared_ptr<Ort::Value>> memory{};  ///< by input of the decoder; null: the decoder makes it
    std::vector<std::int32_t> lengths{};
    std::int64_t width = 0;  ///< positions of `memory`
  };

  /// \throws std::invalid_argument  for graphs that do not do this, naming graph and input, and options out of range
  explicit OnnxEncoderDecoder(OnnxGraphs graphs, OnnxOptions const& options = {})
      : Base(std::make_unique<detail::OnnxRoles>(std::move(graphs), options, std::same_as<Answer, Hidden<float>>),
             options) {
    require(static_cast<bool>(roles_->encoder), "onnxruntime: graphs.encoder", "null", "must be a session");
    require(!roles_->memory.empty(), "onnxruntime: " + roles_->decoder.name(), "its inputs",
            "take nothing that the encoder makes");
  }

  /// \throws std::invalid_argument  for an empty source, and for a negative token
  /// \throws std::runtime_error     for an error of ONNX Runtime, such as a token outside the encoder's vocabulary
  Encoded encode(std::span<Source const* const> sources) const {
    Encoded result;
    for (auto const* const source : sources) {
      require(!source->empty(), "onnxruntime: tokens of the source", 0, "must be at least 1");
      for (auto const token : *source)
        require(token >= 0, "onnxruntime: token of the source", token, "must not be negative");
      result.lengths.push_back(static_cast<std::int32_t>(source->size()));
      result.width = (std::max)(result.width, std::int64_t{result.lengths.back()});
    }
    if (roles_->encoder_mask != nullptr || sources.size() == 1) {
      result.memory = run(sources, result.width);
      return result;
    }
    std::vector<std::vector<std::shared_ptr<Ort::Value>>> alone;  // nothing tells the encoder what is padding
    for (auto const& source : sources) alone.push_back(run({&source, 1}, std::ssize(*source)));
    result.memory.resize(roles_->memory.size());
    for (std::size_t k = 0; k < result.memory.size(); ++k) {
      if (roles_->memory[k].encoder.empty()) continue;
      std::vector<detail::OnnxPiece> pieces;
      for (std::size_t i = 0; i < alone.size(); ++i)
        pieces.push_back({alone[i][k].get(), 1, result.lengths[i], 0, 0, result.lengths[i]});
      result.memory[k] = detail::onnx_gather(roles_->layouts.memory[k], pieces, result.width, false);
    }
    return result;
  }

  void start(Encoded& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    std::vector<std::int32_t> lengths;
    for (auto const item : items) lengths.push_back(encoded.lengths.at(static_cast<std::size_t>(item)));
    auto const width = std::int64_t{*std::ranges::max_element(lengths)};
    std::vector<std::shared_ptr<Ort::Value>> memory(encoded.memory.size());
    for (std::size_t k = 0; k < memory.size(); ++k) {
      if (encoded.memory[k] == nullptr) continue;
      std::vector<detail::OnnxPiece> pieces;
      for (std::size_t i = 0; i < items.size(); ++i)
        pieces.push_back(
            {encoded.memory[k].get(), std::ssize(encoded.lengths), encoded.width, items[i], 0, lengths[i]});
      memory[k] = detail::onnx_gather(roles_->layouts.memory[k], pieces, width, false);
    }
    this->begin(slot_numbers, lengths, width, std::move(memory));
  }
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    this->release(slot_numbers);
    auto encoded = encode(sources);
    this->begin(slot_numbers, encoded.lengths, encoded.width, std::move(encoded.memory));
  }

 private:
  std::vector<std::shared_ptr<Ort::Value>> run(std::span<Source const* const> sources, std::int64_t width) const {
    std::vector<std::int64_t> const shape{std::ssize(sources), width};
    auto const length = [&](std::int64_t i) { return std::ssize(*sources[static_cast<std::size_t>(i / width)]); };
    auto const tokens = detail::onnx_integers(*roles_->encoder_tokens, shape, [&](std::int64_t i) {
      return i % width < length(i)
                 ? (*sources[static_cast<std::size_t>(i / width)])[static_cast<std::size_t>(i % width)]
                 : 0;
    });
    detail::OnnxSession::Feeds feeds{{roles_->encoder_tokens, &tokens}};
    Ort::Value mask{nullptr};
    if (roles_->encoder_mask != nullptr) {
      mask = detail::onnx_integers(*roles_->encoder_mask, shape,
                                   [&](std::int64_t i) { return i % width < length(i) ? 1 : 0; });
      feeds.emplace_back(roles_->encoder_mask, &mask);
    }
    std::vector<std::string> wanted;
    for (auto const& one : roles_->memory)
      if (!one.encoder.empty()) wanted.push_back(one.encoder);
    auto outputs = roles_->encoder.run(feeds, wanted);
    std::vector<std::shared_ptr<Ort::Value>> result(roles_->memory.size());
    auto next = outputs.begin();
    for (std::size_t k = 0; k < result.size(); ++k) {
      auto const& layout = roles_->layouts.memory[k];
      if (roles_->memory[k].encoder.empty()) continue;
      roles_->encoder.expect(roles_->memory[k].encoder, *next, layout.type, layout.of(std::ssize(sources), width));
      result[k] = std::make_shared<Ort::Value>(std::move(*next++));
    }
    return result;
  }
};

}  // namespace sluice::inline v0
