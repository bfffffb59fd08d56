// SPDX-License-Identifier: Apache-2.0
// An AnyModel cannot claim what the model that it holds does not have.
#include <sluice/model/any_model.hpp>

struct Model {
  using Source = int;
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

#ifdef MUST_FAIL
constexpr sluice::Abilities claimed{.ragged = true};
#else
constexpr sluice::Abilities claimed{};
#endif

int main() { sluice::AnyModel<int, sluice::Scores<float>, claimed> any{Model{}}; }
