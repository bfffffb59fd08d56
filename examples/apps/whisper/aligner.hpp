// SPDX-License-Identifier: Apache-2.0
/// \file
/// When the tokens of a window were said, by the decoder's attention to the sound.
#pragma once

#include <sluice/engine/onnxruntime.hpp>

#include <text/lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <whisper/vocabulary.hpp>
#include <whisper/word_times.hpp>

namespace whisper {

/// Runs the decoder once over a window's text, for what it attends to.
class Aligner {
 public:
  /// \throws text::InputError  if the graph does not say it
  explicit Aligner(sluice::OnnxGraphs const& graphs) : session_(graphs.decoder.session) {
    Ort::AllocatorWithDefaultOptions allocator;
    for (std::size_t i = 0; i < session_->GetOutputCount(); ++i)
      if (std::string_view(session_->GetOutputNameAllocated(i, allocator).get()) == "cross_attention") return;
    throw text::InputError(
        "--word-timestamps: decoder_model.onnx has no output cross_attention: tools/fetch-whisper makes it anew");
  }

  /// \param memory  keys and values of the window, in the order of the decoder's inputs
  /// \param task    the prompt without text: the start, a language, a task
  /// \param tokens  text; not empty
  /// \param frames  of sound in the window
  TokenTimes operator()(std::span<std::shared_ptr<Ort::Value> const> memory, std::vector<Token> const& task,
                        std::span<Token const> tokens, std::size_t frames, Vocabulary const& vocabulary) const {
    auto fed = task;
    fed.push_back(vocabulary.no_timestamps);
    fed.insert(fed.end(), tokens.begin(), tokens.end());
    fed.push_back(vocabulary.eot);
    auto const outputs = run(memory, fed);
    auto const shape = outputs[0].GetTensorTypeAndShapeInfo().GetShape();
    auto const width = static_cast<std::size_t>(shape[3]);
    Attention scores{.heads = static_cast<std::size_t>(shape[1]),
                     .lines = fed.size(),
                     .frames = std::clamp(frames / 2, std::size_t{1}, width)};
    scores.numbers.reserve(scores.heads * scores.lines * scores.frames);
    auto const* const from = outputs[0].GetTensorData<float>();
    for (std::size_t i = 0; i < scores.heads * scores.lines; ++i)
      scores.numbers.insert(scores.numbers.end(), from + i * width, from + i * width + scores.frames);
    auto const lines = scores.lines, length = scores.frames, first = task.size();
    auto const all = prominence(std::move(scores));
    TokenTimes found;
    for (auto const frame :
         warp(std::span(all).subspan(first * length, (lines - first - 1) * length), lines - first - 1, length))
      found.begins.push_back(0.02 * static_cast<double>(frame));
    auto const* const logits = outputs[1].GetTensorData<float>();
    auto const size = static_cast<std::size_t>(outputs[1].GetTensorTypeAndShapeInfo().GetShape().back());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto const line = std::span(logits + (first + i) * size, static_cast<std::size_t>(vocabulary.eot));
      auto const best = static_cast<double>(*std::max_element(line.begin(), line.end()));
      double sum = 0;
      for (auto const x : line) sum += std::exp(static_cast<double>(x) - best);
      found.probabilities.push_back(std::exp(static_cast<double>(line[static_cast<std::size_t>(tokens[i])]) - best) /
                                    sum);
    }
    return found;
  }

 private:
  std::vector<Ort::Value> run(std::span<std::shared_ptr<Ort::Value> const> memory,
                              std::vector<Token> const& fed) const {
    Ort::AllocatorWithDefaultOptions allocator;
    auto const count = static_cast<std::int64_t>(fed.size());
    Ort::IoBinding binding(*session_);
    std::size_t next = 0;
    for (std::size_t i = 0; i < session_->GetInputCount(); ++i) {
      std::string const name = session_->GetInputNameAllocated(i, allocator).get();
      if (name.find(".encoder.") != std::string::npos) {
        binding.BindInput(name.c_str(), *memory[next++]);
        continue;
      }
      auto const type = session_->GetInputTypeInfo(i);
      auto const info = type.GetTensorTypeAndShapeInfo();
      auto shape = info.GetShape();
      if (!shape.empty()) shape[0] = 1;
      if (shape.size() == 4) shape[2] = 0;  // no past
      if (shape.size() == 2) shape[1] = count;
      auto value = Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), info.GetElementType());
      if (shape.size() < 4) {
        auto* const to = value.GetTensorMutableData<std::int64_t>();
        for (std::int64_t k = 0; k < (shape.empty() ? 1 : count); ++k)
          to[k] = name == "input_ids"        ? fed[static_cast<std::size_t>(k)]
                  : name == "attention_mask" ? 1
                  : name == "position_ids"   ? k
                                             : count;  // num_logits_to_keep
      }
      binding.BindInput(name.c_str(), value);
    }
    auto const where = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    for (auto const* const output : {"cross_attention", "logits"}) binding.BindOutput(output, where);
    session_->Run(Ort::RunOptions{nullptr}, binding);
    binding.SynchronizeOutputs();
    return binding.GetOutputValues();
  }

  std::shared_ptr<Ort::Session> session_;
};

}  // namespace whisper
