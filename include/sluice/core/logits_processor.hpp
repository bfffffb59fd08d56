// SPDX-License-Identifier: Apache-2.0
/// \file
/// Logits processors: what may follow an output, what is added to a score, whether the output is over.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/detail/named.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

SLUICE_NAMES(stop)
SLUICE_NAMES(may_follow)
SLUICE_NAMES(bias)
SLUICE_NAMES(process)

namespace sluice::inline v0 {

/// What a rule sees of a hypothesis: its output so far.
struct Output {
  std::span<Token const> tokens;  ///< forced prefix and generated tokens
  std::size_t prefix;             ///< number of forced tokens among them
  Vocabulary const& vocabulary;
};

/// Where in its output a hypothesis is, for rules that add to scores.
struct BiasPlace {
  Vocabulary const& vocabulary;
  std::int32_t left;  ///< how many tokens may still come, the end included; Limits::unlimited: unknown
  bool first;         ///< nothing has been generated
  bool last;          ///< the output is over after the next token, whatever it is
  bool over;          ///< the output is over, and the search is about to be told
  bool
      falling;  ///< the search proves its result by log-probabilities that only fall: only those of the first token may rise
  bool shares = false;  ///< BiasSum::shared may be used
};

/// What a rule adds to a line beside its edits.
struct BiasSum {
  float all = 0;  ///< is added to the log-probability of every token; not before a softmax, which it would not change
  detail::SortedEdits sorted{};  ///< of the edits appended; only if none were there before
  /// Beside the edits appended, which are then of other tokens or in place of what it adds; only if BiasPlace::shares. It must live until
  /// the step is over.
  detail::SharedEdits const* shared = nullptr;
};

// clang-format off
/// A logits processor looks at one hypothesis and edits the scores of its next token. `State` is a small value that follows the
/// hypothesis (an automaton's state; an empty struct if the tokens are enough).
///
///  - `initial(sentence)`: the state before the first output token; throws std::invalid_argument for options that are
///    invalid for this vocabulary;
///  - `next(state, token)`: the state after `token`;
///  - `edit(state, output, edits)`: appends edits for the next token. They apply at the same stage as the search's own
///    (Query::stage). Keep them few: every edit of a line costs a look at each candidate, and many edits cost a copy of
///    the line;
///  - `check()`, optional (the compiler rejects another signature, here and for the next ones): throws
///    std::invalid_argument for invalid options, naming the option and its value;
///  - `stop(state, output)`, optional: the index of the stop that ends the output here, for Hypothesis::stop, or -1.
///    See StopSequences;
///  - `may_follow(state, left)`, optional: the set of tokens allowed next, a std::shared_ptr<TokenSet const>; null:
///    all. `left`: how many tokens may still come, the end included. Acts like Query::only, on probes too. It requires
///    `require_possible(state, output, left)`, which throws std::invalid_argument if no output can begin with a forced
///    prefix. See Structure;
///  - `bias(state, place, edits)`, optional: appends edits like `edit`, which act on probes too, and returns a BiasSum.
///    It requires `trivial()`, which returns whether it never adds anything. See Bias;
///  - `process(state, output, scores)`, optional: changes the scores [V] of the next token in place, as Hugging Face's `__call__(input_ids,
///    scores)` does: the model's scores at Stage::before_softmax, log-probabilities at Stage::after_softmax, after all edits;
///    -infinity forbids a token. It may run for several outputs at once, in threads. Only such a processor makes the output layer write whole
///    lines, so prefer the others where they can say it. Sample edits before the softmax, all others after it unless told otherwise;
///  - `raising()`, optional: whether it may raise scores after the softmax, which a search that proves its result does not bear.
///    Without it `edit` never does, and `process` may.
template <class R>
concept LogitsProcessor = std::copyable<typename R::State> &&
  requires(R const& rule, typename R::State const& state, Sentence const& sentence, Output const& output, Token token,
           std::vector<Edit>& edits) {
    { rule.initial(sentence) } -> std::same_as<typename R::State>;
    { rule.next(state, token) } -> std::same_as<typename R::State>;
    rule.edit(state, output, edits);
  };

namespace detail {

/// A processor that ends outputs.
template <class R>
concept EndingProcessor = LogitsProcessor<R> &&
  requires(R const& rule, typename R::State const& state, Output const& output) {
    { rule.stop(state, output) } -> std::same_as<std::int32_t>;
  };
/// One that restricts the next token to a set.
template <class R>
concept RestrictingProcessor = LogitsProcessor<R> &&
  requires(R const& rule, typename R::State const& state, Output const& output, std::int32_t left) {
    { rule.may_follow(state, left) } -> std::same_as<std::shared_ptr<TokenSet const>>;
    rule.require_possible(state, output, left);
  };
/// One that adds to the score of an output.
template <class R>
concept BiasingProcessor = LogitsProcessor<R> &&
  requires(R const& rule, typename R::State const& state, BiasPlace const& place, std::vector<Edit>& edits) {
    { rule.bias(state, place, edits) } -> std::same_as<BiasSum>;
    { rule.trivial() } -> std::same_as<bool>;
  };
/// One that needs the scores of all tokens.
template <class R>
concept ScoringProcessor = LogitsProcessor<R> &&
  requires(R const& rule, typename R::State const& state, Output const& output, std::span<float> scores) {
    { rule.process(state, output, scores) } -> std::same_as<void>;
  };
/// One whose edits may raise scores.
template <class R>
concept RaisingProcessor = LogitsProcessor<R> && requires(R const& rule) { rule.raising(); };
// clang-format on

/// Compile errors for members that have the name of an optional one and another signature.
template <LogitsProcessor R>
consteval bool processor_names() {
  static_assert(EndingProcessor<R> || !stray_stop<R>(),
                "sluice: `stop` of a logits processor must be const, take (State const&, Output const&) and return a "
                "std::int32_t");
  static_assert(RestrictingProcessor<R> || !stray_may_follow<R>(),
                "sluice: `may_follow` of a logits processor must be const, take (State const&, std::int32_t) and "
                "return a std::shared_ptr<TokenSet const>; with it comes require_possible(State const&, Output "
                "const&, std::int32_t)");
  static_assert(BiasingProcessor<R> || !stray_bias<R>(),
                "sluice: `bias` of a logits processor must be const, take (State const&, BiasPlace const&, "
                "std::vector<Edit>&) and return a BiasSum; with it comes a const `bool trivial()`");
  static_assert(ScoringProcessor<R> || !stray_process<R>(),
                "sluice: `process` of a logits processor must be const, take (State const&, Output const&, "
                "std::span<float>) and return nothing");
  static_assert(
      requires(R const& rule) { rule.check(); } || !stray_check<R>(),
      "sluice: check() of a logits processor must be const and take nothing");
  return true;
}

/// Calls a processor's check(), if it has one.
template <LogitsProcessor R>
void check_processor(R const& rule) {
  static_assert(processor_names<R>());
  if constexpr (requires { rule.check(); }) rule.check();
}

}  // namespace detail

}  // namespace sluice::inline v0
