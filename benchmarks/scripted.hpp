// SPDX-License-Identifier: Apache-2.0
/// \file
/// A proposer that knows the output and is right as often as it is told to be.
#pragma once

#include <sluice/core/model.hpp>
#include <sluice/core/noise.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/combine.hpp>
#include <sluice/model/forwarding.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bench {

/// Guesses each token rightly with probability `right`, whatever the others are. The sentences' outputs lie in `outputs`,
/// by Draft::seed.
template <sluice::Model M>
class Scripted : public sluice::detail::Forwarding<M> {
 public:
  using Source = typename M::Source;

  Scripted(M& model, std::vector<std::vector<sluice::Token>> const& outputs, double right)
      : sluice::detail::Forwarding<M>(model), outputs_(outputs), right_(right) {}

  void start(std::span<Source const* const> sources, std::span<sluice::Slot const> slots) {
    this->model_.start(sources, slots);
  }
  void release(std::span<sluice::Slot const> slots) { sluice::detail::release(this->model_, slots); }
  decltype(auto) step(std::span<sluice::Row const> rows) {
    ++calls;
    return this->model_.step(rows);
  }
  void propose(std::span<sluice::Draft const> drafts) const {
    for (auto const& draft : drafts) {
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
  std::vector<std::vector<sluice::Token>> const& outputs_;
  double right_;
};

/// The probability with which each guess must be right for blocks of `mean` tokens on average, `block` at most.
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
