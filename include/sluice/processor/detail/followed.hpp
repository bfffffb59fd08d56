// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a slot, and a rule's states for them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/processor/logits_processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::inline v0::detail {

/// The tokens of a hypothesis, and the rule's state after every output token.
template <Rule R>
class Followed {
 public:
  /// Starts after the prompt, before the first output token.
  void begin(std::span<Token const> prompt, typename R::State const& initial) {
    tokens_.assign(prompt.begin(), prompt.end()), prompt_ = prompt.size();
    after_.assign(1, initial);
  }
  void push(R const& rule, Token token) {
    tokens_.push_back(token);
    if (tokens_.size() > prompt_) after_.push_back(rule.next(after_.back(), token));
  }
  /// Rolls back to `length` tokens, if there are more.
  void cut(std::int32_t length) {
    tokens_.erase(tokens_.begin() + length, tokens_.end());
    after_.erase(after_.begin() + static_cast<std::ptrdiff_t>(outputs(static_cast<std::size_t>(length))) + 1,
                 after_.end());
  }

  /// The state after the last token.
  typename R::State const& state() const { return after_.back(); }
  /// The state after `length` tokens.
  typename R::State const& state(std::size_t length) const { return after_[outputs(length)]; }
  /// The output so far; empty until the whole prompt has been fed.
  std::span<Token const> output() const { return std::span(tokens_).subspan((std::min)(prompt_, tokens_.size())); }
  /// The number of output tokens among the first `length` tokens.
  std::size_t outputs(std::size_t length) const { return length > prompt_ ? length - prompt_ : 0; }

 private:
  std::vector<Token> tokens_;               // prompt and output
  std::vector<typename R::State> after_{};  // [n]: after n output tokens
  std::size_t prompt_ = 0;
};

}  // namespace sluice::inline v0::detail
