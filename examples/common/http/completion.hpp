// SPDX-License-Identifier: Apache-2.0
/// \file
/// A request to /v1/completions, in OpenAI's terms; a Backend turns it into Settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace serve {

/// The tools that a chat may call.
struct Tools {
  std::string json{};     ///< `tools`, as they were sent; empty: none
  std::string name{};     ///< of the only one that may be called, and must be; empty: any
  bool required = false;  ///< at least one call must come
  bool never = false;     ///< none may
  bool parallel = true;   ///< several may

  bool any() const { return !json.empty(); }
  bool may_be_called() const { return any() && !never; }
};

/// Nothing: not given.
struct Completion {
  std::optional<double> temperature{};  ///< in [0, 2]
  std::optional<double> top_p{};        ///< in (0, 1]
  std::optional<std::uint64_t> seed{};
  std::int32_t choices = 1;               ///< `n`: outputs of each prompt
  std::optional<std::int32_t> best_of{};  ///< chosen from so many; at least `choices`
  std::optional<std::int32_t> max_tokens{};
  std::vector<std::string> stop{};         ///< up to four stop strings
  std::optional<std::int32_t> logprobs{};  ///< 0 to 5: also of so many most probable tokens at each position
  bool chat = false;           ///< a request to /v1/chat/completions, whose output has no bound of 16 tokens by default
  bool echo = false;           ///< the output begins with the prompt
  Tools tools{};               ///< of a chat
  bool reasons = false;        ///< a chat's output begins with what was thought
  std::int32_t thinking = -1;  ///< `thinking_token_budget`: at most so many tokens of that; -1: any number
};

}  // namespace serve
