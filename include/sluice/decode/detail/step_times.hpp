// SPDX-License-Identifier: Apache-2.0
/// \file
/// Learns from the steps what guesses cost on this machine.
#pragma once

#include <sluice/language.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace sluice::inline v0::detail {

/// A table of measured times: of steps without guesses, by the number of sentences; and what guesses add to them, by guesses per
/// sentence. Nothing is fitted: what five tokens of a sentence cost beside one depends on caches and instructions, and is no line.
/// 20 kB; no allocation.
class StepTimes {
 public:
  static constexpr std::size_t most = 16;  ///< guesses per sentence that are told apart

  /// \param seconds  the time of a step, and of making the guesses that it verified
  /// \param guesses  of all sentences
  SLUICE_LAZY void note(double seconds, std::size_t sentences, std::size_t guesses) {
    if (!(seconds > 0) || sentences == 0) return;
    auto& row = rows_[row_of(sentences)];
    if (guesses == 0) return row[0].note(seconds, 1, 2 * row[0].value);
    auto const plain = this->plain(sentences);
    if (plain < 0) return;  // nothing to compare with
    auto const each = static_cast<double>(guesses) / static_cast<double>(sentences);
    auto const number = std::clamp(std::round(each), 1.0, static_cast<double>(most));
    auto& cell = row[static_cast<std::size_t>(number)];
    // In proportion, where some sentences had more guesses than others. Of few guesses little can be learnt.
    auto const most_likely = 2 * (1 + (std::max)(cell.value, 0.0)) - 1;
    cell.note((seconds / plain - 1) * (std::max)(number / each, 0.5), (std::min)(each, 1.0), most_likely);
  }

  /// Seconds of a step of so many sentences without guesses; < 0: not known.
  SLUICE_LAZY double plain(std::size_t sentences) const {
    auto const& cell = rows_[row_of(sentences)][0];
    return cell.weight >= 2 ? cell.value : -1;
  }

  /// What so many guesses for each sentence add to such a step, as a fraction of it; < 0: not known. From about as many sentences,
  /// if it was measured for these alone. O(1).
  SLUICE_LAZY double added(std::size_t sentences, std::size_t guesses) const {
    auto const* const cell = nearest(sentences, guesses);
    return cell == nullptr ? -1 : (std::max)(cell->value, 0.0);
  }
  /// Steps from which that is known, at most 16.
  SLUICE_LAZY double weight(std::size_t sentences, std::size_t guesses) const {
    auto const* const cell = nearest(sentences, guesses);
    return cell == nullptr ? 0 : cell->weight;
  }

  /// Makes room for news: what guesses add counts for no more than two steps.
  SLUICE_LAZY void fade() {
    for (auto& row : rows_)
      for (std::size_t g = 1; g <= most; ++g) row[g].weight = (std::min)(row[g].weight, 2.0);
  }

 private:
  struct Cell {
    double value = 0, weight = 0;

    /// \param bound  what is above it was an outlier: another program had the processor
    void note(double sample, double its_weight, double bound) {
      if (weight >= 2) sample = (std::min)(sample, bound);
      weight = (std::min)(weight + its_weight, 16.0);
      // The first steps of a kind are slower: pages and caches are cold.
      if (weight <= 3) value = weight <= its_weight ? sample : (std::min)(value, sample);
      else value += (sample - value) * its_weight / weight;
    }
  };

  /// Rows: 1 to 7 sentences, then four per octave.
  static std::size_t row_of(std::size_t sentences) {
    if (sentences < 8) return (std::max)(sentences, std::size_t{1}) - 1;
    std::size_t octave = 0;
    while (sentences >> octave >= 16) ++octave;
    return (std::min)(7 + 4 * octave + ((sentences >> (octave + 1)) & 3), row_count - 1);
  }
  /// The nearest cell that holds something, at most an octave away.
  SLUICE_LAZY Cell const* nearest(std::size_t sentences, std::size_t guesses) const {
    auto const g = std::clamp(guesses, std::size_t{1}, most);
    auto const row = row_of(sentences);
    for (std::size_t d = 0; d <= 4; ++d) {
      if (row + d < row_count && rows_[row + d][g].weight > 0) return &rows_[row + d][g];
      if (row >= d && rows_[row - d][g].weight > 0) return &rows_[row - d][g];
    }
    return nullptr;
  }

  static constexpr std::size_t row_count = 72;
  std::array<std::array<Cell, most + 1>, row_count> rows_{};
};

}  // namespace sluice::inline v0::detail
