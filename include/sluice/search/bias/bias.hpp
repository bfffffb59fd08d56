// SPDX-License-Identifier: Apache-2.0
/// \file
/// Phrase boosting (hotwords, contextual biasing) for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/bias/context_graph.hpp>
#include <sluice/search/rule/rule.hpp>
#include <sluice/search/rule/ruled.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Outputs that contain phrases of a ContextGraph score more: a Rule for any search, `Biased<S>`. What was given for a
/// beginning that does not go on is taken back, by the end of the output too, and at the maximum length.
///
/// Where edits act after the softmax (beams, Greedy), the log-probability of an output is that of the model plus the
/// boosts of the phrases that occur in it, whatever the search. Where they act before it (sampling), every step is a
/// distribution of its own, and only ratios within a step change. A search that is interrupted tells unfinished outputs
/// with what their beginnings were given.
///
/// A phrase may begin in a forced prefix, but not in the prompt. Unlike other rules it changes probes too: constraints
/// are met at the same score. ExactSearch proves its result: all outputs begin at the most that they might still be given,
/// which is taken back token by token; log-probabilities of tokens then hold that, and are rounded like it.
/// BestFirstBeam does not compile with it, and EarlyStopping::Rule::exact is refused unless there are no phrases.
///
/// Costs one edit for every token that continues a phrase, and one addition of a vector for those that begin one (an edit for each of
/// them where an expander does not take Query::shared). Copies are cheap.
class Bias {
 public:
  /// What an output ends in, and with ContextOptions::once the phrases that it has been paid.
  struct State {
    struct Paid {
      std::int32_t phrase;
      std::shared_ptr<Paid const> before;
    };
    ContextGraph::State place = ContextGraph::root;
    std::shared_ptr<Paid const> paid{};
    bool has(std::int32_t phrase) const {
      for (auto const* one = paid.get(); one != nullptr; one = one->before.get())
        if (one->phrase == phrase) return true;
      return false;
    }
  };

  /// Changes nothing.
  Bias() = default;
  explicit Bias(std::shared_ptr<ContextGraph const> graph) : graph_(std::move(graph)) {}
  template <class = void>
  explicit Bias(ContextGraph graph) : graph_(std::make_shared<ContextGraph const>(std::move(graph))) {}

  std::shared_ptr<ContextGraph const> const& graph() const { return graph_; }
  bool trivial() const { return graph_ == nullptr || graph_->empty(); }

  /// \throws std::invalid_argument  as ContextGraph::check()
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (!trivial()) graph_->check(*sentence.vocabulary);
    return {};
  }
  State next(State state, Token token) const {
    if (!trivial()) arrive(state, graph_->arrive(state.place, token));
    return state;
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}
  /// What the step adds: appends it for the tokens that continue a phrase, and returns what it adds to every token.
  template <class = void>
  BiasSum bias(State const& state, BiasPlace const& place, std::vector<Edit>& edits) const {
    if (trivial()) return {};
    // What an output may still be given, if the search bears no other rise, before this token and after it.
    auto const most = place.falling ? graph_->most_per_token() : 0.0f;
    auto const before = most * static_cast<float>(place.falling ? place.left : 0);
    auto const after = place.last || place.over ? 0.0f : before - most;
    auto const back = place.first ? 0.0f : -lent(state) - before;
    if (place.over) return {.all = back};
    SortedEdits sorted;
    SharedEdits const* shared = nullptr;
    auto const fixed = state.paid == nullptr && !graph_->options().once;
    if (fixed && place.shares) {
      shared = &graph_->shared_edits(place.last);
      graph_->edit_further(state.place, edits, place.last);
    } else if (fixed) {
      sorted = graph_->edit(state.place, edits, place.last);
    } else {
      sorted = graph_->edit(state.place, edits, [&](ContextGraph::State arrived) {
        auto then = state;
        auto const paid = arrive(then, arrived);
        return paid + (place.last ? 0.0f : lent(then));
      });
    }
    if (after != 0)
      for (auto const eos : place.vocabulary.eos) edits.push_back({eos, -after});
    return {back + after, sorted, shared};
  }
  /// What an output has been given for the beginning that it ends in.
  float lent(State const& state) const {
    if (trivial() || (graph_->options().once && state.has(graph_->owner(state.place)))) return 0;
    return graph_->credit(state.place);
  }
  /// What a token is paid for what it completes. With the difference of lent(), this is what a step adds.
  template <class = void>
  float paid(State state, Token token) const {
    return trivial() ? 0 : arrive(state, graph_->arrive(state.place, token));
  }

 private:
  /// Goes to a state; returns what is paid for it.
  template <class = void>
  float arrive(State& state, ContextGraph::State arrived) const {
    state.place = graph_->settle(arrived);
    if (!graph_->options().once) return graph_->paid(arrived);
    auto sum = 0.0f;
    graph_->for_each_completed(arrived, [&](ContextGraph::Completed const& one) {
      if (state.has(one.phrase)) return;
      sum += one.boost;
      state.paid = std::make_shared<State::Paid const>(State::Paid{one.phrase, state.paid});
    });
    return sum;
  }

  std::shared_ptr<ContextGraph const> graph_;
};

/// Any search with boosted phrases.
template <Search S>
using Biased = Ruled<S, Bias>;

}  // namespace sluice::inline v0
