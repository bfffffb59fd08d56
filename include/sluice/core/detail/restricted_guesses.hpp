// SPDX-License-Identifier: Apache-2.0
/// \file
/// Applies restricting processors to guesses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_processor.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/detail/followed.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Guesses under processors that restrict outputs. Those that they forbid are dropped, along with all that follow them. Tokens that
/// they make certain are appended to those that stay.
class RestrictedGuesses {
 public:
  /// \param most  maximum length of an output; Limits::unlimited: unknown
  SLUICE_LAZY void begin(ProcessorPointers const& processors, std::int32_t most) {
    most_ = most, guesses_ = nullptr, count_ = 0;
    ++sentence_, restricting_.clear();
    for (std::size_t i = 0; i < processors.size(); ++i)
      if (processors[i]->restricts) restricting_.push_back(i);
  }

  /// The number of tokens that may still follow after `outputs` tokens.
  std::int32_t left(std::size_t outputs) const {
    return most_ == Limits::unlimited ? most_ : most_ - static_cast<std::int32_t>(outputs);
  }

  /// Call before the draft: remembers its position. Certain tokens form a chain, so no tree is requested where one is certain.
  /// \param held  the tokens in the draft's slot
  SLUICE_LAZY void ask(Followed const& held, Draft& draft) {
    guesses_ = draft.tokens, wanted_ = draft.count;
    if (guesses_ == nullptr) return;
    auto n = static_cast<std::size_t>(draft.length);
    count_ = 0;
    auto& first = add(held.outputs(n));
    auto const fresh = std::exchange(first.sentence, sentence_) != sentence_;
    first.states.resize(restricting_.size());
    for (std::size_t i = 0; i < restricting_.size(); ++i) {
      auto const& states = held[restricting_[i]];
      if (fresh) first.states[i] = states.another(std::move(first.states[i]));
      first.states[i]->copy_at(states, held.outputs(n));
    }
    for (auto const token : draft.pending)
      if (held.outputs(++n) > 0)
        for (auto const& one : first.states) one->push(token);
    first.outputs = held.outputs(n);
    if (draft.tree != nullptr && only(0) >= 0) draft.tree = nullptr;
    tree_ = draft.tree;
  }
  bool asked() const { return guesses_ != nullptr; }
  /// Frees what the states hold, not their memory.
  SLUICE_LAZY void clear() {
    for (auto& place : places_) {
      place.allowed.reset();
      for (auto const& one : place.states)
        if (one != nullptr) one->clear();
    }
  }

  /// Call once the guesses are there.
  /// \param most  maximum number on one path, certain ones included, if that is more than were requested
  SLUICE_LAZY void restrict(Vocabulary const& vocabulary, std::int32_t most) {
    auto& guesses = *std::exchange(guesses_, nullptr);
    auto* const parents = tree_ == nullptr || tree_->parents.empty() ? nullptr : &tree_->parents;
    if (parents != nullptr && tree_->draws)
      return;  // the tree records how it was drawn; its lines are restricted, which is enough
    keep_allowed(vocabulary, guesses, parents);
    add_certain(vocabulary, guesses, parents, (std::max)(wanted_, most));
  }

 private:
  /// The position after a guess or, for the first, after the last chosen token.
  struct Place {
    Buffer<std::unique_ptr<AnyFollower>> states{};  // [restricting processor]: only the last one is looked at
    std::size_t outputs = 0;                        // tokens of the output so far
    std::uint64_t sentence = 0;                     // the one that the states are of
    bool asked = false, inner = false;
    AllowedTokens allowed{};
  };
  using Tokens = std::vector<Token>;
  using Parents = std::vector<std::int32_t>;

  SLUICE_LAZY Place& add(std::size_t outputs) {
    if (count_ == places_.size()) places_.emplace_back();
    auto& place = places_[count_++];
    place.outputs = outputs, place.asked = place.inner = false;
    return place;
  }
  SLUICE_LAZY TokenSet const* allowed(std::size_t place) {
    auto& p = places_[place];
    if (!std::exchange(p.asked, true)) {
      p.allowed.reset();
      for (auto const& one : p.states) p.allowed.keep(one->may_follow(left(p.outputs)));
    }
    return p.allowed.get();
  }
  /// The only token allowed; -1: there are several, or none.
  SLUICE_LAZY Token only(std::size_t place) {
    auto const* const set = allowed(place);
    return set == nullptr ? -1 : set->only();
  }
  SLUICE_LAZY void go_on(std::size_t before, Token token) {
    auto const outputs = places_[before].outputs + 1;
    auto& next = add(outputs);
    auto& from = places_[before];
    from.inner = true;
    auto const fresh = std::exchange(next.sentence, sentence_) != sentence_;
    next.states.resize(from.states.size());
    for (std::size_t i = 0; i < from.states.size(); ++i) {
      if (fresh) next.states[i] = from.states[i]->another(std::move(next.states[i]));
      next.states[i]->copy_last(*from.states[i]), next.states[i]->push(token);
    }
  }

  SLUICE_LAZY void keep_allowed(Vocabulary const& vocabulary, Tokens& guesses, Parents* parents) {
    if (parents != nullptr)
      while (parents->size() < guesses.size()) parents->push_back(static_cast<std::int32_t>(parents->size()) - 1);
    numbers_.assign(1, 0);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      auto const before = static_cast<std::int32_t>(i) - 1, behind = parents == nullptr ? before : (*parents)[i];
      auto const number =
          behind < -1 || behind > before ? -1 : numbers_[static_cast<std::size_t>(std::int64_t{behind} + 1)];
      auto const token = guesses[i];
      numbers_.push_back(-1);
      if (number < 0 || !vocabulary.contains(token)) continue;
      auto const place = static_cast<std::size_t>(number);
      if (auto const* const set = allowed(place); set != nullptr && !set->contains(token)) continue;
      go_on(place, token);
      guesses[kept] = token;
      if (parents != nullptr) (*parents)[kept] = number - 1;
      numbers_.back() = static_cast<std::int32_t>(++kept);
    }
    guesses.resize(kept);
    if (parents != nullptr) parents->resize(kept);
  }

  SLUICE_LAZY void add_certain(Vocabulary const& vocabulary, Tokens& guesses, Parents* parents, std::int32_t depth) {
    auto const most = parents == nullptr ? depth : tree_->nodes;
    for (std::size_t i = 0; i < count_ && std::ssize(guesses) < most; ++i) {
      if (places_[i].inner || static_cast<std::int32_t>(places_[i].outputs - places_[0].outputs) >= depth) continue;
      auto const token = only(i);
      if (token < 0 || !vocabulary.contains(token)) continue;
      go_on(i, token);
      guesses.push_back(token);
      if (parents != nullptr) parents->push_back(static_cast<std::int32_t>(i) - 1);
    }
  }

  std::vector<Token>* guesses_ = nullptr;  // null: not asked
  DraftTree* tree_ = nullptr;              // the tree, if branches are allowed
  std::int32_t wanted_ = 0, most_ = 0;
  Buffer<std::size_t> restricting_;  // processors
  Buffer<Place> places_;             // [guess + 1], and more: their memory is used again
  std::size_t count_ = 0;            // of places in use
  std::uint64_t sentence_ = 0;
  std::vector<std::int32_t> numbers_;  // [guess + 1], as drafted: its place; -1: dropped
};

}  // namespace sluice::inline v0::detail
