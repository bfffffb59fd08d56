// SPDX-License-Identifier: Apache-2.0
/// \file
/// Policies of simultaneous translation: how much of an output may be committed while its source is still growing.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0 {

/// What a policy sees: outputs for one source, each decoded after more of the source had been read.
struct Readings {
  std::span<std::vector<Token> const>
      outputs;  ///< newest last; empty if there is none. All begin with the committed tokens; without an end
  std::span<std::size_t const>
      cuts;            ///< ascending: numbers of tokens of the newest output after which a unit (a word) is complete
  std::size_t source;  ///< units of the source that had been read for the newest output
};

// clang-format off
/// How much may be committed. Committed tokens are never taken back; Commitment enforces that, so a policy need not.
///
///  - `outputs()`: the most outputs that it wants to see, >= 1;
///  - `committable(readings)`: how many tokens of the newest output may be committed, including those already
///    committed; it is rounded down to whole units;
///  - `check()` throws std::invalid_argument for invalid options, naming the option and its value.
template <class P>
concept CommitPolicy = std::copyable<P> && requires(P const& policy, Readings const& readings) {
  { policy.outputs() } -> std::convertible_to<std::size_t>;
  { policy.committable(readings) } -> std::convertible_to<std::size_t>;
  policy.check();
};
// clang-format on

/// Commits the longest common prefix of the last n outputs. Local agreement, LA-n: Liu, Spanakis and Niehues (2020,
/// "Low-latency sequence-to-sequence speech recognition and translation by partial hypothesis selection"); for any n
/// Polák et al. (2022, "CUNI-KIT system for simultaneous speech translation task at IWSLT 2022").
struct LocalAgreement {
  std::int32_t n = 2;  ///< outputs that must agree; 1: every output is committed unchanged

  std::size_t outputs() const { return static_cast<std::size_t>(n); }
  std::size_t committable(Readings const& readings) const {
    if (readings.outputs.size() < outputs()) return 0;
    auto const last = readings.outputs.last(outputs());
    auto common = last.back().size();
    for (auto const& output : last.first(last.size() - 1)) {
      auto const [here, there] = std::mismatch(output.begin(), output.end(), last.back().begin(), last.back().end());
      common = (std::min)(common, static_cast<std::size_t>(here - output.begin()));
    }
    return common;
  }
  void check() const { require(n >= 1, "n", n, "must be at least 1"); }
};

/// Commits all of the newest output except its last tokens, which more source is most likely to change. Hold-n: Liu,
/// Spanakis and Niehues (2020, as above).
struct HoldBack {
  std::int32_t n = 4;  ///< tokens

  std::size_t outputs() const { return 1; }
  std::size_t committable(Readings const& readings) const {
    auto const size = readings.outputs.back().size();
    return size - (std::min)(size, static_cast<std::size_t>(n));
  }
  void check() const { require(n >= 0, "n", n, "must not be negative"); }
};

/// Waits for k units of the source, then commits one output unit for each unit read: unit t is written when k + t - 1
/// have been read. Ma et al. (2019, "STACL", section 3). With a model trained on whole sentences, this is their
/// test-time wait-k.
struct WaitK {
  std::int32_t k = 3;

  /// The most output units that may have been written after reading `source` units.
  std::size_t allowed(std::size_t source) const {
    auto const first = static_cast<std::size_t>(k);
    return source < first ? 0 : source - first + 1;
  }
  std::size_t outputs() const { return 1; }
  std::size_t committable(Readings const& readings) const {
    auto const units = (std::min)(allowed(readings.source), readings.cuts.size());
    return units == 0 ? 0 : readings.cuts[units - 1];
  }
  void check() const { require(k >= 1, "k", k, "must be at least 1"); }
};

}  // namespace sluice::inline v0
