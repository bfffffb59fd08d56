// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rows that a DeviceBeam wants to run next, including a sentence's first rows.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/cuda/beam/detail/device_beam_state.cuh>
#include <sluice/cuda/device/detail/host_device.cuh>
#include <sluice/cuda/line/line_query.cuh>

#include <cstdint>

namespace sluice::inline v0::cuda::detail {

/// The query of a row that no hypothesis has: its line is not read.
SLUICE_HOST_DEVICE inline LineQuery idle_query() {
  LineQuery query;
  query.best = unread, query.normalise = 0;
  return query;
}

/// A free slot. Its contents are dropped; token 0 is fed because every row must feed one.
SLUICE_DEVICE void idle_row(BeamTask const& task, std::int32_t row) {
  auto& move = task.moves[row];
  if (move.count != 0) move = {row, 0, 0};
  else move = {-1, 0, 0};
  task.tokens[row] = 0;
  task.queries[row] = idle_query();
}

/// A hypothesis: feeds `token` in this slot after the contents of slot `from`, and asks for its candidates.
/// \param now  the sentence's next state
SLUICE_DEVICE void live_row(BeamTask const& task, BeamSentence const& now, std::int32_t row, Slot from, Token token) {
  auto const& rules = task.rules;
  auto const forced = rules.forced(now.generated, now.max);
  auto const early = !forced && now.generated < now.min;
  LineQuery query;
  query.stage = rules.stage;
  query.best = forced ? 0 : rules.best;
  query.edits = early ? rules.never : 0;
  query.edit_count = early ? rules.never_or_end : rules.never;
  query.probes = row * rules.ends;
  query.probe_count = forced ? rules.ends : 0;
  auto const edited = query.edit_count > 0 && rules.stage == Stage::before_softmax;
  query.normalise = rules.log_probs && !edited ? 0 : 1;
  task.queries[row] = query;
  task.moves[row] = {from, now.held, 1};
  task.tokens[row] = token;
}

/// What the merge must do for the sentence: nothing if there are no lists.
SLUICE_DEVICE void write_group(BeamTask const& task, BeamSentence const& now, std::int32_t sentence) {
  auto const lists = now.running != 0 && !task.rules.forced(now.generated, now.max);
  task.groups[sentence] = {task.first_row(sentence), lists ? now.live : 0, task.rules.keep, sentence * task.rules.keep};
}

/// Begins a sentence; run by a warp.
template <class Block>
SLUICE_DEVICE void begin_beam(Block& block, BeamTask const& task, std::int32_t number) {
  auto const start = task.starts[number];
  BeamSentence now;
  now.running = start.max > 0 ? 1 : 0, now.live = now.running;
  now.generated = now.prefix = start.generated;
  now.min = start.min, now.max = start.max, now.held = start.held;
  auto const first = task.first_row(start.number);
  for (auto slot = block.thread(); slot < task.rules.width; slot += 32) {
    if (slot == 0 && now.running != 0) {
      live_row(task, now, first, first, start.last);
    } else {
      idle_row(task, first + slot);
      task.moves[first + slot] = {first + slot, 0, 0};
    }
  }
  if (block.thread() != 0) return;
  auto const added = now.running - task.state[start.number].running;
  if (added != 0) block.add(task.remaining, added);
  task.lines[first] = {start.log_prob, first};
  task.state[start.number] = now;
  write_group(task, now, start.number);
}

}  // namespace sluice::inline v0::cuda::detail
