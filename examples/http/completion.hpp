// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a request to /v1/completions says, in OpenAI's words; a Backend makes Settings of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace serve {

/// Nothing: not said.
struct Completion {
  std::optional<double> temperature{};  ///< in [0, 2]
  std::optional<double> top_p{};        ///< in (0, 1]
  std::optional<std::uint64_t> seed{};
  std::int32_t choices = 1;               ///< `n`: of each prompt
  std::optional<std::int32_t> best_of{};  ///< of so many; at least `choices`
  std::optional<std::int32_t> max_tokens{};
  std::vector<std::string> stop{};         ///< up to four texts
  std::optional<std::int32_t> logprobs{};  ///< 0 to 5: of the tokens, and of so many that were the most probable there
  bool echo = false;                       ///< the prompt comes first
};

}  // namespace serve
