// SPDX-License-Identifier: Apache-2.0
/// \file
/// The recent tokens that a rule looks at.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::inline v0::detail {

/// The last tokens of prompt and output.
class RecentTokens {
 public:
  /// \param window  maximum number of tokens; -1: all
  RecentTokens(std::span<Token const> prompt, std::span<Token const> output, std::int32_t window)
      : prompt_(prompt), output_(output), size_(prompt.size() + output.size()) {
    if (window >= 0) size_ = (std::min)(size_, static_cast<std::size_t>(window));
  }
  std::size_t size() const { return size_; }
  /// The i-th token from the end; the last is number 0.
  Token back(std::size_t i) const {
    return i < output_.size() ? output_[output_.size() - 1 - i] : prompt_[prompt_.size() + output_.size() - 1 - i];
  }

 private:
  std::span<Token const> prompt_, output_;
  std::size_t size_;
};

/// The state of rules that look at the prompt: a span, since the sentence outlives its search.
struct SeenPrompt {
  std::span<Token const> prompt{};
};

inline void require_window(char const* name, std::int32_t window) {
  require(window >= -1, name, window, "must be -1, for all tokens, or a number of tokens");
}

}  // namespace sluice::inline v0::detail
