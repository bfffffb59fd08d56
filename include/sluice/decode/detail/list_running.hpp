// SPDX-License-Identifier: Apache-2.0
/// \file
/// The running sentences as a schedule sees them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/result.hpp>
#include <sluice/core/search.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/schedule.hpp>

namespace sluice::inline v0::detail {

/// Lists the running sentences, oldest first. A sentence whose search throws ends and is not listed.
SLUICE_LAZY void list_running(LoopState& state, Results& results, Buffer<Live>& live) {
  live.clear();
  auto ended = false;
  for (auto const& s : state.running) {
    Progress progress;
    try {
      progress = s->prefill.done() ? s->search->progress() : s->prefill.progress();
    } catch (...) {
      results.finish_by_exception(*s, Failure::search);
      ended = true;
      continue;
    }
    live.push_back({.length = progress.length,
                    .width = progress.width,
                    .rows = progress.rows > 0 ? progress.rows : progress.width,
                    .block = progress.block,
                    .age = s->age,
                    .turn = s->turn,
                    .source_length = s->request->source_length});
  }
  if (ended) state.running.sweep();
}

}  // namespace sluice::inline v0::detail
