// SPDX-License-Identifier: Apache-2.0
/// \file
/// A logits processor without its type.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/any_search.hpp>
#include <sluice/core/detail/buffer.hpp>
#include <sluice/core/logits_processor.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::inline v0::detail {

/// A processor's states along the output of one slot: one virtual call a row, never one a token of the vocabulary.
struct AnyFollower : Interface {
  virtual void push(Token token) = 0;
  virtual void cut(std::size_t outputs) = 0;
  virtual void copy(AnyFollower const& other) = 0;                          ///< of the same processor
  virtual void copy_at(AnyFollower const& other, std::size_t outputs) = 0;  ///< only the state after so many tokens
  virtual void copy_last(AnyFollower const& other) = 0;                     ///< only its last state
  /// One at the first state. `spare`, of any processor, or null: its memory is used again, if it is of this type.
  virtual std::unique_ptr<AnyFollower> another(std::unique_ptr<AnyFollower> spare = nullptr) const = 0;
  virtual void clear() = 0;  ///< frees what the states hold, not their memory
  // What the processor says after the last token.
  virtual void edit(Output const& output, std::vector<Edit>& edits) const = 0;
  virtual std::int32_t stop(Output const& output) const = 0;
  virtual std::shared_ptr<TokenSet const> may_follow(std::int32_t left) const = 0;
  virtual void require_possible(Output const& output, std::int32_t left) const = 0;
  virtual BiasSum bias(BiasPlace const& place, std::vector<Edit>& edits) const = 0;
  virtual void process(Output const& output, std::span<float> scores) const = 0;
};

struct AnyProcessor;
using ProcessorPointers = Buffer<std::shared_ptr<AnyProcessor const>>;

/// A search under processors. It can be used again for other sentences.
struct AnyProcessed : AnySearch {
  /// Before take(). Refers to both for as long as the sentence runs.
  virtual void use(AnySearch& search, ProcessorPointers const& processors) = 0;
  virtual void clear() = 0;  ///< after a sentence: frees what states of processors hold, not its memory
};

SLUICE_LAZY std::unique_ptr<AnyProcessed> make_processed();

/// A processor without its type.
struct AnyProcessor : Interface {
  virtual void check() const = 0;
  virtual bool raises() const = 0;  ///< whether edits may raise scores
  virtual bool adds() const = 0;    ///< whether it adds to scores
  /// At the state before the first output token. `spare` as of AnyFollower::another.
  virtual std::unique_ptr<AnyFollower> follow(Sentence const& sentence, std::unique_ptr<AnyFollower> spare) const = 0;
  /// What puts processors around a search. Here, so that only a program with processors has the code.
  virtual std::unique_ptr<AnyProcessed> processed() const = 0;
  bool ends = false, restricts = false, biases = false, processes = false;
  std::string_view name = "one of yours";  ///< of its type, for messages
};

/// Whether that holds of one of them.
SLUICE_LAZY bool any_of(ProcessorPointers const& list, bool AnyProcessor::*fact) {
  for (auto const& one : list)
    if ((*one).*fact) return true;
  return false;
}

template <LogitsProcessor R>
struct FollowerOf final : AnyFollower {
  using State = typename R::State;
  /// \param spare  its memory is used, if it is of this type
  static std::unique_ptr<AnyFollower> begun(R const& rule, State first, std::unique_ptr<AnyFollower> spare) {
    auto* one = dynamic_cast<FollowerOf*>(spare.get());
    if (one == nullptr) spare = std::make_unique<FollowerOf>(), one = static_cast<FollowerOf*>(spare.get());
    one->rule = &rule, one->after.clear();
    one->after.push_back(std::move(first));
    return spare;
  }

  void push(Token token) override { after.push_back(rule->next(after.back(), token)); }
  void cut(std::size_t outputs) override {
    if (outputs + 1 < after.size()) after.erase(after.begin() + static_cast<std::ptrdiff_t>(outputs) + 1, after.end());
  }
  void copy(AnyFollower const& other) override { after = static_cast<FollowerOf const&>(other).after; }
  void copy_at(AnyFollower const& other, std::size_t outputs) override {
    State const state = static_cast<FollowerOf const&>(other).after[outputs];
    after.assign(1, state);
  }
  void copy_last(AnyFollower const& other) override {
    after.assign(1, static_cast<FollowerOf const&>(other).after.back());
  }
  std::unique_ptr<AnyFollower> another(std::unique_ptr<AnyFollower> spare) const override {
    return begun(*rule, after.front(), std::move(spare));
  }
  void clear() override { after.clear(); }

  void edit(Output const& output, std::vector<Edit>& edits) const override { rule->edit(after.back(), output, edits); }
  std::int32_t stop([[maybe_unused]] Output const& output) const override {
    if constexpr (EndingProcessor<R>) return rule->stop(after.back(), output);
    else return -1;
  }
  std::shared_ptr<TokenSet const> may_follow([[maybe_unused]] std::int32_t left) const override {
    if constexpr (RestrictingProcessor<R>) return rule->may_follow(after.back(), left);
    else return nullptr;
  }
  void require_possible([[maybe_unused]] Output const& output, [[maybe_unused]] std::int32_t left) const override {
    if constexpr (RestrictingProcessor<R>) rule->require_possible(after.back(), output, left);
  }
  BiasSum bias([[maybe_unused]] BiasPlace const& place, [[maybe_unused]] std::vector<Edit>& edits) const override {
    if constexpr (BiasingProcessor<R>) return rule->bias(after.back(), place, edits);
    else return {};
  }
  void process([[maybe_unused]] Output const& output, [[maybe_unused]] std::span<float> scores) const override {
    if constexpr (ScoringProcessor<R>) rule->process(after.back(), output, scores);
  }

  R const* rule = nullptr;
  std::vector<State> after{};  // [n]: after n output tokens
};

template <LogitsProcessor R>
struct ProcessorOf final : AnyProcessor {
  explicit ProcessorOf(R one) : rule(std::move(one)) {
    static_assert(processor_names<R>());
    ends = EndingProcessor<R>, restricts = RestrictingProcessor<R>, biases = BiasingProcessor<R>;
    processes = ScoringProcessor<R>;
    if constexpr (requires { R::name; }) name = R::name;
  }
  void check() const override { check_processor(rule); }
  bool raises() const override {
    if constexpr (RaisingProcessor<R>) return rule.raising();
    else return ScoringProcessor<R>;
  }
  bool adds() const override {
    if constexpr (BiasingProcessor<R>) return !rule.trivial();
    else return false;
  }
  std::unique_ptr<AnyFollower> follow(Sentence const& sentence, std::unique_ptr<AnyFollower> spare) const override {
    return FollowerOf<R>::begun(rule, rule.initial(sentence), std::move(spare));
  }
  std::unique_ptr<AnyProcessed> processed() const override { return make_processed<>(); }
  R rule;
};

}  // namespace sluice::inline v0::detail
