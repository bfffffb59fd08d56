// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model that computes nothing and says how long it would have taken.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>

#include "cost_model.hpp"
#include "script.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace simulation {

/// The answer of a simulated step: empty lines, a given number of them.
struct Silence {
  std::ptrdiff_t rows = 0;
};

/// Adds up the time of encoder and steps.
/// \tparam Ragged  whether rows of different lengths may share a step
template <bool Ragged>
class SimulatedModel {
 public:
  using Source = Script const*;
  static constexpr sluice::Abilities abilities{.ragged = Ragged};

  /// The cost must outlive the model.
  explicit SimulatedModel(Cost const& cost) : cost_(cost) {}

  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  std::int32_t source_length(Source const& source) const { return source->source; }

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const>) {
    Load load{.rows = std::ssize(sources)};
    for (auto const* source : sources) {
      load.longest = std::max(load.longest, (*source)->source);
      load.length += (*source)->source;
    }
    auto const time = cost_.encode(load);
    now_ += time, encoder_ += time;
  }

  Silence step(std::span<sluice::Row const> rows) {
    load_ = {.rows = std::ssize(rows)};
    for (auto const& row : rows) {
      auto const length = row.length + static_cast<std::int32_t>(row.tokens.size());
      load_.longest = std::max(load_.longest, length);
      load_.length += length;
    }
    auto const time = cost_.step(load_);
    now_ += time, decoder_ += time;
    lengths_ += static_cast<double>(load_.longest);
    return {load_.rows};
  }

  double now() const { return now_; }          ///< virtual seconds
  double encoder() const { return encoder_; }  ///< of these, in start
  double decoder() const { return decoder_; }  ///< of these, in step
  double lengths() const { return lengths_; }  ///< the longest row's tokens, summed over steps
  Load const& load() const { return load_; }   ///< of the last step
  /// Advances the clock to `time` without work.
  void wait(double time) { now_ = std::max(now_, time); }

 private:
  Cost const& cost_;
  Load load_;
  double now_ = 0, encoder_ = 0, decoder_ = 0, lengths_ = 0;
};

/// An expander that returns empty lists.
class NoCandidates {
 public:
  sluice::Expansion expand(Silence const& answer, std::span<sluice::Query const>, std::span<sluice::Group const>) {
    auto const lines = static_cast<std::size_t>(answer.rows);
    if (entries_.size() < lines) entries_.resize(lines);
    return {std::span(entries_).first(lines), {}, {}};
  }

 private:
  std::vector<sluice::Expansion::Entry> entries_;
};

}  // namespace simulation
