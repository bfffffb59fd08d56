// SPDX-License-Identifier: Apache-2.0
/// \file
/// A matrix of frames as a model: for CTC; for ASG, without a blank, with scores of transitions and labels that stand for repetitions.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/frame_sources.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// The vocabulary of a CTC model: `size` labels, the blank among them. Sentences end where their frames do, so there is no eos; bos is
/// the blank, by which searches over frames know it.
/// \throws std::invalid_argument  for a blank outside the vocabulary
SLUICE_LAZY Vocabulary ctc_vocabulary(std::int32_t size, Token blank) {
  require(size >= 2, "size", size, "a blank and at least one label are needed");
  require(blank >= 0 && blank < size, "blank", blank, "is outside the vocabulary of " + std::to_string(size));
  return {.size = size, .bos = blank};
}
/// The same vocabulary as rules and language models in a CtcBeamSearch see it: the blank, which no text has, stands for its end.
/// For TokenTrie and others that are made for a vocabulary.
SLUICE_LAZY Vocabulary ctc_text_vocabulary(std::int32_t size, Token blank) {
  auto vocabulary = ctc_vocabulary(size, blank);
  vocabulary.eos = {blank};
  return vocabulary;
}

/// Frames that an acoustic or optical model has computed, as a Model: a sentence's source is its matrix of scores, [frames, V]; each
/// token fed, whichever it is, moves one frame on, and its line is that frame. For CtcBeamSearch, and any model that scores frames
/// as it goes can stand in its place: it claims ragged and blocks, has no eos, its bos is the blank, and its source_length() is the
/// number of frames.
///
/// Does not copy a source, which must live until its sentence has ended. A step of one sentence copies no frame, one of several copies
/// each once. A slot holds a position, so forks and roll-backs cost nothing.
///
/// \tparam T  float, or a 16-bit float type
template <class T = float>
class CtcFrames {
 public:
  using Source = MatrixView<T const>;
  static constexpr Abilities abilities{.ragged = true, .blocks = true, .roll_back = true};

  /// \param size   labels, the blank among them: the columns of every source
  /// \param blank  the label that means "nothing here"
  /// \param kind   what the numbers are
  /// \throws std::invalid_argument  for a blank outside the vocabulary
  explicit CtcFrames(std::int32_t size, Token blank = 0, Kind kind = Kind::logits)
      : vocabulary_(ctc_vocabulary(size, blank)), kind_(kind) {}

  Vocabulary const& vocabulary() const { return vocabulary_; }
  std::int32_t source_length(Source const& source) const { return static_cast<std::int32_t>(source.rows); }

  /// \throws std::invalid_argument  for a source without frames, or of another number of labels
  SLUICE_LAZY void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    sources_.start(sources, slot_numbers, vocabulary_.size);
  }
  void release(std::span<Slot const> slot_numbers) { sources_.release(slot_numbers); }

  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  SLUICE_LAZY Scores<T> step(std::span<Row const> rows) {
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) sources_.follow(row), lines += row.lines;
    if (rows.size() == 1) {
      auto const& source = sources_[rows[0].to];
      return scores(source.data + sources_.first_line(rows[0]) * source.stride, lines, source.columns, kind_,
                    source.stride);
    }
    auto const size = std::ptrdiff_t{vocabulary_.size};
    lines_.resize(static_cast<std::size_t>(lines * size));
    auto* line = lines_.data();
    for (auto const& row : rows) {
      auto const& source = sources_[row.to];
      for (std::ptrdiff_t i = 0; i < row.lines; ++i, line += size)
        std::copy_n(source.data + (sources_.first_line(row) + i) * source.stride, size, line);
    }
    return scores<T>(lines_.data(), lines, size, kind_);
  }

 private:
  Vocabulary vocabulary_;
  Kind kind_;
  detail::FrameSources<T> sources_;
  std::vector<T> lines_;  // [lines, V]
};

/// A spelling without equal neighbours, for models without a blank (AsgFrames): after a label, `first + i` says that it comes i + 1 times
/// more, at most `most` times (flashlight: replabels, packReplabels). "hello" is h e l 1 o.
/// \param first  the label for one repetition; the next ones are for more
/// \param most   how many such labels there are; 0: none, and equal neighbours stay
/// \throws std::invalid_argument  for `most` < 0
SLUICE_LAZY std::vector<Token> pack_repetitions(std::span<Token const> labels, Token first, std::int32_t most = 1) {
  require(most >= 0, "most", most, "must not be negative");
  std::vector<Token> packed;
  for (std::size_t i = 0; i < labels.size();) {
    std::int32_t more = 0;
    while (more < most && i + static_cast<std::size_t>(more) + 1 < labels.size() &&
           labels[i + static_cast<std::size_t>(more) + 1] == labels[i])
      ++more;
    packed.push_back(labels[i]);
    if (more > 0) packed.push_back(first + more - 1);
    i += static_cast<std::size_t>(more) + 1;
  }
  return packed;
}

/// The labels that pack_repetitions() packed. A repetition without a label before it, as a model may write it, is dropped.
SLUICE_LAZY std::vector<Token> unpack_repetitions(std::span<Token const> packed, Token first, std::int32_t most = 1) {
  std::vector<Token> labels;
  auto repeatable = false;
  for (auto const token : packed) {
    if (token < first || token - first >= most) {
      labels.push_back(token), repeatable = true;
      continue;
    }
    if (repeatable) {
      auto const label = labels.back();
      labels.insert(labels.end(), static_cast<std::size_t>(token - first) + 1, label);
    }
    repeatable = false;
  }
  return labels;
}

/// What transitions add to the texts of AsgFrames, as the rule of CtcBeamSearch: with it, a hypothesis' score sums, over its alignments,
/// the scores of frames and transitions. Between two labels of a text there is one transition, whatever the alignment; those of a label
/// to itself are charged by the model on every frame, one too many, which is taken back here when the label begins. So
/// Hypothesis::log_prob has what does not depend on how labels follow each other, and `score` has all.
///
/// A prefix costs N edits. Copies are cheap.
class AsgTransitions {
 public:
  struct State {
    Token last = -1;
  };

  /// Adds nothing.
  AsgTransitions() = default;
  /// \param transitions  [N, N]: the score of label `column` before label `row`; -infinity forbids. Those of the model
  /// \throws std::invalid_argument  for a matrix that is not square, a NaN, +infinity, or a transition of a label to itself that is no number
  SLUICE_LAZY explicit AsgTransitions(MatrixView<float const> const& transitions) {
    require(transitions.rows >= 1 && transitions.rows == transitions.columns, "transitions",
            std::to_string(transitions.rows) + " x " + std::to_string(transitions.columns),
            "must be a square of the number of labels");
    labels_ = static_cast<std::int32_t>(transitions.rows);
    std::vector<float> adds;
    for (std::int32_t label = 0; label < labels_; ++label) {
      auto const stays = transitions[label][static_cast<std::size_t>(label)];
      require(std::isfinite(stays), "transitions: of label " + std::to_string(label) + " to itself", stays,
              "must be a number");
      adds.push_back(-stays);  // the first label of a text
    }
    for (std::int32_t before = 0; before < labels_; ++before)
      for (std::int32_t label = 0; label < labels_; ++label) {
        auto const comes = transitions[label][static_cast<std::size_t>(before)];
        require(comes < HUGE_VALF, "transitions: from " + std::to_string(before) + " to " + std::to_string(label),
                comes, "must be a number, or -infinity");
        adds.push_back(comes + adds[static_cast<std::size_t>(label)]);
      }
    adds_ = std::make_shared<std::vector<float> const>(std::move(adds));
  }

  /// \throws std::invalid_argument  for a vocabulary of another number of labels
  SLUICE_LAZY State initial(Sentence const& sentence) const {
    require(adds_ == nullptr || sentence.vocabulary->size == labels_ + 1, "transitions: labels", labels_,
            "those of the frames are " + std::to_string(sentence.vocabulary->size - 1));
    return {};
  }
  State next(State, Token token) const { return {token}; }
  SLUICE_LAZY void edit(State const& state, Output const&, std::vector<Edit>& edits) const {
    if (adds_ == nullptr || state.last >= labels_) return;
    auto const* const adds = adds_->data() + std::ptrdiff_t{state.last + 1} * labels_;
    for (Token label = 0; label < labels_; ++label) edits.push_back({.token = label, .add = adds[label]});
  }

 private:
  std::shared_ptr<std::vector<float> const> adds_;  // [1 + N, N]: of each label as the first, and after each
  std::int32_t labels_ = 0;
};

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
  SLUICE_LAZY explicit AsgFrames(MatrixView<float const> const& transitions) {
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
  SLUICE_LAZY void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    sources_.start(sources, slot_numbers, std::ssize(stays_));
  }
  void release(std::span<Slot const> slot_numbers) { sources_.release(slot_numbers); }

  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  SLUICE_LAZY Scores<float> step(std::span<Row const> rows) {
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
