// SPDX-License-Identifier: Apache-2.0
// Blocks are refused for a recurrent model, which cannot roll back.
#include <sluice/model/restarting.hpp>
#include <sluice/sluice.hpp>
#include <sluice/speculative/blockwise.hpp>

struct Recurrent {
  using Source = int;
  sluice::Vocabulary vocabulary() const { return {.size = 1}; }
  void start(std::span<int const* const>, std::span<sluice::Slot const>) {}
  sluice::Scores<float> step(std::span<sluice::Row const>) { return {}; }
};

int main() {
  Recurrent model;
#ifdef MUST_FAIL
  sluice::Decoder decoder(model, sluice::Blockwise<>{});
#else
  sluice::Restarting restarting(model);
  sluice::TokenByToken blocks(restarting);
  sluice::Decoder decoder(blocks, sluice::Blockwise<>{});
#endif
}
