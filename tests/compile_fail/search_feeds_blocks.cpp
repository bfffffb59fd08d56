// SPDX-License-Identifier: Apache-2.0
// A search that feeds blocks is refused for a model that takes one token at a time.
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>

struct Model {
  using Source = int;
#ifndef MUST_FAIL
  static constexpr sluice::Abilities abilities{.blocks = true, .roll_back = true};
#else
  static constexpr sluice::Abilities abilities{.roll_back = true};
#endif
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

int main() {
  Model model;
  sluice::Decoder decoder(model, sluice::Blockwise<>{});
}
