// SPDX-License-Identifier: Apache-2.0
/// \file
/// A matrix of frames as a model, for ASG: without a blank, with scores of transitions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// Frames of a model that was trained with the auto segmentation criterion (Collobert et al. 2016, "Wav2Letter: an End-to-End ConvNet-based
/// Speech Recognition System"; AutoSegCriterion of wav2letter and flashlight), as a Model: a sentence's source is its matrix of scores,
/// [frames, N], unnormalised. A text is the labels of the frames, equal neighbours joined; there is no blank, so a text has no equal
/// neighbours (see pack_repetitions()). An alignment scores the sum of its frames, and of the transitions from each frame's label to
/// that of the next.
///
/// For CtcBeamSearch with the rule AsgTransitions, both made with the same transitions, and for rules and language models beside it. The
/// vocabulary has one token more, N, which is on no frame and stands where CTC has its blank: it is the end for what sees texts. Here a
/// label is charged on each frame with the transition to itself; the rule corrects that where a label begins.
///
/// Does not copy a source, which must live until its sentence has ended. A frame is copied once when it is read. A slot holds a position,
/// so forks and roll-backs cost nothing.
///
/// \tparam T  float, or a 16-bit float type
template <class T = float>
class AsgFrames {
 public:
  using Source = MatrixView<T const>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  /// \param transitions  [N, N]: the score of label `column` before label `row`
  /// \throws std::invalid_argument  for a matrix that is not square, or a transition of a label to itself that is no number
  template <class = void>
  explicit AsgFrames(MatrixView<float const> const& transitions) {
    require(transitions.rows >= 1 && transitions.rows == transitions.columns, "transitions",
            std::to_string(transitions.rows) + " x " + std::to_string(transitions.columns),
            "must be a square of the number of labels");
    auto const labels = static_cast<std::int32_t>(transitions.rows);
    vocabulary_.size = labels + 1, vocabulary_.bos = labels;
    for (std::int32_t i = 0; i < labels; ++i) {
      stays_.push_back(transitions[i][static_cast<std::size_t>(i)]);
      require(std::isfinite(stays_.back()), "transitions: of label " + std::to_string(i) + " to itself", stays_.back(),
              "must be a number");
    }
  }

  Vocabulary const& vocabulary() const { return vocabulary_; }
  std::int32_t source_length(Source const& source) const { return static_cast<std::int32_t>(source.rows); }

  /// \throws std::invalid_argument  for a source without frames, or of another number of labels
  template <class = void>
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const& source = *sources[i];
      require(source.rows >= 1, "frames", source.rows, "there must be at least one");
      require(source.columns == std::ssize(stays_), "source.columns", source.columns,
              "must be the number of labels, " + std::to_string(stays_.size()));
      require(source.stride >= source.columns, "source.stride", source.stride, "must be at least source.columns");
      auto const slot = static_cast<std::size_t>(slot_numbers[i]);
      if (slot >= sources_.size()) sources_.resize(slot + 1, nullptr);
      sources_[slot] = &source;
    }
  }
  void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers)
      if (static_cast<std::size_t>(slot) < sources_.size()) sources_[static_cast<std::size_t>(slot)] = nullptr;
  }

  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  template <class = void>
  Scores<float> step(std::span<Row const> rows) {
    lines_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto const from = static_cast<std::size_t>(row.from), to = static_cast<std::size_t>(row.to);
      if (to >= sources_.size()) sources_.resize(to + 1, nullptr);
      sources_[to] = sources_[from];
      auto const& source = *sources_[to];
      auto const end = std::ptrdiff_t{row.length} + std::ssize(row.tokens);
      if (end > source.rows) require(false, "frame", end, "the source has " + std::to_string(source.rows));
      lines += row.lines;
      for (auto frame = end - std::ptrdiff_t{row.lines}; frame < end; ++frame) {
        auto const line = source[frame];
        for (std::size_t i = 0; i < stays_.size(); ++i) lines_.push_back(static_cast<float>(line[i]) + stays_[i]);
        lines_.push_back(-HUGE_VALF);
      }
    }
    return scores<float>(lines_.data(), lines, vocabulary_.size, Kind::log_probs);
  }

 private:
  Vocabulary vocabulary_{};
  std::vector<float> stays_;            // [N]: the transition of each label to itself
  std::vector<Source const*> sources_;  // [slot]
  std::vector<float> lines_;            // [lines, N + 1]
};

}  // namespace sluice::inline v0
