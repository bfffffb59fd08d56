// SPDX-License-Identifier: Apache-2.0
/// \file
/// Potentials: what an output is worth besides its probability.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/search/rule/rule.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

// clang-format off
/// A factor of the distribution over outputs: p(y) times exp(log_final) is sampled, divided by the sum over all outputs. `State` is a
/// small value that follows an output token by token, as a ConstraintAutomaton's does.
///
///  - `initial(sentence)`: the state before the first token of the output; throws std::invalid_argument for what is invalid for this
///    sentence;
///  - `next(state, token)`: the state after `token`, which is forced or generated, eos included;
///  - `log_final(state, finished)`: the logarithm of the factor of the whole output, whose state this is. `finished`: as in Hypothesis;
///    false for an output that is cut at the maximum length. -infinity: such an output is impossible;
///  - `log_prefix(state)`: a forecast of log_final while the output goes on, which steers the search and does not change what is
///    sampled. It may be -infinity only where no continuation is possible; 0 if nothing is known.
///
/// Values are -infinity or finite. Optional:
///  - `may_follow(state, left)`: a std::shared_ptr<TokenSet const> of the tokens that may come next; all others are impossible. null: any.
///    `left`: how many tokens may still come, the end included. Only Proposal::product asks. With `static constexpr bool exact = true`,
///    each token of a set leaves the potential as it is, so it need not be asked for each of them;
///  - `require_possible(state, output, left)`: throws std::invalid_argument if no output can begin with a forced prefix;
///  - `check()`: throws std::invalid_argument for invalid options, naming the option and its value.
template <class P>
concept Potential = std::copyable<typename P::State> &&
  requires(P const& potential, typename P::State const& state, Sentence const& sentence, Token token, bool finished) {
    { potential.initial(sentence) } -> std::same_as<typename P::State>;
    { potential.next(state, token) } -> std::same_as<typename P::State>;
    { potential.log_prefix(state) } -> std::convertible_to<double>;
    { potential.log_final(state, finished) } -> std::convertible_to<double>;
  };

namespace detail {

template <class P>
concept RestrictingPotential = requires(P const& potential, typename P::State const& state, std::int32_t left) {
  { potential.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
};
template <class P>
concept RequiringPotential = requires(P const& potential, typename P::State const& state, Output const& output, std::int32_t left) {
  potential.require_possible(state, output, left);
};
// clang-format on

/// Whether the tokens of a set leave the potential as it is.
template <class P>
consteval bool exact() {
  if constexpr (requires { P::exact; }) return P::exact;
  else return false;
}

/// Calls a potential's check(), if it has one.
template <Potential P>
void check_potential(P const& potential) {
  static_assert(RestrictingPotential<P> || !stray_may_follow<P>(),
                "sluice: `may_follow` of a potential must be const, take (State const&, std::int32_t) and return a "
                "std::shared_ptr<TokenSet const>");
  if constexpr (requires { potential.check(); }) potential.check();
  else static_assert(!stray_check<P>(), "sluice: check() of a potential must be const and take nothing");
}

}  // namespace detail

/// A function of the output as a potential: `function(tokens, over)` is the logarithm of the factor, for the tokens so far, forced prefix
/// and eos included. `over`: they are the whole output; else the function gives a forecast, as Potential::log_prefix. Each call of the
/// function costs a copy of the tokens; write a Potential with a State of its own where that is much.
template <class Function>
struct OutputPotential {
  Function function{};

  OutputPotential() requires std::default_initializable<Function>
  = default;
  explicit OutputPotential(Function its_function) : function(std::move(its_function)) {}

  using State = std::vector<Token>;
  State initial(Sentence const& /*sentence*/) const { return {}; }
  State next(State const& tokens, Token token) const {
    State longer;
    longer.reserve(tokens.size() + 1);
    longer.assign(tokens.begin(), tokens.end());
    longer.push_back(token);
    return longer;
  }
  double log_prefix(State const& tokens) const { return function(std::span<Token const>(tokens), false); }
  double log_final(State const& tokens, bool /*finished*/) const {
    return function(std::span<Token const>(tokens), true);
  }
};

}  // namespace sluice::inline v0
