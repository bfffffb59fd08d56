// SPDX-License-Identifier: Apache-2.0
/// \file
/// Predictor and joiner of a transducer (RNN-T) over the frames of Reader.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/transducer.hpp>
#include <sluice/output/packed_matrix.hpp>

#include <text/lines.hpp>
#include <transformer/safetensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <read_line/gru.hpp>
#include <read_line/reader.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace read_line {

/// As train_rnnt.py defines it, a sluice::TransducerNetwork. The predictor is a GRU over the labels so far. The joiner adds what it makes of
/// a frame and of the predictor's state, takes the tanh, and makes labels of it. To that it adds the CTC head's logits of the frame, a row of
/// a table for the last label, and to the blank's the probability that the CTC head gives to the last label, times a number.
class RnntNetwork {
 public:
  using Source = Frames const*;  ///< of Reader; must live until its sentence has ended

  /// \param labels  of the Reader
  /// \throws text::InputError  naming the file and what is wrong with it
  RnntNetwork(std::filesystem::path const& file, std::vector<std::string> const& labels) : labels_(std::ssize(labels)) {
    if (!std::filesystem::is_regular_file(file)) throw text::InputError(file.string() + ": no such file");
    try {
      load(sluice::example::Safetensors(file), labels);
    } catch (std::runtime_error const& error) {
      throw text::InputError(error.what());
    }
  }

  sluice::TransducerTokens tokens() const { return {.labels = static_cast<std::int32_t>(labels_), .blank = 0}; }
  std::int32_t frames(Source const& source) const { return static_cast<std::int32_t>(source->count); }

  void start(std::span<Source const* const> sources, std::span<std::int32_t const> utterances) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const& frames = **sources[i];
      if (size(utterances[i]) >= utterances_.size()) utterances_.resize(size(utterances[i]) + 1);
      auto& one = utterances_[size(utterances[i])];
      one.logits = frames.logits.data();
      one.said = probabilities(frames);
      one.joined.resize(size(frames.count * width));
      frame_.multiply(frames.hidden_view(), {one.joined.data(), frames.count, width, width});
    }
  }
  void release(std::span<std::int32_t const> utterances) {
    for (auto const utterance : utterances) utterances_[size(utterance)] = {};
  }

  void predict(std::span<sluice::PredictorRow const> rows) {
    auto const count = std::ssize(rows);
    std::int32_t last = 0;
    for (auto const& row : rows) last = (std::max)(last, row.to);
    if (size((last + 1) * width) > states_.size())
      states_.resize(size((last + 1) * width)), joined_.resize(states_.size()), last_.resize(size(last + 1));
    before_.assign(size(count * width), 0.0f), gates_.resize(size(count * 3 * width));
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].from >= 0)
        std::copy_n(states_.data() + rows[i].from * width, width, before_.data() + i * size(width));
    state_.multiply({before_.data(), count, width, width}, {gates_.data(), count, 3 * width, 3 * width});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto* const h = before_.data() + i * size(width);
      gru_step(inputs_.data() + rows[i].label * 3 * width, gates_.data() + i * size(3 * width), h, h, width);
      std::copy_n(h, width, states_.data() + rows[i].to * width);
      last_[size(rows[i].to)] = rows[i].label;
    }
    gates_.resize(size(count * width));
    joiner_.multiply({before_.data(), count, width, width}, {gates_.data(), count, width, width});
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::copy_n(gates_.data() + i * size(width), width, joined_.data() + rows[i].to * width);
  }

  sluice::Scores<float> join(std::span<sluice::JoinerRow const> rows) {
    auto const count = std::ssize(rows);
    before_.resize(size(count * width)), logits_.resize(size(count * labels_));
    auto* to = before_.data();
    for (auto const& row : rows) {
      auto const* const frame = utterances_[size(row.utterance)].joined.data() + row.frame * width;
      auto const* const state = joined_.data() + row.state * width;
      for (std::ptrdiff_t i = 0; i < width; ++i) *to++ = std::tanh(frame[i] + state[i]);
    }
    out_.multiply({before_.data(), count, width, width}, {logits_.data(), count, labels_, labels_});
    auto* line = logits_.data();
    for (auto const& row : rows) {
      auto const& utterance = utterances_[size(row.utterance)];
      auto const* const ctc = utterance.logits + row.frame * labels_;
      auto const label = last_[size(row.state)];
      auto const* const last = table_.data() + label * labels_;
      *line += written_ * utterance.said[size(row.frame * labels_ + label)];  // the blank's
      for (std::ptrdiff_t i = 0; i < labels_; ++i) *line++ += ctc[i] + last[i];
    }
    return sluice::scores(logits_.data(), count, labels_);
  }

 private:
  static constexpr std::ptrdiff_t width = Reader::width;  // of predictor and joiner
  static constexpr std::ptrdiff_t embedding = 64;

  struct Utterance {
    float const* logits = nullptr;  // of CTC
    std::vector<float> said;        // [frames, labels]: probabilities of CTC; of the blank 0
    std::vector<float> joined;      // [frames, width]: what the joiner makes of them
  };

  template <class Number>
  static std::size_t size(Number n) {
    return static_cast<std::size_t>(n);
  }

  std::vector<float> probabilities(Frames const& frames) const {
    auto all = frames.logits;
    for (auto line = all.begin(); line != all.end(); line += labels_) {
      auto const top = *std::max_element(line, line + labels_);
      float sum = 0;
      for (auto x = line; x != line + labels_; ++x) sum += * x = std::exp(*x - top);
      for (auto x = line; x != line + labels_; ++x) *x /= sum;
      *line = 0;
    }
    return all;
  }

  void load(sluice::example::Safetensors const& file, std::vector<std::string> const& labels) {
    std::string all;
    for (auto const& label : labels) all += label;
    auto const alphabet = file.metadata().find("alphabet");
    if (alphabet == file.metadata().end() || alphabet->second != all)
      throw std::runtime_error("the alphabet of rnnt.safetensors is not that of model.safetensors");
    auto const layer = [&](std::vector<float> const& weight, std::ptrdiff_t in, std::vector<float> const& bias) {
      return sluice::PackedMatrix({weight.data(), std::ssize(weight) / in, in, in}, bias);
    };
    // What the GRU makes of each label is computed once.
    auto const words = file.floats("embedding.weight", {labels_, embedding});
    auto const input = layer(file.floats("gru.weight_ih_l0", {3 * width, embedding}), embedding,
                             file.floats("gru.bias_ih_l0", {3 * width}));
    inputs_.resize(size(labels_ * 3 * width));
    input.multiply({words.data(), labels_, embedding, embedding}, {inputs_.data(), labels_, 3 * width, 3 * width});
    state_ =
        layer(file.floats("gru.weight_hh_l0", {3 * width, width}), width, file.floats("gru.bias_hh_l0", {3 * width}));
    frame_ = layer(file.floats("frame.weight", {width, 2 * width}), 2 * width, file.floats("frame.bias", {width}));
    joiner_ = layer(file.floats("state.weight", {width, width}), width, {});
    written_ = file.floats("written", {1}).front();
    table_ = file.floats("last.weight", {labels_, labels_});
    out_ = layer(file.floats("out.weight", {labels_, width}), width, file.floats("out.bias", {labels_}));
  }

  std::ptrdiff_t labels_;
  float written_ = 0;
  sluice::PackedMatrix state_, frame_, joiner_, out_;
  std::vector<float> inputs_;  // [label, 3 width]: reset, update, new
  std::vector<float> table_;   // [last label, label]
  std::vector<Utterance> utterances_;
  std::vector<float> states_, joined_;          // [state, width]: of the GRU, and what the joiner makes of it
  std::vector<sluice::Token> last_;             // [state]
  std::vector<float> before_, gates_, logits_;  // scratch
};

}  // namespace read_line
