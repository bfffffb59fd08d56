// SPDX-License-Identifier: Apache-2.0
/// \file
/// A language model whose lines are a hash of the text, as a Model and as a LanguageModel.
#pragma once

#include <sluice/core/matrix_view.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/frames/language_model.hpp>

#include <support/table_model.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <variant>
#include <vector>

namespace sluice::test {

/// Token 0 is bos, 1 is eos; label v of a text is token v + 2.
struct HashedText {
  std::int32_t labels = 3;
  float scale = 3;

  static std::uint64_t begin() { return hash_mix(77); }
  static std::uint64_t next(std::uint64_t key, Token token) {
    return hash_mix(key ^ (static_cast<std::uint64_t>(token + 1) * 0x9E3779B97F4A7C15u));
  }
  float logit(std::uint64_t key, Token token) const {
    auto const bits = hash_mix(key ^ (static_cast<std::uint64_t>(token + 1) * 0xD1B54A32D192ED03u)) >> 40;
    return scale * static_cast<float>(static_cast<double>(bits) / 16777216.0);
  }
  double log_prob(std::uint64_t key, Token token) const {
    double sum = 0;
    for (Token other = 0; other < labels + 2; ++other) sum += std::exp(static_cast<double>(logit(key, other)));
    return static_cast<double>(logit(key, token)) - std::log(sum);
  }
  /// Of a whole text and its end.
  double log_prob(std::vector<Token> const& text) const {
    auto key = begin();
    double sum = 0;
    for (auto const label : text) sum += log_prob(key, label + 2), key = next(key, label + 2);
    return sum + log_prob(key, 1);
  }
};

class HashedTextScore {
 public:
  struct State {
    std::uint64_t key = 0;
  };
  explicit HashedTextScore(HashedText text = {}, FusionWeights const& weights = {}) : text_(text), weights_(weights) {}

  State initial(Sentence const& sentence) const {
    if (sentence.vocabulary->size != text_.labels || sentence.vocabulary->eos.size() != 1)
      throw std::logic_error("not the vocabulary of texts");
    blank_ = sentence.vocabulary->eos[0];
    return {HashedText::begin()};
  }
  State next(State state, Token token) const {
    if (token == blank_) throw std::logic_error("a language model is fed the blank");
    return {HashedText::next(state.key, token + 2)};
  }
  float score(State state, Token token) const {
    if (token == blank_) throw std::logic_error("a language model is asked for the blank");
    return static_cast<float>(weights_.weight * text_.log_prob(state.key, token + 2) + weights_.bonus);
  }
  float end(State state) const { return static_cast<float>(weights_.weight * text_.log_prob(state.key, 1)); }
  float most(State) const { return static_cast<float>(weights_.bonus > 0 ? weights_.bonus : 0); }

 private:
  HashedText text_;
  FusionWeights weights_;
  mutable Token blank_ = -1;
};

/// Throws for a slot that is not as long as its row says, or longer than `most` says.
class HashedTextModel {
 public:
  using Source = std::monostate;
  static constexpr Abilities abilities{.ragged = true};
  explicit HashedTextModel(HashedText text, Limits const& most = {}) : text_(text), most_(most) {}

  Vocabulary vocabulary() const { return {.size = text_.labels + 2, .bos = 0, .eos = {1}}; }
  Limits limits() const { return most_; }
  void start(std::span<Source const* const>, std::span<Slot const> slots) {
    for (auto const slot : slots) at(slot) = {HashedText::begin(), 0}, ++live;
  }
  void release(std::span<Slot const> slots) {
    for (auto const slot : slots) at(slot) = {};
  }
  Scores<float> step(std::span<Row const> rows) {
    ++calls, fed += rows.size();
    std::vector<Held> held;
    for (auto const& row : rows) {
      auto one = at(row.from);
      if (one.length != row.length || row.tokens.size() != 1) throw std::logic_error("not what the slot holds");
      if ((row.tokens[0] == 0) != (one.length == 0)) throw std::logic_error("bos is not where it belongs");
      if (one.length > 0) one.key = HashedText::next(one.key, row.tokens[0]);
      if (++one.length > most_.length) throw std::logic_error("more than a slot holds");
      held.push_back(one);
    }
    lines_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      at(rows[i].to) = held[i];
      for (Token token = 0; token < text_.labels + 2; ++token) lines_.push_back(text_.logit(held[i].key, token));
    }
    return scores(lines_.data(), std::ssize(rows), std::ptrdiff_t{text_.labels} + 2);
  }

  std::uint64_t calls = 0, fed = 0, live = 0;

 private:
  struct Held {
    std::uint64_t key = 0;
    std::int32_t length = -1;
  };
  Held& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= slots_.size()) slots_.resize(i + 1);
    return slots_[i];
  }
  HashedText text_;
  Limits most_;
  std::vector<Held> slots_;
  std::vector<float> lines_;
};

}  // namespace sluice::test
