// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which matrix of frames each slot reads, for models whose sources are matrices.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Refers to the matrices; copies nothing.
/// \tparam T  of the numbers
template <class T>
class FrameSources {
 public:
  using Source = MatrixView<T const>;

  /// \throws std::invalid_argument  for a source without frames, or of another number of labels
  SLUICE_LAZY void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers,
                         std::ptrdiff_t labels) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const& source = *sources[i];
      require(source.rows >= 1, "frames", source.rows, "there must be at least one");
      require(source.columns == labels, "source.columns", source.columns,
              "must be the number of labels, " + std::to_string(labels));
      require(source.stride >= source.columns, "source.stride", source.stride, "must be at least source.columns");
      at(slot_numbers[i]) = &source;
    }
  }
  SLUICE_LAZY void release(std::span<Slot const> slot_numbers) {
    for (auto const slot : slot_numbers) at(slot) = nullptr;
  }

  /// The row's slot reads on where the one that it continues was.
  /// \throws std::invalid_argument  for a row that goes beyond the last frame
  SLUICE_LAZY void follow(Row const& row) {
    auto const* const source = at(row.from);
    auto const end = std::ptrdiff_t{row.length} + std::ssize(row.tokens);
    if (end > source->rows) require(false, "frame", end, "the source has " + std::to_string(source->rows));
    at(row.to) = source;
  }
  Source const& operator[](Slot slot) const { return *sources_[static_cast<std::size_t>(slot)]; }

  /// The first frame whose line a row asks for; it asks for `row.lines`.
  static std::ptrdiff_t first_line(Row const& row) {
    return std::ptrdiff_t{row.length} + std::ssize(row.tokens) - std::ptrdiff_t{row.lines};
  }

 private:
  Source const*& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= sources_.size()) sources_.resize(i + 1, nullptr);
    return sources_[i];
  }

  std::vector<Source const*> sources_;  // [slot]
};

}  // namespace sluice::inline v0::detail
