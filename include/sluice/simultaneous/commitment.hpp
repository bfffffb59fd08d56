// SPDX-License-Identifier: Apache-2.0
/// \file
/// Commitment: the committed output for a source that is still growing.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>
#include <sluice/simultaneous/commit_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

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
