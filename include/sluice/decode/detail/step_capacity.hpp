// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which of the sentences that the schedule chose can step now.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/types.hpp>
#include <sluice/decode/detail/cache_budget.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/preemption.hpp>
#include <sluice/decode/detail/prefix_cache.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sluice::inline v0::detail {

/// Leaves out sentences that wait for a shared prefix, for their share of the prompt chunk, or for room in the KV cache. The
/// oldest sentence never waits: if it has no room, the youngest is preempted.
class StepCapacity {
 public:
  StepCapacity(LoopState& state, Preemption& preemption, std::int32_t prompt_chunk)
      : state_(state), preemption_(preemption), prefix_cache_(state), prompt_chunk_(prompt_chunk) {}

  /// Removes from `picked` what cannot step. False: a sentence was preempted, and the schedule must choose again.
  SLUICE_LAZY bool fit(std::span<Live const> live, std::vector<std::int32_t>& picked) {
    if (picked.empty()) return true;
    std::sort(picked.begin(), picked.end());  // the oldest first
    if (state_.cache.caches_prefixes()) wait_for_prefixes(picked);
    chunk_prompts(picked);
    return !state_.cache.limited() || fit_cache(live, picked);
  }

  SLUICE_LAZY std::string too_long() const {
    return "the model has room for " + std::to_string(state_.cache.capacity()) +
           " tokens in all its slots: not enough for this sentence alone";
  }

 private:
  Running& at(std::int32_t i) { return state_.running[static_cast<std::size_t>(i)]; }

  /// A sentence waits if an older one is about to feed a prefix of its prompt.
  SLUICE_LAZY void wait_for_prefixes(std::vector<std::int32_t>& picked) {
    auto const waits = [&](std::int32_t i) {
      auto& s = at(i);
      if (!s.prefill.fresh()) return false;
      s.share = prefix_cache_.find(s.prefill.prompt().first(s.prefill.shareable())).length;
      return prefix_cache_.about_to_be_fed(s) >= (std::max)(s.share + 1, CacheBudget::min_prefix);
    };
    picked.erase(std::remove_if(picked.begin() + 1, picked.end(), waits), picked.end());
    if (waits(picked.front()) && picked.size() > 1) picked.erase(picked.begin());
  }

  /// Chunked prefill: divides the prompt tokens that the step may feed.
  SLUICE_LAZY void chunk_prompts(std::vector<std::int32_t>& picked) {
    auto left = prompt_chunk_ > 0 ? prompt_chunk_ : (std::numeric_limits<std::int32_t>::max)();
    std::erase_if(picked, [&](std::int32_t i) {
      auto& s = at(i);
      if (s.prefill.done()) return false;
      auto const rest = s.prefill.next(s.prefill.fresh() ? s.share : 0);
      s.chunk = (std::min)(rest, left);
      left -= s.chunk;
      return s.chunk == 0;
    });
  }

  /// Counts the most tokens that each sentence could need. What it shares or releases is known only when it plans.
  SLUICE_LAZY bool fit_cache(std::span<Live const> live, std::vector<std::int32_t>& picked) {
    auto const need = [&](std::int32_t i) -> std::int64_t {
      return at(i).prefill.done() ? live[static_cast<std::size_t>(i)].rows : at(i).chunk;
    };
    auto& cache = state_.cache;
    while (need(picked.front()) > cache.free_tokens() && cache.evict()) {
    }
    if (need(picked.front()) > cache.free_tokens() && state_.running.size() > 1) {
      preemption_.preempt(state_.running[state_.running.size() - 1]);
      cache.stop_admission();
      state_.running.sweep();
      return false;
    }
    auto left = cache.free_tokens() - need(picked.front());
    picked.erase(std::remove_if(picked.begin() + 1, picked.end(),
                                [&](std::int32_t i) {
                                  if (need(i) > left) return true;
                                  left -= need(i);
                                  return false;
                                }),
                 picked.end());
    return true;
  }

  LoopState& state_;
  Preemption& preemption_;
  PrefixCache prefix_cache_;
  std::int32_t prompt_chunk_;
};

}  // namespace sluice::inline v0::detail
