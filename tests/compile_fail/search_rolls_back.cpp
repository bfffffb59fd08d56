// SPDX-License-Identifier: Apache-2.0
// A search that rolls back is refused for a model that cannot.
#include <sluice/sluice.hpp>

struct Model {
  using Source = int;
#ifndef MUST_FAIL
  static constexpr sluice::Abilities abilities{.roll_back = true};
#endif
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

struct Search : sluice::Greedy {
  static constexpr sluice::Abilities needs{.roll_back = true};
};

int main() {
  Model model;
  sluice::Decoder decoder(model, Search{});
}
