// SPDX-License-Identifier: Apache-2.0
/// \file
/// Applies a restricting rule to guesses.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/processor/detail/followed.hpp>
#include <sluice/processor/logits_processor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// Guesses under a rule. Guesses that the rule forbids are dropped, along with all that follow them. Tokens that it
/// makes certain are appended to those that stay.
template <Rule R>
class RestrictedGuesses {
 public:
  /// \param most  maximum length of an output; Limits::unlimited: unknown
  void begin(std::int32_t most) { most_ = most, guesses_ = nullptr; }

  /// The number of tokens that may still follow after `outputs` tokens.
  std::int32_t left(std::size_t outputs) const {
    return most_ == Limits::unlimited ? most_ : most_ - static_cast<std::int32_t>(outputs);
  }

  /// Call before the draft: remembers its position. Certain tokens form a chain, so no tree is requested where one is
  /// certain.
  /// \param held  the tokens in the draft's slot
  void ask(R const& rule, Followed<R> const& held, Draft& draft) {
    guesses_ = draft.tokens, wanted_ = draft.count;
    if (guesses_ == nullptr) return;
    auto n = static_cast<std::size_t>(draft.length);
    auto state = held.state(n);
    for (auto const token : draft.pending)
      if (held.outputs(++n) > 0) state = rule.next(std::as_const(state), token);
    places_.clear();
    places_.push_back({std::move(state), held.outputs(n)});
    if (draft.tree != nullptr && only(rule, 0) >= 0) draft.tree = nullptr;
    tree_ = draft.tree;
  }
  bool asked() const { return guesses_ != nullptr; }

  /// Call once the guesses are there.
  /// \param most  maximum number on one path, certain ones included, if that is more than were requested
  void restrict(R const& rule, Vocabulary const& vocabulary, std::int32_t most) {
    auto& guesses = *std::exchange(guesses_, nullptr);
    auto* const parents = tree_ == nullptr || tree_->parents.empty() ? nullptr : &tree_->parents;
    if (parents != nullptr && tree_->draws)
      return;  // the tree records how it was drawn; its lines are restricted, which is enough
    keep_allowed(rule, vocabulary, guesses, parents);
    add_certain(rule, vocabulary, guesses, parents, (std::max)(wanted_, most));
  }

 private:
  /// The position after a guess or, for the first, after the last chosen token.
  struct Place {
    typename R::State state;
    std::size_t outputs = 0;  // tokens of the output so far
    bool asked = false, inner = false;
    std::shared_ptr<TokenSet const> allowed{};
  };
  using Tokens = std::vector<Token>;
  using Parents = std::vector<std::int32_t>;

  TokenSet const* allowed(R const& rule, std::size_t place) {
    auto& p = places_[place];
    if (!std::exchange(p.asked, true)) p.allowed = rule.may_follow(std::as_const(p.state), left(p.outputs));
    return p.allowed.get();
  }
  /// The only token allowed; -1: there are several, or none.
  Token only(R const& rule, std::size_t place) {
    auto const* const set = allowed(rule, place);
    return set == nullptr ? -1 : set->only();
  }
  void go_on(R const& rule, std::size_t place, Token token) {
    auto& before = places_[place];
    before.inner = true;
    Place next{rule.next(std::as_const(before.state), token), before.outputs + 1};
    places_.push_back(std::move(next));
  }

  void keep_allowed(R const& rule, Vocabulary const& vocabulary, Tokens& guesses, Parents* parents) {
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
      if (auto const* const set = allowed(rule, place); set != nullptr && !set->contains(token)) continue;
      go_on(rule, place, token);
      guesses[kept] = token;
      if (parents != nullptr) (*parents)[kept] = number - 1;
      numbers_.back() = static_cast<std::int32_t>(++kept);
    }
    guesses.resize(kept);
    if (parents != nullptr) parents->resize(kept);
  }

  void add_certain(R const& rule, Vocabulary const& vocabulary, Tokens& guesses, Parents* parents, std::int32_t depth) {
    auto const most = parents == nullptr ? depth : tree_->nodes;
    for (std::size_t i = 0; i < places_.size() && std::ssize(guesses) < most; ++i) {
      if (places_[i].inner || static_cast<std::int32_t>(places_[i].outputs - places_[0].outputs) >= depth) continue;
      auto const token = only(rule, i);
      if (token < 0 || !vocabulary.contains(token)) continue;
      go_on(rule, i, token);
      guesses.push_back(token);
      if (parents != nullptr) parents->push_back(static_cast<std::int32_t>(i) - 1);
    }
  }

  std::vector<Token>* guesses_ = nullptr;  // null: not asked
  DraftTree* tree_ = nullptr;              // the tree, if branches are allowed
  std::int32_t wanted_ = 0, most_ = 0;
  std::vector<Place> places_;          // [guess + 1]
  std::vector<std::int32_t> numbers_;  // [guess + 1], as drafted: its place; -1: dropped
};

}  // namespace sluice::inline v0::detail
