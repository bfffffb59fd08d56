// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches as bytes say: options that make sense, and some that do not.
#pragma once

#include <sluice/core/types.hpp>
#include <sluice/processor/penalties.hpp>
#include <sluice/processor/processed.hpp>
#include <sluice/search/beam_search.hpp>
#include <sluice/search/constrained_beam_search.hpp>
#include <sluice/search/diverse_beam_search.hpp>
#include <sluice/search/exact_search.hpp>
#include <sluice/search/greedy.hpp>
#include <sluice/search/presets.hpp>
#include <sluice/search/sample.hpp>
#include <sluice/search/stochastic_beam.hpp>
#include <sluice/speculative/acceptance.hpp>
#include <sluice/speculative/blockwise.hpp>

#include <fuzz/decoder/any_search.hpp>
#include <fuzz/decoder/bytes.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::test {

using Restraint = LogitsProcessorList;
using FuzzSearch = AnySearch<Greedy, BeamSearch, DiverseBeamSearch, Sample, StochasticBeam, ConstrainedBeamSearch<>,
                             ExactSearch, Blockwise<acceptance::Exact>, Blockwise<acceptance::TopK>,
                             Processed<BeamSearch>, Processed<Blockwise<acceptance::Sampling>>>;

inline LengthLimits draw_length(Bytes& bytes) {
  LengthLimits length{.max = bytes.between(0, 12)};
  if (bytes.chance(3)) length.min = std::min(bytes.below(6), length.max);
  if (bytes.chance(8)) length.max_factor = 0.5, length.extra = bytes.below(4);
  return length;
}

inline std::vector<Token> draw_tokens(Bytes& bytes, std::int32_t most) {
  std::vector<Token> tokens;
  for (auto n = bytes.below(most + 1); n > 0; --n) tokens.push_back(bytes.between(2, 9));  // some are no tokens
  return tokens;
}

inline BeamSearch draw_beam(Bytes& bytes) {
  BeamSearch s{.width = bytes.between(1, 4), .length = draw_length(bytes)};
  s.n_best = bytes.between(1, s.width);
  if (bytes.chance(3)) {
    s = bytes.pick({presets::fairseq(s.width), presets::ctranslate2(s.width), presets::huggingface(s.width),
                    presets::sockeye(s.width), presets::marian(s.width), presets::varstream(s.width)});
    s.length = draw_length(bytes);
    return s;
  }
  s.finished = bytes.one_of<FinishedHypotheses>(4);
  s.early_stopping.rule = bytes.one_of<EarlyStopping::Rule>(5);
  s.early_stopping.finished = bytes.pick({0, 0, 1, 4});
  s.early_stopping.patience = bytes.pick({1.0, 0.5, 2.0});
  s.at_maximum = bytes.one_of<AtMaximum>(5);
  s.penalty.kind = bytes.one_of<LengthPenalty::Kind>(3);
  s.penalty.alpha = bytes.pick({1.0, 0.0, -0.5, 2.0});
  s.penalty.word_penalty = bytes.pick({0.0, 0.0, -0.5, 1.0});
  s.pruning.absolute_threshold = bytes.pick({Pruning::off, 0.5, 3.0});
  s.pruning.relative_local_threshold = bytes.pick({0.0, 0.0, 0.2});
  s.pruning.max_per_parent = bytes.pick({Pruning::unlimited, 1, 2});
  s.candidates = bytes.pick({0, 0, 2 * s.width});
  s.sibling_penalty = bytes.pick({0.0, 0.0, 1.0});
  auto const flags = bytes.byte();
  s.surplus = (flags & 1) != 0, s.prefix_scored = (flags & 2) == 0, s.guard_prefix = (flags & 4) != 0;
  s.stage = (flags & 8) != 0 ? Stage::before_softmax : Stage::after_softmax;
  return s;
}

/// Samplers beyond temperature and truncation, in any order.
inline void draw_samplers(Bytes& bytes, Sample& s) {
  s.top_n_sigma = bytes.pick({0.0f, 1.0f, 0.1f});
  s.xtc = {.probability = bytes.pick({0.0f, 0.5f, 1.0f}), .threshold = bytes.pick({0.1f, 0.0f, 0.5f})};
  s.dynamic_temperature = {.range = bytes.pick({0.0f, 0.5f, 3.0f}), .exponent = bytes.pick({1.0f, 0.2f})};
  s.min_keep = bytes.pick({1, 0, 2, 20});
  if (bytes.chance(3)) s.mirostat = {.tau = bytes.pick({5.0f, 0.5f}), .eta = bytes.pick({0.1f, 2.0f})};
  else if (bytes.chance(3))
    s.adaptive_p = {.target = bytes.pick({0.5f, 0.0f, 1.0f}), .decay = bytes.pick({0.9f, 0.0f})};
  if (bytes.chance(3)) return;
  s.order = bytes.pick({SamplerOrder::hugging_face(), SamplerOrder::llama_cpp(), SamplerOrder{}});
  for (auto n = bytes.below(3); n > 0 && s.order.samplers().size() < SamplerOrder::most; --n)
    s.order.push_back(bytes.one_of<Sampler>(7));  // some come twice: refused
}

inline Sample draw_sample(Bytes& bytes) {
  Sample s{.samples = bytes.between(1, 4), .distinct = bytes.chance(2), .length = draw_length(bytes)};
  s.temperature = bytes.pick({1.0f, 0.3f, 2.0f, 0.0f});
  s.top_k = bytes.pick({0, 0, 1, 3});
  s.top_p = bytes.pick({1.0f, 0.8f});
  s.min_p = bytes.pick({0.0f, 0.2f});
  auto const more = bytes.byte();
  s.typical = more % 2 == 0 ? 1.0f : 0.7f;
  if (more / 2 % 2 == 1) draw_samplers(bytes, s);
  return s;
}

inline ConstrainedBeamSearch<> draw_constrained(Bytes& bytes) {
  ConstrainedBeamSearch<> s{.beam = draw_beam(bytes)};
  PhraseLists lists;
  for (auto n = bytes.below(3); n > 0; --n) lists.all.push_back(draw_tokens(bytes, 3));
  for (auto n = bytes.below(3); n > 0; --n) lists.ordered.push_back(draw_tokens(bytes, 2));
  for (auto n = bytes.below(2); n > 0; --n) lists.any.push_back({draw_tokens(bytes, 2), draw_tokens(bytes, 2)});
  for (auto n = bytes.below(2); n > 0; --n) lists.none.push_back(draw_tokens(bytes, 2));
  s.constraints = Constraints(std::move(lists));
  s.banks = bytes.one_of<Banks>(5);
  s.prune_finished = bytes.pick({20.0, 1.0, Pruning::off});
  s.replace_impossible = bytes.chance(2), s.list_incomplete = bytes.chance(2);
  return s;
}

template <class A>
Blockwise<A> draw_blockwise(Bytes& bytes, A accept) {
  Blockwise<A> s{.block = bytes.between(1, 5), .accept = accept, .length = draw_length(bytes)};
  s.adaptive = bytes.chance(3);
  s.cost = bytes.pick({0.25, 0.01, 2.0});  // given: what is measured would differ from run to run
  if (!A::lossless) s.minimum = bytes.pick({1, 1, 2});
  return s;
}

inline Restraint draw_restraint(Bytes& bytes) {
  return Restraint(ForbidTokens{draw_tokens(bytes, 2)}, NoRepeatNgram{bytes.below(4)},
                   RepetitionPenalty{bytes.pick({1.0f, 1.3f})});
}

inline Misdeed draw_misdeed(Bytes& bytes) {
  if (!bytes.chance(8)) return {};
  return {.kind = bytes.one_of<Misdeed::Kind>(Misdeed::kinds), .round = bytes.below(6)};
}

inline FuzzSearch draw_search(Bytes& bytes) {
  FuzzSearch s;
  switch (bytes.below(11)) {
    case 0: s.chosen = Greedy{.length = draw_length(bytes), .scores = !bytes.chance(4)}; break;
    case 1: s.chosen = draw_beam(bytes); break;
    case 2: {
      DiverseBeamSearch diverse{.search = draw_beam(bytes), .groups = bytes.between(1, 3)};
      diverse.search.n_best = diverse.search.width;
      diverse.penalty = bytes.pick({0.5, 0.0, 5.0});
      diverse.n_best = bytes.between(1, diverse.slot_count());
      s.chosen = diverse;
      break;
    }
    case 3: s.chosen = draw_sample(bytes); break;
    case 4:
      s.chosen = StochasticBeam{
          .width = bytes.between(1, 4), .temperature = bytes.pick({1.0f, 0.2f}), .length = draw_length(bytes)};
      break;
    case 5: s.chosen = draw_constrained(bytes); break;
    case 6:
      s.chosen = ExactSearch{
          .n_best = bytes.between(1, 3), .steps = 40, .list = bytes.between(1, 5), .length = draw_length(bytes)};
      break;
    case 7: s.chosen = draw_blockwise(bytes, acceptance::Exact{}); break;
    case 8: s.chosen = draw_blockwise(bytes, acceptance::TopK{.n = bytes.between(1, 3)}); break;
    case 9: {
      auto beam = draw_beam(bytes);
      s.chosen = Processed(std::move(beam), draw_restraint(bytes));
      break;
    }
    default: {
      auto blockwise = draw_blockwise(bytes, acceptance::Sampling{{.temperature = bytes.pick({1.0f, 0.5f})}});
      s.chosen = Processed(std::move(blockwise), draw_restraint(bytes));
    }
  }
  s.misdeed = draw_misdeed(bytes);
  return s;
}

}  // namespace sluice::test
