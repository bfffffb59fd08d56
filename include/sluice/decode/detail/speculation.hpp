// SPDX-License-Identifier: Apache-2.0
/// \file
/// Speculative decoding: asks the model to guess tokens for the searches that verify guesses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/result.hpp>
#include <sluice/decode/detail/guess_policy.hpp>
#include <sluice/decode/detail/interfaces.hpp>
#include <sluice/decode/detail/loop_state.hpp>
#include <sluice/decode/detail/results.hpp>
#include <sluice/decode/detail/running.hpp>
#include <sluice/decode/detail/step.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace sluice::inline v0::detail {

/// Collects the drafts that the sentences of a step want, and asks the model for all of them in one call. Does nothing unless
/// model and search support guesses. Learns what guesses cost and bring.
class Speculation {
 public:
  SLUICE_LAZY Speculation(LoopState& state, Results& results)
      : state_(state), results_(results), on_(state.model.proposes && state.searches.drafts) {}

  /// To be called after a step has run: notes how long it and its guesses took.
  SLUICE_LAZY void learn(Step const& step) {
    drafts_.clear();
    if (!on_) return;
    auto const& seconds = state_.statistics.seconds;
    auto const now = seconds.model + seconds.output + seconds.search;
    auto const spent = now - std::exchange(seconds_, now);
    auto const& rows = step.plan().rows;
    // A step is no measure if it has tokens of a prompt, or if many of its sentences begin: the encoder has emptied the caches.
    std::size_t sentences = 0, fresh = 0, tokens = 0, prompts = 0;
    for (auto const* s : step.chosen()) {
      if (s->rows() == 0) continue;
      std::size_t its = 0;
      for (auto i = s->part.from.rows; i < s->part.to.rows; ++i) its += rows[i].tokens.size();
      ++sentences, tokens += its;
      if (!s->prefill.done()) ++fresh, prompts += its - 1;
    }
    if (sentences == 0 || 4 * fresh > sentences || prompts > 0) return policy_.pass();
    policy_.step(spent, sentences, tokens - sentences);
  }

  /// Asks a sentence that continues whether it wants guesses.
  SLUICE_LAZY void ask(Running& s) {
    if (!on_ || !s.prefill.done()) return;
    Draft draft{.slot = s.base,
                .costs = policy_.costs(),
                .rates = policy_.rates(),
                .measure = policy_.measure(),
                .remember = s.request->remember};
    try {
      if (s.search->draft(draft)) drafts_.push_back(draft);
    } catch (...) {
      results_.finish_by_exception(s, Failure::search);
    }
    policy_.count(draft.verified, draft.right, draft.most);
  }

  /// Has the model guess for all sentences that want it. If it throws, these sentences end.
  SLUICE_LAZY void propose(Step& step) {
    if (drafts_.empty()) return;
    state_.stopwatch.book(state_.statistics.seconds.search);
    try {
      state_.model.propose(drafts_);
      state_.stopwatch.book(state_.statistics.seconds.model);
    } catch (...) {
      for (auto* s : step.chosen())
        if (!s->ended && std::any_of(drafts_.begin(), drafts_.end(), [&](Draft const& d) { return d.slot == s->base; }))
          step.fail(*s, std::current_exception());
    }
  }

 private:
  LoopState& state_;
  Results& results_;
  bool on_;
  Buffer<Draft> drafts_;
  GuessPolicy policy_;
  double seconds_ = 0;  // of all steps so far
};

}  // namespace sluice::inline v0::detail
