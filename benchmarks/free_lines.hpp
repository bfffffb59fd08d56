// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model that costs next to nothing: what rules add to a step.
#pragma once

#include <sluice/core/noise.hpp>
#include <sluice/sluice.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace free_lines {

inline constexpr std::int32_t size = 32000;

/// Every token has one of 64 lines.
class Lines {
 public:
  using Source = std::uint64_t;
  static constexpr sluice::Abilities abilities{.ragged = true};

  /// \param zipf  scores fall with the logarithm of their rank, as those of models do; else they are even, up to 20
  explicit Lines(bool zipf = false) : lines_(64 * static_cast<std::size_t>(size)) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      auto const part = static_cast<float>(sluice::derive(7, i) >> 40) * (1.0f / 16777216.0f);
      lines_[i] = zipf ? -1.2f * std::log(part + 1.0f / 64000.0f) : 20 * part;
    }
    for (std::size_t i = 1; i < lines_.size(); i += static_cast<std::size_t>(size)) lines_[i] = -50;  // no eos
  }
  sluice::Vocabulary vocabulary() const { return {.size = size, .bos = 0, .eos = {1}, .never = {0}}; }
  void start(std::span<Source const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const> rows) {
    out_.resize(rows.size() * static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto const line = static_cast<std::size_t>(rows[i].tokens.back() + 11 * rows[i].length) % 64;
      std::copy_n(lines_.begin() + static_cast<std::ptrdiff_t>(line) * size, size,
                  out_.begin() + static_cast<std::ptrdiff_t>(i) * size);
    }
    return sluice::scores(out_.data(), std::ssize(out_) / size, size);
  }

 private:
  std::vector<float> lines_, out_;
};

}  // namespace free_lines
