// SPDX-License-Identifier: Apache-2.0
/// \file
/// Selects the candidates of a step by their banks.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/search/constraints.hpp>
#include <sluice/search/detail/bank_sizes.hpp>
#include <sluice/search/detail/beam_state.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// The banks of one sentence's beam. Candidates are identified by their Pick::order.
class BankChoice {
 public:
  using Pick = BeamState::Pick;
  static constexpr std::int32_t untried = -1, impossible = -2;  // special values of a bank

  /// The places of the beam in a step.
  struct Terms {
    Banks banks;
    std::int32_t width, places, looked_at;
    bool refill;  // whether others replace those that end
  };

  /// \param banks  >= 1; the last one is the top bank
  SLUICE_LAZY void reset(std::int32_t banks) {
    counts_.resize(at(banks)), sizes_.resize(at(banks)), best_.resize(at(banks));
  }
  std::int32_t banks() const { return static_cast<std::int32_t>(counts_.size()); }

  // ---- one step's candidates ----

  SLUICE_LAZY void clear() { bank_.clear(), claim_.clear(); }
  /// Makes room for `count` candidates.
  SLUICE_LAZY void grow(std::size_t count, bool certain = false) {
    bank_.resize(count, untried), claim_.resize(count, certain ? Claim::certain : Claim::rank);
  }
  /// Makes it a candidate regardless of its rank.
  SLUICE_LAZY void ensure(Pick const& pick) { claim_[at(pick.order)] = Claim::certain; }
  bool certain(Pick const& pick) const { return claim_[at(pick.order)] == Claim::certain; }
  std::int32_t& bank(Pick const& pick) { return bank_[at(pick.order)]; }
  std::int32_t bank(Pick const& pick) const { return bank_[at(pick.order)]; }

  /// Applies Pruning::relative_local_threshold in each bank.
  SLUICE_LAZY void prune_locally(Buffer<Pick>& picks, double threshold) {
    if (threshold <= 0) return;
    std::fill(best_.begin(), best_.end(), -std::numeric_limits<double>::infinity());
    for (auto const& pick : picks)
      if (!pick.carried) raise(best_[at(bank(pick))], static_cast<double>(pick.token_log_prob));
    erase_if(picks, [&](Pick const& pick) {
      auto const bar = best_[at(bank(pick))] + std::log(threshold);
      return !pick.carried && !(static_cast<double>(pick.token_log_prob) > bar);
    });
  }

  /// Reduces all candidates, best first, to those that the beam takes, in that order.
  SLUICE_LAZY void choose(Buffer<Pick>& picks, Terms const& terms) {
    chosen_.clear();
    if (terms.banks == Banks::fairseq) {
      stripes(picks, at(terms.looked_at));
    } else {
      take(picks, terms, terms.places, false);
      auto const ended = std::count_if(chosen_.begin(), chosen_.end(), [](Pick const& pick) { return pick.ended; });
      if (terms.refill && ended > 0) take(picks, terms, static_cast<std::int32_t>(ended), true);
    }
    picks.assign(chosen_);
  }

  // ---- the next beam ----

  /// Applies the log-probability thresholds in each bank; finished hypotheses belong to the top bank.
  /// \param banks  [beam.size()]
  SLUICE_LAZY void prune(Buffer<BeamState::Entry>& beam, std::span<std::int32_t const> banks, double margin,
                         double best_finished) {
    std::fill(best_.begin(), best_.end(), -std::numeric_limits<double>::infinity());
    best_.back() = best_finished;
    for (std::size_t i = 0; i < beam.size(); ++i) raise(best_[at(banks[i])], beam[i].value);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < beam.size(); ++i)
      if (beam[i].value > best_[at(banks[i])] - margin) beam[kept++] = beam[i];
    beam.resize(kept);
  }

 private:
  enum class Claim : std::uint8_t { rank, certain, taken };

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  SLUICE_LAZY static void raise(double& best, double value) { best = (std::max)(best, value); }

  /// Appends the best of each bank to `chosen`, at most `places` in total, in the order of `picks`. Skips candidates
  /// already taken and, if `live`, those that have ended.
  SLUICE_LAZY void take(std::span<Pick const> picks, Terms const& terms, std::int32_t places, bool live) {
    auto const free = [&](Pick const& pick) { return claim_[at(pick.order)] != Claim::taken && !(live && pick.ended); };
    std::fill(counts_.begin(), counts_.end(), 0);
    for (auto const& pick : picks)
      if (free(pick)) ++counts_[at(bank(pick))];
    switch (terms.banks) {
      case Banks::sockeye: bank_sizes_sockeye(counts_, places, sizes_); break;
      case Banks::even: bank_sizes_even(counts_, places, sizes_); break;
      case Banks::equal: share_equally(terms, live); break;
      case Banks::paper:
      case Banks::fairseq: bank_sizes_paper(counts_, places, sizes_); break;
    }
    for (auto const& pick : picks) {
      auto& left = sizes_[at(bank(pick))];
      if (left <= 0 || !free(pick)) continue;
      --left, claim_[at(pick.order)] = Claim::taken;
      chosen_.push_back(pick);
    }
  }

  /// Banks::equal: every bank keeps its own places. Hypotheses that ended and left the beam earlier (FinishedHypotheses::shrink)
  /// were in the top bank; those that leave now (`live`) are replaced from their own bank.
  SLUICE_LAZY void share_equally(Terms const& terms, bool live) {
    std::fill(sizes_.begin(), sizes_.end(), live ? 0 : terms.width / banks());
    if (!live) sizes_.back() = (std::max)(0, sizes_.back() - (terms.width - terms.places));
    else
      for (auto const& pick : chosen_) sizes_[at(bank(pick))] += pick.ended ? 1 : 0;
  }

  /// The best of each bank, from the top bank down, then the second best of each, and so on.
  SLUICE_LAZY void stripes(std::span<Pick const> picks, std::size_t most) {
    std::fill(counts_.begin(), counts_.end(), 0);
    rank_.resize(bank_.size());
    for (auto const& pick : picks) rank_[at(pick.order)] = counts_[at(bank(pick))]++;
    chosen_.assign(picks);
    std::sort(chosen_.begin(), chosen_.end(), [&](Pick const& a, Pick const& b) {
      auto const x = rank_[at(a.order)], y = rank_[at(b.order)];
      return x != y ? x < y : bank(a) > bank(b);
    });
    if (chosen_.size() > most) chosen_.resize(most);
  }

  std::vector<std::int32_t> bank_;  // [order]: its progress; or untried, impossible
  Buffer<Claim> claim_;             // [order]
  std::vector<std::int32_t> rank_;  // [order]: in its bank
  Buffer<Pick> chosen_;
  std::vector<std::int32_t> counts_, sizes_;  // [bank]
  Buffer<double> best_;                       // [bank]
};

}  // namespace sluice::inline v0::detail
