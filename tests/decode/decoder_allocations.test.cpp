// SPDX-License-Identifier: Apache-2.0
#include <sluice/decode/decoder.hpp>
#include <sluice/decode/schedule.hpp>
#include <sluice/processor/dry.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/best_first_beam.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/speculative/blockwise.hpp>
#include <sluice/speculative/draft_model.hpp>
#include <sluice/speculative/prompt_lookup.hpp>

#include <support/allocations.hpp>
#include <support/catch.hpp>
#include <support/table_model.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr Abilities with_blocks{.ragged = true, .blocks = true, .roll_back = true};
constexpr Abilities with_trees{.ragged = true, .blocks = true, .roll_back = true, .trees = true};

/// Decodes the same sentences a few times, with the same random numbers; returns the allocations of the last time's steps in which
/// no sentence began or ended.
template <class D>
std::size_t allocations_of(D& decoder, std::size_t& counted, Confidence const& confidence = {}) {
  Result result;
  std::size_t inside = 0;
  for (int round = 0; round < 4; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) decoder.submit({.source = 5, .seed = 1, .confidence = confidence});
    inside = counted = 0;
    for (auto more = true; more;) {
      auto const waiting = decoder.waiting(), running = decoder.running();
      auto const before = allocations();
      more = decoder.step();
      auto const after = allocations();
      if (decoder.waiting() == waiting && decoder.running() == running && more) inside += after - before, ++counted;
      while (decoder.poll(result)) CHECK(result.ok());
    }
  }
  return inside;
}
template <class S>
std::size_t allocations_when_warm(S const& search, std::size_t& counted, Confidence const& confidence = {}) {
  Table const table{.size = 40, .scale = 6, .eos_bias = -3, .eos_slope = 0.2};
  TableModel<> model(table);
  model.reserve(64, 300, 64);
  Decoder decoder(model, search, Batched{.size = 8});
  return allocations_of(decoder, counted, confidence);
}

/// A warm decoder with guesses allocates nothing; guessing(model, model that may guess) makes the model that guesses.
template <Abilities A, class S, class F>
Statistics allocates_nothing(S const& search, F&& guessing) {
  Table const table{.size = 12, .scale = 4, .order = 2, .has_eos = false};
  auto other = table;
  other.levels = 3;  // right now and then
  TableModel<A> model(table);
  TableModel<with_blocks> small(other);
  model.reserve(64, 300, 200), small.reserve(64, 300, 200);
  auto guesser = guessing(model, small);
  Decoder decoder(guesser, search, Batched{.size = 8});
  std::size_t steps = 0;
  CHECK(allocations_of(decoder, steps) == 0);
  CHECK(steps > 5);
  auto const statistics = decoder.statistics();
  CHECK(statistics.fed > statistics.tokens);  // some guesses were wrong
  return statistics;
}

}  // namespace

TEST_CASE("a warm decoder's step allocates nothing", "[decoder_allocations]") {
  std::size_t steps = 0;
  CHECK(allocations_when_warm(Greedy{.length = {.min = 10}}, steps) == 0);
  CHECK(steps > 5);
  for (auto const finished : {FinishedHypotheses::set_aside, FinishedHypotheses::shrink, FinishedHypotheses::stay,
                              FinishedHypotheses::leave_first}) {
    INFO("finished " << static_cast<int>(finished));
    CHECK(allocations_when_warm(BeamSearch{.width = 5, .n_best = 5, .length = {.min = 10}, .finished = finished},
                                steps) == 0);
    CHECK(steps > 5);
  }
  CHECK(allocations_when_warm(
            BeamSearch{.width = 5, .length = {.min = 10}, .early_stopping = {.rule = EarlyStopping::Rule::exact}},
            steps) == 0);
  auto chain = presets::llama_cpp_sample();
  chain.samples = 3, chain.length.min = 10;
  auto const looking_back = LogitsProcessorList(Penalties{.presence = 0.5f}, Dry{.multiplier = 0.8f});
  using Looking = Processed<Sample>;
  CHECK(allocations_when_warm(Looking{chain, looking_back}, steps) == 0);
  CHECK(steps > 5);
  chain.top_n_sigma = 1, chain.xtc.probability = 0.5f, chain.dynamic_temperature.range = 0.5f;
  CHECK(allocations_when_warm(chain, steps) == 0);
  chain.mirostat.tau = 3;
  CHECK(allocations_when_warm(chain, steps) == 0);
  chain.mirostat.tau = 0, chain.adaptive_p.target = 0.4f;
  CHECK(allocations_when_warm(chain, steps) == 0);
  CHECK(allocations_when_warm(Greedy{.length = {.min = 10}}, steps, {.entropy = true, .alternatives = 3}) == 0);
  CHECK(allocations_when_warm(BestFirstBeam{.width = 4, .length = {.min = 10}}, steps) == 0);
  CHECK(steps > 5);
}

TEST_CASE("a warm decoder's step with guesses allocates nothing", "[decoder_allocations]") {
  LengthLimits const length{.max = 60};
  auto const drafting = [](auto& model, auto& small) { return Speculated(model, DraftModel(small)); };
  auto const drawing = [](auto& model, auto& small) {
    return Speculated(model, DraftModel(small, {}, acceptance::Rejection{}));
  };
  auto const looking_up = [](auto& model, auto&) { return Speculated(model, PromptLookup({.longest = 2})); };
  auto const in_turn = [](auto& model, auto& small) {
    return Speculated(model, PromptLookup({.longest = 3, .shortest = 3}), DraftModel(small));
  };
  Blockwise<> const chain{.block = 4, .length = length};
  Blockwise<> const tree{.block = 4, .length = length, .branches = 4};
  Blockwise<acceptance::Rejection> const drawn{.block = 4, .length = length, .branches = 4};
  CHECK(allocates_nothing<with_blocks>(chain, drafting).forks == 0);
  CHECK(allocates_nothing<with_blocks>(chain, looking_up).forks == 0);
  CHECK(allocates_nothing<with_blocks>(tree, drafting).forks > 0);
  CHECK(allocates_nothing<with_trees>(tree, drafting).forks == 0);
  CHECK(allocates_nothing<with_blocks>(tree, looking_up).forks > 0);
  CHECK(allocates_nothing<with_trees>(tree, looking_up).forks == 0);
  CHECK(allocates_nothing<with_blocks>(chain, in_turn).forks == 0);
  CHECK(allocates_nothing<with_trees>(tree, in_turn).forks == 0);
  CHECK(allocates_nothing<with_blocks>(drawn, drawing).forks > 0);
  CHECK(allocates_nothing<with_trees>(drawn, drawing).forks == 0);
}
