// SPDX-License-Identifier: Apache-2.0
/// \file
/// Penalties for tokens that have occurred before, in a window over the output and optionally the prompt.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/search.hpp>
#include <sluice/search/rule/detail/recent_tokens.hpp>
#include <sluice/search/rule/rule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::inline v0 {

/// llama.cpp's penalties sampler (llama_sampler_init_penalties). If a token occurs n >= 1 times in the window, its
/// score is divided by `repetition` (multiplied if it is not positive; Keskar et al. 2019), then reduced by n *
/// frequency + presence. OpenAI's service and vLLM have the same frequency and presence penalties, over the whole
/// output and without the prompt. Without prompt and window, `repetition` alone is RepetitionPenalty. Off by default.
///
/// O(w log w) per line, with w the number of tokens in the window; one edit per distinct token; more than 64 edits cost
/// a copy of the line.
struct Penalties {
  float repetition = 1;      ///< > 0; 1 = off; llama.cpp: penalty_repeat
  float frequency = 0;       ///< finite; llama.cpp: penalty_freq
  float presence = 0;        ///< finite; llama.cpp: penalty_present
  std::int32_t window = 64;  ///< number of most recent tokens to look at; 0 = off; -1 = all; llama.cpp: penalty_last_n
  bool prompt = true;        ///< whether to include the prompt, as llama.cpp does

  void check() const {
    require(repetition > 0 && std::isfinite(repetition) && std::isfinite(1 / repetition), "penalties.repetition",
            repetition, "must be a number > 0");
    require(std::isfinite(frequency), "penalties.frequency", frequency, "must be a number");
    require(std::isfinite(presence), "penalties.presence", presence, "must be a number");
    detail::require_window("penalties.window", window);
  }
  using State = detail::SeenPrompt;
  State initial(Sentence const& sentence) const { return prompt ? State{sentence.prompt} : State{}; }
  State next(State state, Token) const { return state; }
  void edit(State state, Output const& output, std::vector<Edit>& edits) const {
    if (window == 0 || (repetition == 1 && frequency == 0 && presence == 0)) return;
    detail::RecentTokens const recent(state.prompt, output.tokens, window);
    auto const first = edits.size();
    for (std::size_t i = 0; i < recent.size(); ++i)
      if (output.vocabulary.contains(recent.back(i))) edits.push_back({recent.back(i)});
    auto const begin = edits.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, edits.end(), [](Edit const& a, Edit const& b) { return a.token < b.token; });
    auto to = first;
    for (auto i = first; i < edits.size();) {
      auto const token = edits[i].token;
      auto count = 0.0f;
      for (; i < edits.size() && edits[i].token == token; ++i) ++count;
      edits[to++] = {token, -(count * frequency + presence), repetition};
    }
    edits.resize(to);
  }
};

}  // namespace sluice::inline v0
