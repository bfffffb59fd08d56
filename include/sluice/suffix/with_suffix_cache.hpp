// SPDX-License-Identifier: Apache-2.0
/// \file
/// Suffix decoding: guesses from what was decoded before.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/model.hpp>
#include <sluice/core/types.hpp>
#include <sluice/model/detail/text_following.hpp>
#include <sluice/suffix/detail/frequent_paths.hpp>
#include <sluice/suffix/detail/suffix_guesses.hpp>
#include <sluice/suffix/suffix_cache.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Options of WithSuffixCache.
struct SuffixDecoding {
  std::int32_t shortest = 1;  ///< the shortest match, in tokens; >= 1
  /// guesses on a path per token of the match, at most: a short match is followed for a short while; > 0. `max_spec_factor` of vLLM and
  /// ArcticInference
  double factor = 1;
  /// a guess is made if at least this fraction of what followed begins with the path up to it; 0 to 1. `min_token_prob`
  double least = 0.1;
  std::int32_t samples = 16;  ///< how many places with a match are looked at, at most; >= 1
  bool own = true;            ///< also look in the sentence's own source, prompt and output
  bool source =
      true;  ///< the source, if it is a list of tokens, precedes the prompt: what is decoded for a source is then found
             ///< again for one that ends the same

  void check() const {
    require(shortest >= 1, "shortest", shortest, "must be at least 1");
    require(std::isfinite(factor) && factor > 0, "factor", factor, "must be a number above 0");
    require(least >= 0 && least <= 1, "least", least, "must be from 0 to 1");
    require(samples >= 1, "samples", samples, "must be at least 1");
  }
};

/// A model that guesses what followed the same last tokens in earlier outputs (suffix decoding: Oliaro et al. 2025), which it also
/// stores in a SuffixCache as sentences end. Many models, in many threads, may share one.
///
/// The longest match decides, or one of the next shorter ones; as many tokens are guessed as followed it often enough (`least`), and
/// as its length allows (`factor`). A guess expects that a token is right as often as it followed before. The sentence's own text is a
/// second source of guesses, and the model's own proposer (heads, a draft, prompt lookup) the third: whichever expects most is asked,
/// by how it did in this sentence so far. For a search that takes trees, the most frequent continuations form one.
///
/// A request with Request::remember = false neither leaves anything in the cache nor gets anything from it.
///
/// Guesses change what is decoded only where a rule is relaxed (acceptance::TopK, Distance) or draws (acceptance::Rejection): then
/// outputs also depend on what the cache holds.
///
/// Refers to model and cache, which must outlive it. Has the model's abilities. A guess costs O(log tokens of the cache + own text).
template <Model M>
class WithSuffixCache : public detail::TextFollowing<M> {
  using Base = detail::TextFollowing<M>;

 public:
  using Source = typename M::Source;

  /// \throws std::invalid_argument  for options that make no sense, and for a cache with tokens that the model does not have
  WithSuffixCache(M& model, SuffixCache& cache, SuffixDecoding const& options = {})
      : Base(model), cache_(cache), options_(options) {
    options_.check();
    auto const size = Vocabulary(model.vocabulary()).size;
    require(cache.largest_token() < size, "WithSuffixCache: cache.largest_token()", cache.largest_token(),
            "is outside the vocabulary of " + std::to_string(size) + ": the cache is of another model");
  }

  bool proposes() const { return true; }

  void start(std::span<Source const* const> sources, std::span<Slot const> slot_numbers) {
    begin(slot_numbers);
    Base::start(sources, slot_numbers);
  }
  template <class Batch>
    requires EncodingModel<M>
  void start(Batch& encoded, std::span<std::int32_t const> items, std::span<Slot const> slot_numbers) {
    begin(slot_numbers);
    Base::start(encoded, items, slot_numbers);
  }

  void propose(std::span<Draft const> drafts) {
    auto const places = cache_.places();
    auto const inner = asks_inner();
    others_.clear(), waiting_.clear();
    if (guesses_.size() < drafts.size()) guesses_.resize(drafts.size());
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      auto const& draft = drafts[i];
      auto& slot = at(draft.slot);
      read_text(draft);
      learn(slot);
      slot.length = text_.size();
      auto const best = guess(draft, slot, *places, guesses_[i]);
      if (inner && slot.inner.mean() >= best) others_.push_back(draft), waiting_.push_back(i);
      else give(guesses_[i], draft, slot);
    }
    if constexpr (ProposingModel<M>)
      if (!others_.empty()) this->model_.propose(std::span<Draft const>(others_));
    for (std::size_t i = 0; i < others_.size(); ++i) {
      auto const& draft = others_[i];
      auto& slot = at(draft.slot);
      if (draft.tokens->empty()) give(guesses_[waiting_[i]], draft, slot);
      else note(slot, Slots::by_inner, 0, *draft.tokens, draft.tree != nullptr ? draft.tree->parents : none_);
    }
  }

  /// Stores an output.
  void remember(Decoded const& decoded) {
    auto const& source = this->source_of(decoded.slot);
    before_.assign(source.begin(), source.end());
    before_.insert(before_.end(), decoded.prompt.begin(), decoded.prompt.end());
    cache_.insert(before_, decoded.output);
    if constexpr (RememberingModel<M>) this->model_.remember(decoded);
  }

 private:
  /// How many guesses were right in the last rounds, beside how many were expected to be. Old rounds decay by a tenth each.
  struct Record {
    double right, expected;
    void count(double now, double wanted) { right = 0.9 * right + now, expected = 0.9 * expected + wanted; }
    double mean() const { return right / expected; }
  };
  struct Slots {
    static constexpr int none = -1, by_cache = 0, by_own_text = 1, by_inner = 2;
    std::vector<Token> guessed{};  // in the last round, after `length` tokens
    std::vector<std::int32_t> parents{};
    std::size_t length = 0;
    int made_by = none, waiting = none;  // what made those, and the guesses that wait to be given
    double expected = 0;
    Record cache{2, 2}, own{2, 2};  // a token for each that is expected
    Record inner{2, 2};             // tokens in a round
  };

  Slots& at(Slot slot) {
    auto const i = static_cast<std::size_t>(slot);
    if (i >= slots_.size()) slots_.resize(i + 1);
    return slots_[i];
  }
  void begin(std::span<Slot const> slot_numbers) {
    for (auto const number : slot_numbers) {
      auto& slot = at(number);
      slot.made_by = Slots::none, slot.cache = slot.own = slot.inner = {2, 2};
    }
  }
  bool asks_inner() const {
    if constexpr (ProposingModel<M>) return sluice::proposes(std::as_const(this->model_));
    else return false;
  }

  /// Sets text_ to what the sentence holds, behind its source.
  void read_text(Draft const& draft) {
    text_.clear();
    if (options_.source) text_ = this->source_of(draft.slot);
    source_ = text_.size();
    auto const held = this->held(draft.slot, draft.length);
    text_.insert(text_.end(), held.begin(), held.end());
    text_.insert(text_.end(), draft.pending.begin(), draft.pending.end());
  }

  /// Counts how many of the last guesses are in the text.
  void learn(Slots& slot) {
    auto const made_by = std::exchange(slot.made_by, Slots::none);
    if (made_by == Slots::none || slot.length > text_.size()) return;
    double right = 0;
    std::int32_t parent = -1;
    for (auto i = slot.length; i < text_.size(); ++i) {
      auto g = static_cast<std::size_t>(std::int64_t{parent} + 1);
      auto const above = [&](std::size_t n) {
        return n < slot.parents.size() ? slot.parents[n] : static_cast<std::int32_t>(n) - 1;
      };
      while (g < slot.guessed.size() && (above(g) != parent || slot.guessed[g] != text_[i])) ++g;
      if (g == slot.guessed.size()) break;
      parent = static_cast<std::int32_t>(g), right += 1;
    }
    if (made_by == Slots::by_inner) slot.inner.count(right, 1);
    else (made_by == Slots::by_cache ? slot.cache : slot.own).count(right, slot.expected);
  }

  /// Makes the guesses of the cache, or of the sentence's own text. Returns how many are expected to be right.
  double guess(Draft const& draft, Slots& slot, detail::SuffixPlaces const& places, detail::PathGuesses& made) {
    auto const branches = draft.tree != nullptr && draft.tree->leaves > 1;
    detail::FrequentPaths::Bounds const bounds{.depth = (std::max)(draft.count, 0),
                                               .nodes = branches ? draft.tree->nodes : (std::max)(draft.count, 0),
                                               .leaves = branches ? draft.tree->leaves : 1,
                                               .cost = draft.tree != nullptr ? draft.tree->cost : 0,
                                               .least = options_.least};
    detail::SuffixGuesses::Options const options{
        .shortest = options_.shortest, .samples = options_.samples, .factor = options_.factor};
    made.clear();
    slot.waiting = Slots::by_cache;
    double best = -1;
    if (draft.remember) {
      finder_.of_others(places, text_, options, bounds, made);
      best = made.expected * slot.cache.mean();
    }
    if (options_.own) {
      finder_.of_text(text_, source_, places.depth, options, bounds, own_);
      if (auto const other = own_.expected * slot.own.mean(); other > best || made.tokens.empty())
        std::swap(made, own_), best = other, slot.waiting = Slots::by_own_text;
    }
    return made.tokens.empty() ? -1 : best;
  }

  void give(detail::PathGuesses const& guesses, Draft const& draft, Slots& slot) {
    draft.tokens->insert(draft.tokens->end(), guesses.tokens.begin(), guesses.tokens.end());
    if (draft.tree != nullptr && draft.tree->leaves > 1) draft.tree->parents = guesses.parents;
    if (!guesses.tokens.empty()) note(slot, slot.waiting, guesses.expected, guesses.tokens, guesses.parents);
  }
  void note(Slots& slot, int made_by, double expected, std::span<Token const> tokens,
            std::span<std::int32_t const> parents) {
    slot.guessed.assign(tokens.begin(), tokens.end()), slot.parents.assign(parents.begin(), parents.end());
    slot.made_by = made_by, slot.expected = expected;
  }

  SuffixCache& cache_;
  SuffixDecoding options_;
  std::vector<Slots> slots_;
  std::vector<Token> text_, before_;
  std::size_t source_ = 0;
  detail::SuffixGuesses finder_;
  detail::PathGuesses own_;
  std::vector<detail::PathGuesses> guesses_;  // [draft]
  std::vector<Draft> others_;
  std::vector<std::size_t> waiting_;  // [others_]: their drafts
  std::vector<std::int32_t> none_;
};

}  // namespace sluice::inline v0
