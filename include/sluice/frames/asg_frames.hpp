// SPDX-License-Identifier: Apache-2.0
/// \file
/// A matrix of frames as a model, for ASG: without a blank, with scores of transitions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/frame_sources.hpp>

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
    sources_.start(sources, slot_numbers, std::ssize(stays_));
  }
  void release(std::span<Slot const> slot_numbers) { sources_.release(slot_numbers); }

  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  template <class = void>
  Scores<float> step(std::span<Row const> rows) {
    lines_.clear();
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      sources_.follow(row);
      lines += row.lines;
      for (std::ptrdiff_t i = 0; i < row.lines; ++i) {
        auto const line = sources_[row.to][sources_.first_line(row) + i];
        for (std::size_t label = 0; label < stays_.size(); ++label)
          lines_.push_back(static_cast<float>(line[label]) + stays_[label]);
        lines_.push_back(-HUGE_VALF);
      }
    }
    return scores<float>(lines_.data(), lines, vocabulary_.size, Kind::log_probs);
  }

 private:
  Vocabulary vocabulary_{};
  std::vector<float> stays_;  // [N]: the transition of each label to itself
  detail::FrameSources<T> sources_;
  std::vector<float> lines_;  // [lines, N + 1]
};

}  // namespace sluice::inline v0
