// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model whose hidden vectors are a hash of the source and the tokens so far.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/types.hpp>

#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace sluice::test {

/// Its vectors have numbers in [-scale, scale). Its tokens are those of TableModel.
template <Abilities A = Abilities{}>
class HiddenModel {
 public:
  using Source = std::uint64_t;
  static constexpr Abilities abilities = A;

  HiddenModel(std::int32_t size, std::ptrdiff_t d, double scale = 2) : size_(size), d_(d), scale_(scale) {}

  Vocabulary vocabulary() const { return {.size = size_, .bos = bos, .eos = {eos}, .never = {pad, bos}}; }
  void start(std::span<Source const* const> sources, std::span<Slot const> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) state_[slots[i]] = {hash_mix(*sources[i] + 77)};
  }
  Hidden<float> step(std::span<Row const> rows) {
    answer_.clear();
    for (auto const& row : rows)
      if (row.from != row.to) {
        auto const copy = state_[row.from];
        state_[row.to] = copy;
      }
    std::ptrdiff_t lines = 0;
    for (auto const& row : rows) {
      auto& states = state_[row.to];
      states.resize(static_cast<std::size_t>(row.length) + 1);
      for (std::size_t i = 0; i < row.tokens.size(); ++i) {
        auto const s = hash_mix(states.back() * 31 + static_cast<std::uint64_t>(row.tokens[i]) + 1);
        states.push_back(s);
        if (row.tokens.size() - i > static_cast<std::size_t>(row.lines)) continue;
        ++lines;
        for (std::ptrdiff_t k = 0; k < d_; ++k) {
          auto const bits = hash_mix(s ^ (static_cast<std::uint64_t>(k + 1) * 0x9E3779B97F4A7C15u)) >> 40;
          answer_.push_back(static_cast<float>((static_cast<double>(bits) / 16777216.0 - 0.5) * 2 * scale_));
        }
      }
    }
    return hidden(answer_.data(), lines, d_);
  }

 private:
  std::int32_t size_;
  std::ptrdiff_t d_;
  double scale_;
  std::map<Slot, std::vector<std::uint64_t>> state_;  // after each number of tokens
  std::vector<float> answer_;
};

}  // namespace sluice::test
