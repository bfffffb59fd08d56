// SPDX-License-Identifier: Apache-2.0
/// \file
/// A proposer that knows the output and is right with a given probability.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/combine.hpp>
#include <sluice/model/detail/forwarding.hpp>
#include <sluice/speculative/heads.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace bench {

/// Guesses each token correctly with probability `right`, independently. The sentences' outputs are in `outputs`, by
/// Draft::seed.
template <sluice::Model M>
class Scripted : public sluice::detail::Forwarding<M> {
 public:
  using Source = typename M::Source;

  Scripted(M& model, std::vector<std::vector<sluice::Token>> const& outputs, double right)
      : sluice::detail::Forwarding<M>(model), outputs_(outputs), right_(right) {}

  bool proposes() const { return true; }
  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    this->model_.start(sources, slots);
  }
  void release(std::span<sluice::Slot const> slots) { sluice::detail::release(this->model_, slots); }
  decltype(auto) step(std::span<sluice::Row const> rows) {
    ++calls;
    return this->model_.step(rows);
  }
  /// Guesses trees of this shape for sentences that take them: guess number `rank` for place `depth` is right with
  /// probability accuracy[depth][rank]; at most one per place is right.
  void branch(sluice::TreeShape shape, std::vector<std::vector<double>> accuracy) {
    shape_ = std::move(shape), accuracy_ = std::move(accuracy);
  }
  void propose(std::span<sluice::Draft const> drafts) const {
    for (auto const& draft : drafts) {
      if (!accuracy_.empty()) {
        branch(draft);
        continue;
      }
      auto const& output = outputs_[static_cast<std::size_t>(draft.seed)];
      for (auto i = draft.position; i < draft.position + draft.count; ++i) {
        auto const place = static_cast<std::size_t>(i);
        if (place >= output.size()) break;
        auto const chance = static_cast<double>(sluice::derive(draft.seed + 1, place) >> 11) * 0x1p-53;
        draft.tokens->push_back(chance < right_ ? output[place] : output[place] == 5 ? 6 : 5);
      }
    }
  }

  std::size_t calls = 0;  ///< of step

 private:
  void branch(sluice::Draft const& draft) const {
    auto const& output = outputs_[static_cast<std::size_t>(draft.seed)];
    auto const guess = [&](std::int32_t depth, std::int32_t rank) {
      auto const place = static_cast<std::size_t>(draft.position + depth);
      auto const token = place < output.size() ? output[place] : 5;
      auto chance = static_cast<double>(sluice::derive(draft.seed + 1, place) >> 11) * 0x1p-53;
      std::int32_t right = 0;
      auto const& ranks = accuracy_[static_cast<std::size_t>(depth)];
      while (right < std::ssize(ranks) && chance >= ranks[static_cast<std::size_t>(right)])
        chance -= ranks[static_cast<std::size_t>(right++)];
      return rank == right ? token : token > 1000 ? token - 1 - rank : token + 1 + rank;
    };
    if (draft.tree == nullptr) {
      for (std::int32_t i = 0; i < std::min<std::int32_t>(draft.count, static_cast<std::int32_t>(accuracy_.size()));
           ++i)
        draft.tokens->push_back(guess(i, 0));
      return;
    }
    for (auto const& node : shape_.nodes) {
      draft.tokens->push_back(guess(node.depth, node.rank));
      draft.tree->parents.push_back(node.parent);
    }
  }

  std::vector<std::vector<sluice::Token>> const& outputs_;
  double right_;
  sluice::TreeShape shape_;
  std::vector<std::vector<double>> accuracy_;
};

/// The probability with which each guess must be right for blocks of `mean` tokens on average, at most `block`.
inline double right_for(double mean, std::int32_t block) {
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    auto const p = (low + high) / 2;
    double tokens = 0, chance = 1;
    for (std::int32_t j = 0; j < block; ++j) tokens += chance, chance *= p;
    (tokens < mean ? low : high) = p;
  }
  return low;
}

}  // namespace bench
