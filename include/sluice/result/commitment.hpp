// SPDX-License-Identifier: Apache-2.0
/// \file
/// Simultaneous translation: the committed output for a source that is still growing, policies of how much of an output may be
/// committed, and how far a translation lags behind its source.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
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

// All measures take `delays` (for each output unit, in order: how many source units had been read when it was written)
// and `source` (the number of source units). Units are usually words. They throw std::invalid_argument for an empty
// output or source (the lag is undefined), and for delays that descend or exceed the source.

namespace detail {

inline void check_delays(std::span<std::size_t const> delays, std::size_t source) {
  require(source >= 1, "source", source, "must be at least 1");
  require(!delays.empty(), "delays", delays.size(), "numbers: no unit was written");
  for (std::size_t i = 0; i < delays.size(); ++i)
    require(delays[i] <= source && (i == 0 || delays[i - 1] <= delays[i]), "delays", delays[i],
            "must not descend, nor exceed the source");
}

}  // namespace detail

/// Average lagging, AL: the average number of source units by which the output lags behind an ideal writer that writes
/// evenly and without delay, over the units written until the whole source had been read. Ma et al. (2019, "STACL",
/// section 4). Wait-k lags by k if output and source are equally long. Negative for an output written ahead of the
/// ideal.
/// \param target  units that the ideal writes by the end; 0: as many as were written (Ma et al.). SimulEval takes the
///                reference's length (Ma et al. 2020)
inline double average_lagging(std::span<std::size_t const> delays, std::size_t source, std::size_t target = 0) {
  detail::check_delays(delays, source);
  auto const pace = static_cast<double>(source) / static_cast<double>(target == 0 ? delays.size() : target);
  double sum = 0;
  std::size_t counted = 0;
  while (counted < delays.size()) {
    sum += static_cast<double>(delays[counted]) - pace * static_cast<double>(counted);
    if (delays[counted++] == source) break;  // the whole source has been read
  }
  return sum / static_cast<double>(counted);
}

/// Length-adaptive average lagging, LAAL: average lagging behind an ideal that writes as much as the output or the
/// reference, whichever is longer, so that writing too much is not rewarded. Papi et al. (2022, "Over-generation cannot
/// be rewarded").
/// \param reference  units of the reference
inline double length_adaptive_average_lagging(std::span<std::size_t const> delays, std::size_t source,
                                              std::size_t reference) {
  return average_lagging(delays, source, (std::max)(delays.size(), reference));
}

/// Average proportion, AP: the average share of the source that had been read when a unit was written; in [0, 1], and 1
/// if everything is written at the end. Cho and Esipova (2016, "Can neural machine translation do simultaneous
/// translation?").
inline double average_proportion(std::span<std::size_t const> delays, std::size_t source) {
  detail::check_delays(delays, source);
  auto const sum = std::accumulate(delays.begin(), delays.end(), 0.0);
  return sum / (static_cast<double>(source) * static_cast<double>(delays.size()));
}

/// Differentiable average lagging, DAL: average lagging over the whole output, in which each unit takes at least the
/// time of an even pace, so that a tail written all at once counts as late. Cherry and Foster (2019, "Thinking slow
/// about latency evaluation for simultaneous machine translation").
inline double differentiable_average_lagging(std::span<std::size_t const> delays, std::size_t source) {
  detail::check_delays(delays, source);
  auto const pace = static_cast<double>(source) / static_cast<double>(delays.size());
  double sum = 0, before = 0;
  for (std::size_t i = 0; i < delays.size(); ++i) {
    auto const delay = static_cast<double>(delays[i]);
    before = i == 0 ? delay : (std::max)(delay, before + pace);
    sum += before - pace * static_cast<double>(i);
  }
  return sum / static_cast<double>(delays.size());
}

/// The committed part of one output, across decodings of a growing source. Each decoding is told to begin with it
/// (Request::prefix). It only grows.
///
///     Commitment commitment(LocalAgreement{.n = 2}, model.vocabulary().eos);
///     for (each word that comes) {
///       decode {.source = words so far, .prefix = commitment.tokens()};
///       write(commitment.update(tokens of the best hypothesis, number of words so far));
///     }
///     write(commitment.finish(tokens of the best hypothesis for all words));
///
/// Works with any search and model. An end-of-sentence token is held back until the source has ended.
template <CommitPolicy P = LocalAgreement>
class Commitment {
 public:
  /// \param ends  tokens that end an output, as in Vocabulary::eos
  /// \throws std::invalid_argument  for invalid options of the policy
  explicit Commitment(P policy = {}, std::vector<Token> ends = {})
      : policy_(std::move(policy)), ends_(std::move(ends)) {
    policy_.check();
    require(policy_.outputs() >= 1, "outputs", policy_.outputs(), "must be at least 1");
  }

  std::vector<Token> const& tokens() const { return tokens_; }  ///< all committed tokens
  bool finished() const { return finished_; }                   ///< the source has ended, and finish() was called

  /// Takes the output for a source that may still grow, and returns the newly committed tokens; valid until the next
  /// call. Every token is a unit.
  /// \param source  units of the source read so far, as the policy counts them
  /// \throws std::invalid_argument  if the output does not begin with the committed tokens, or the source has ended
  std::span<Token const> update(std::span<Token const> output, std::size_t source) {
    cuts_.resize(output.size());
    for (std::size_t i = 0; i < cuts_.size(); ++i) cuts_[i] = i + 1;
    return commit(output, source, cuts_);
  }
  /// The same with units of several tokens, such as words: only whole units are committed.
  /// \param cuts  ascending: the numbers of tokens after which a unit is complete
  std::span<Token const> update(std::span<Token const> output, std::size_t source, std::span<std::size_t const> cuts) {
    require(std::is_sorted(cuts.begin(), cuts.end()), "cuts", cuts.size(), "numbers, must ascend");
    require(cuts.empty() || cuts.back() <= output.size(), "cuts", cuts.empty() ? 0 : cuts.back(),
            "lies behind the end of the output");
    return commit(output, source, cuts);
  }

  /// Takes the output for the whole source and commits all of it, including its end.
  /// \throws std::invalid_argument  as update()
  std::span<Token const> finish(std::span<Token const> output) {
    demand(output);
    finished_ = true;
    return append(output, output.size());
  }

 private:
  void demand(std::span<Token const> output) const {
    if (finished_) throw std::invalid_argument("sluice: Commitment: its source has ended");
    if (output.size() < tokens_.size() || !std::equal(tokens_.begin(), tokens_.end(), output.begin()))
      throw std::invalid_argument("sluice: Commitment: output: does not begin with what is committed");
  }
  std::span<Token const> append(std::span<Token const> output, std::size_t size) {
    auto const before = tokens_.size();
    for (auto i = before; i < size; ++i) tokens_.push_back(output[i]);
    return std::span<Token const>(tokens_).subspan(before);
  }
  std::span<Token const> commit(std::span<Token const> output, std::size_t source, std::span<std::size_t const> cuts) {
    demand(output);
    while (output.size() > tokens_.size() && std::find(ends_.begin(), ends_.end(), output.back()) != ends_.end())
      output = output.first(output.size() - 1);
    auto const whole = [&](std::size_t size) {  // cuts up to `size`
      return cuts.first(static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), size) - cuts.begin()));
    };
    if (outputs_.size() == static_cast<std::size_t>(policy_.outputs())) {
      std::rotate(outputs_.begin(), outputs_.begin() + 1, outputs_.end());
      outputs_.back().assign(output.begin(), output.end());
    } else {
      outputs_.emplace_back(output.begin(), output.end());
    }
    auto const inside = whole(output.size());
    auto const most =
        static_cast<std::size_t>(policy_.committable(Readings{.outputs = outputs_, .cuts = inside, .source = source}));
    auto const units = whole((std::min)(most, output.size()));
    return append(output, units.empty() ? 0 : units.back());
  }

  P policy_;
  std::vector<Token> ends_, tokens_;
  std::vector<std::vector<Token>> outputs_;  // the newest comes last
  std::vector<std::size_t> cuts_;
  bool finished_ = false;
};

}  // namespace sluice::inline v0
