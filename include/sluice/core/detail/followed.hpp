// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tokens of a slot, and the states of a list of processors along them.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_processor.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// The tokens that several processors allow together.
class AllowedTokens {
 public:
  void reset() { set_ = nullptr, held_ = nullptr, meets_ = false; }
  SLUICE_LAZY void keep(TokenSet const& set) {
    if (get() == nullptr) set_ = &set;
    else meet(set);
  }
  SLUICE_LAZY void keep(std::shared_ptr<TokenSet const> set) {
    if (set == nullptr) return;
    if (get() == nullptr) held_ = std::move(set), set_ = held_.get();
    else meet(*set);
  }
  /// Null: all.
  TokenSet const* get() const { return meets_ ? &both_ : set_; }

 private:
  SLUICE_LAZY void meet(TokenSet const& set) {
    if (!meets_) both_ = *set_;
    both_.keep(set), meets_ = true;
  }
  TokenSet const* set_ = nullptr;
  std::shared_ptr<TokenSet const> held_{};
  TokenSet both_{};
  bool meets_ = false;
};

/// The tokens of a hypothesis, and every processor's state after each token of its output.
class Followed {
 public:
  /// Starts after the prompt, before the first output token.
  SLUICE_LAZY void begin(ProcessorPointers const& processors, Sentence const& sentence) {
    tokens_.assign(sentence.prompt.begin(), sentence.prompt.end()), prompt_ = sentence.prompt.size();
    states_.resize(processors.size());
    for (std::size_t i = 0; i < processors.size(); ++i)
      states_[i] = processors[i]->follow(sentence, std::move(states_[i]));
  }
  /// Makes room for what another holds.
  SLUICE_LAZY void begin_like(Followed const& other) {
    states_.resize(other.states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i] = other.states_[i]->another(std::move(states_[i]));
  }
  /// Frees what the states hold, not their memory.
  SLUICE_LAZY void clear() {
    for (auto const& one : states_)
      if (one != nullptr) one->clear();
  }
  SLUICE_LAZY void copy(Followed const& other) {
    if (this == &other) return;
    tokens_ = other.tokens_, prompt_ = other.prompt_;
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i]->copy(*other.states_[i]);
  }
  SLUICE_LAZY void push(Token token) {
    tokens_.push_back(token);
    if (tokens_.size() > prompt_)
      for (auto const& one : states_) one->push(token);
  }
  /// Rolls back to `length` tokens, if there are more.
  SLUICE_LAZY void cut(std::int32_t length) {
    auto const count = static_cast<std::size_t>(length);
    if (tokens_.size() <= count) return;
    tokens_.resize(count);
    for (auto const& one : states_) one->cut(outputs(count));
  }

  /// The i-th processor's states; its last is that after the last token.
  AnyFollower const& operator[](std::size_t i) const { return *states_[i]; }
  std::size_t size() const { return states_.size(); }
  /// The output so far; empty until the whole prompt has been fed.
  std::span<Token const> output() const { return std::span(tokens_).subspan((std::min)(prompt_, tokens_.size())); }
  /// The number of output tokens among the first `length` tokens.
  std::size_t outputs(std::size_t length) const { return length > prompt_ ? length - prompt_ : 0; }

 private:
  std::vector<Token> tokens_;                    // prompt and output
  Buffer<std::unique_ptr<AnyFollower>> states_;  // [processor]
  std::size_t prompt_ = 0;
};

}  // namespace sluice::inline v0::detail
