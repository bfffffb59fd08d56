// SPDX-License-Identifier: Apache-2.0
// A model that gives hidden vectors needs a projection: the default expander takes scores. The compiler says so, and names one.
#include <sluice/sluice.hpp>

struct Model {
  using Source = int;
#ifdef MUST_FAIL
  using Answer = sluice::Hidden<float>;
#else
  using Answer = sluice::Scores<float>;
#endif
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  Answer step(std::span<sluice::Row const>) { return {}; }
};

int main() {
  Model model;
  sluice::Decoder<Model, sluice::Greedy> decoder(model);
}
