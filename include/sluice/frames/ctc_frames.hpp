// SPDX-License-Identifier: Apache-2.0
/// \file
/// A matrix of frames as a model, for CTC.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/detail/frame_sources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0 {

/// The vocabulary of a CTC model: `size` labels, the blank among them. Sentences end where their frames do, so there is no eos; bos is
/// the blank, by which searches over frames know it.
/// \throws std::invalid_argument  for a blank outside the vocabulary
template <class = void>
Vocabulary ctc_vocabulary(std::int32_t size, Token blank) {
  require(size >= 2, "size", size, "a blank and at least one label are needed");
  require(blank >= 0 && blank < size, "blank", blank, "is outside the vocabulary of " + std::to_string(size));
  return {.size = size, .bos = blank};
}
/// The same vocabulary as rules and language models in a CtcBeamSearch see it: the blank, which no text has, stands for its end.
/// For TokenTrie and others that are made for a vocabulary.
template <class = void>
Vocabulary ctc_text_vocabulary(std::int32_t size, Token blank) {
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
  template <class = void>
  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    sources_.start(sources, slot_numbers, vocabulary_.size);
  }
  void release(std::span<Slot const> slot_numbers) { sources_.release(slot_numbers); }

  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  template <class = void>
  Scores<T> step(std::span<Row const> rows) {
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

}  // namespace sluice::inline v0
