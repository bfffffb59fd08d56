// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a DeviceBeam keeps in the device's memory.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/types.hpp>
#include <sluice/cuda/cache/detail/indirection_launch.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/line_query.cuh>
#include <sluice/cuda/merge/merge_query.cuh>
#include <sluice/search/beam_options.hpp>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

inline constexpr std::int32_t most_beam_width = 64;

/// A sentence, between two steps. Lengths are in tokens.
struct BeamSentence {
  std::int32_t running = 0;
  std::int32_t valid = 1;      ///< 0: a line held a NaN or +infinity; the rest is unchanged since before that step
  std::int32_t live = 0;       ///< hypotheses in the beam
  std::int32_t generated = 0;  ///< tokens so far, including the forced prefix
  std::int32_t prefix = 0;     ///< of these, the forced prefix
  std::int32_t min = 0, max = 0;
  std::int32_t held = 0;       ///< tokens in the live hypotheses' slots, excluding the token fed next
  std::int32_t ended = 0;      ///< finished hypotheses kept
  std::int32_t half = 0;       ///< the half of the sentence's part of BeamTask::ended that holds them
  std::int32_t top_ended = 0;  ///< the best candidate of some step was an end
};

/// A token of a hypothesis in the beam's history.
struct BeamNode {
  std::int32_t parent;  ///< its rank in the previous beam
  Token token;
  float log_prob;
};

/// A hypothesis that has left the beam.
struct BeamEnded {
  double log_prob, score;
  std::int32_t depth;  ///< tokens after the prefix, before its last one
  BeamNode last;
  std::int32_t finished;
};

/// A sentence to begin.
struct BeamStart {
  double log_prob = 0;      ///< of its prefix
  std::int32_t number = 0;  ///< the sentence's number
  Token last = 0;           ///< fed first
  std::int32_t held = 0, generated = 0, min = 0, max = 0;
};

/// The options of a BeamSearch that a step reads.
struct BeamRules {
  std::int32_t width = 1;
  std::int32_t ends = 0;   ///< tokens that end a sentence
  std::int32_t best = 1;   ///< candidates wanted per line
  std::int32_t keep = 1;   ///< candidates read per sentence
  std::int32_t never = 0;  ///< tokens never generated: the first of BeamTask::edits; after them, the same and all ends
  std::int32_t never_or_end = 0;  ///< the number of the latter
  std::int32_t n_best = 1, needed = 1;
  std::int32_t most_ended = 1;  ///< finished hypotheses kept: no rule needs more
  bool surplus = false, guard_prefix = false;
  bool hopeful = false;  ///< EarlyStopping::Rule::never_early with a penalty that grows
  bool log_probs = false;
  EarlyStopping::Rule rule = EarlyStopping::Rule::count;
  AtMaximum at_maximum = AtMaximum::force_eos;
  Stage stage = Stage::after_softmax;

  /// Whether the token after `generated` others must be an end.
  SLUICE_HOST_DEVICE bool forced(std::int32_t generated, std::int32_t max) const {
    return at_maximum == AtMaximum::force_eos && ends > 0 && generated + 1 >= max;
  }
};

/// The arguments of the kernels; all pointers are device pointers. A slot's row has the slot's number; sentence s has
/// slots and lines s * width .. s * width + width - 1.
struct BeamTask {
  BeamRules rules{};
  std::int32_t sentences = 0;
  std::int32_t steps = 0;             ///< the most tokens of a sentence after its prefix
  Token const* end_tokens = nullptr;  ///< [ends]
  double const* divisors = nullptr;   ///< [longest output + 1]: LengthPenalty::divisor
  BeamStart const* starts = nullptr;  ///< [sentences]

  LineResult const* results = nullptr;   ///< [rows]
  float const* probe_values = nullptr;   ///< [rows, ends]
  Kept const* kept = nullptr;            ///< [sentences, keep]
  double const* totals = nullptr;        ///< likewise
  std::int32_t const* places = nullptr;  ///< likewise

  BeamSentence* state = nullptr;  ///< [sentences]
  MergeGroup* groups = nullptr;   ///< [sentences]
  MergeLine* lines = nullptr;     ///< [sentences, width]: the beam, best first: log-probability and row
  BeamNode* history = nullptr;    ///< [sentences, steps, width]
  BeamEnded* ended = nullptr;     ///< [sentences, 2, most_ended], best first
  std::int32_t* remaining = nullptr;

  Token* tokens = nullptr;       ///< [rows]
  SlotStep* moves = nullptr;     ///< [rows]
  LineQuery* queries = nullptr;  ///< [rows]

  SLUICE_HOST_DEVICE std::int32_t first_row(std::int32_t sentence) const { return sentence * rules.width; }
  SLUICE_HOST_DEVICE BeamEnded* half(std::int32_t sentence, std::int32_t half) const {
    return ended + (2 * static_cast<std::int64_t>(sentence) + half) * rules.most_ended;
  }
  SLUICE_HOST_DEVICE BeamNode* nodes(std::int32_t sentence, std::int32_t depth) const {
    return history + (static_cast<std::int64_t>(sentence) * steps + depth) * rules.width;
  }
};

/// The shared memory of a warp of BeamWarp.
struct BeamWarpMemory {
  struct Next {
    double log_prob;
    BeamNode node;
    Slot from;
  };
  Next next[most_beam_width];            ///< the next beam, best first
  BeamEnded out[2 * most_beam_width];    ///< hypotheses that leave the beam, in order: ended, then joined alive
  std::int32_t holder[most_beam_width];  ///< [slot]: the rank of the hypothesis that stays there
  std::uint32_t stays[2];                ///< a bit for every slot in which a hypothesis stays
  std::uint32_t first[2];                ///< a bit for every rank that stays
};

}  // namespace sluice::inline v0::cuda::detail
