// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structured decoding: outputs that match a grammar, for any search.
#pragma once

#include <sluice/language.hpp>

#include <sluice/core/error.hpp>
#include <sluice/core/query.hpp>
#include <sluice/core/search.hpp>
#include <sluice/core/types.hpp>
#include <sluice/grammar/detail/fewest_tokens.hpp>
#include <sluice/grammar/detail/token_masks.hpp>
#include <sluice/grammar/grammar.hpp>
#include <sluice/grammar/token_trie.hpp>
#include <sluice/search/rule/ruled.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::inline v0 {

/// Which tokens may spell text that is certain (for example a member's name, where a schema allows only one).
enum class CertainText : std::uint8_t {
  any,      ///< any tokens that spell it: the model chooses
  longest,  ///< always the longest token, as long as no token extends beyond the certain text: so its tokens are
            ///< certain too
};

/// Options of a Structure.
struct StructureOptions {
  /// Approximate memory for the grammar states reached by outputs, in bytes. When half of it is used, new sentences
  /// start with fresh memory while others continue in the old; a sentence that alone needs more ends with an error.
  std::size_t memory = std::size_t{64} << 20;
  std::int32_t masks = 1024;  ///< number of token masks to keep, of V / 8 bytes each, of each of two kinds; >= 1
  /// How many stacks, of calls that have not returned, one place of the grammar may have at once. An unambiguous grammar
  /// has few; of an ambiguous one each step takes time by their square. A sentence that needs more ends with an error; >= 1
  std::int32_t ambiguity = 20'000;
  CertainText certain = CertainText::any;
  /// Precomputes masks that otherwise take up to some milliseconds when an output first reaches a place where almost any
  /// token is allowed. Not for grammars with large counts: the last places of a count each need a mask
  /// of their own.
  bool eager = false;
};

/// Outputs match a grammar: a Rule for any search, `Structured<S>`. Tokens that would violate it, or after which it
/// could not be completed within the search's maximum length, are forbidden. eos is allowed only where the text is
/// complete, so no output ends incomplete, not even at the maximum length. A request that cannot be completed from the
/// start is refused, and so is a forced prefix that violates the grammar. The text is that of the output's tokens,
/// prefix included; control tokens other than eos are not allowed in it.
///
/// The number of tokens that an output still needs is exact for small vocabularies. For large ones it is the number for
/// the shortest text, so an output may be steered to its end sooner than necessary, but never too late. See
/// docs/structure.md.
///
/// States and their masks are cached for all sentences, in all copies and threads. Threads wait for each other only
/// while a new state is added, not while a mask is made.
class Structure {
 public:
  /// A value of a few words. Equal states have the same continuations.
  struct State {
    std::shared_ptr<detail::TokenMasks> masks;
    detail::TokenMasks::State state = 0;
    friend bool operator==(State const&, State const&) = default;
  };

  /// Allows everything.
  Structure() = default;
  /// \param tokens  of the vocabulary with which the search will run; shared by all grammars of a model
  /// \throws std::invalid_argument  for invalid options, or if there are no tokens
  /// \throws std::length_error  if `options.eager` takes more than `options.memory`
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved; the linter misses it in a template
  template <class = void>
  Structure(Grammar grammar, TokenTrie tokens, StructureOptions const& options = {}) {
    require(options.masks >= 1, "options.masks", options.masks, "must be at least 1");
    require(options.ambiguity >= 1, "options.ambiguity", options.ambiguity, "must be at least 1");
    if (grammar.trivial()) return;
    require(!tokens.empty(), "tokens", "none", "a grammar needs the tokens' bytes: TokenTrie(bytes, vocabulary)");
    data_ = std::make_shared<Data>(std::move(grammar), std::move(tokens), options);
    if (options.eager) {
      data_->masks = data_->make();
      data_->masks->prepare();
    }
  }

  /// \throws std::invalid_argument  if the tokens belong to another vocabulary
  template <class = void>
  State initial(Sentence const& sentence) const {
    if (data_ == nullptr) return {};
    auto const &own = data_->trie.vocabulary(), &other = *sentence.vocabulary;
    require(own.size == other.size, "vocabulary.size", other.size,
            "the grammar's tokens are of a vocabulary of " + std::to_string(own.size));
    require(own.eos == other.eos, "vocabulary.eos", other.eos.empty() ? Token{-1} : other.eos[0],
            "the grammar's tokens are of a vocabulary with another end");
    require(own.never == other.never, "vocabulary.never", std::to_string(other.never.size()) + " tokens",
            "the grammar's tokens are of a vocabulary with others");
    return start();
  }
  /// The state before the first token, for the vocabulary of the tokens.
  template <class = void>
  State start() const {
    if (data_ == nullptr) return {};
    auto const lock = std::scoped_lock(data_->mutex);
    auto& masks = data_->masks;
    if (masks == nullptr || masks->bytes() > data_->options.memory / 2) masks = data_->make();
    return {masks, masks->initial()};
  }
  template <class = void>
  State next(State const& state, Token token) const {
    if (data_ == nullptr || state.masks == nullptr) return state;
    if (state.state == dead || state.state == ended) return {state.masks, dead};
    auto& machine = state.masks->machine();
    if (data_->trie.vocabulary().ends(token)) return {state.masks, machine.complete(state.state) ? ended : dead};
    auto const text = data_->trie.bytes(token);
    return {state.masks, text.empty() ? dead : machine.next(state.state, text)};
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}

  /// The tokens that may follow; null: all. Valid as long as the pointer is held.
  /// \param left  how many tokens may follow, the end included
  template <class = void>
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const {
    if (data_ == nullptr || state.masks == nullptr || state.state == dead) return nullptr;
    return state.masks->allowed(state.state, left);
  }

  /// Whether the output matches so far.
  bool alive(State const& state) const { return state.masks == nullptr || state.state != dead; }
  /// Whether the output may end here, or has ended.
  template <class = void>
  bool complete(State const& state) const {
    if (state.masks == nullptr || state.state == ended) return true;
    return state.masks->machine().complete(state.state);
  }

  /// \throws std::invalid_argument  if no output can begin with this: for a prefix that violates the grammar, a maximum
  ///     length within which nothing can be completed, or tokens that cannot spell what the grammar requires
  template <class = void>
  void require_possible(State const& state, Output const& output, std::int32_t left) const {
    if (data_ == nullptr || state.masks == nullptr) return;
    auto const prefix = std::to_string(output.prefix) + " tokens";
    require(state.state != dead && state.state != ended, "prefix", prefix, "breaks the grammar, or ends");
    state.masks->with_completion([&](detail::Completion& completion) {
      require(completion.fits(state.state, detail::Completion::never - 1), "grammar", prefix + " of prefix",
              "no token, or sequence of tokens, of the vocabulary spells what the grammar wants next");
      require(left >= 1 && completion.fits(state.state, left - 1), "length.max",
              static_cast<std::int64_t>(output.prefix) + left,
              "the grammar needs " + std::to_string(completion.fewest(state.state)) +
                  " tokens more, and the end, after a prefix of " + prefix);
    });
  }

  /// The number of places of the grammar, and of states reached so far.
  template <class = void>
  std::pair<std::int32_t, std::int32_t> sizes() const {
    if (data_ == nullptr) return {0, 0};
    auto const lock = std::scoped_lock(data_->mutex);
    return {data_->grammar.automaton()->nodes(), data_->masks == nullptr ? 0 : data_->masks->machine().states()};
  }

 private:
  static constexpr auto dead = detail::Pushdown::dead;
  static constexpr auto ended = detail::TokenMasks::ended;

  struct Data {
    template <class = void>
    Data(Grammar its_grammar, TokenTrie its_trie, StructureOptions const& its_options)
        : grammar(std::move(its_grammar)),
          trie(std::move(its_trie)),
          options(its_options),
          counts(*grammar.automaton(), trie) {}
    template <class = void>
    std::shared_ptr<detail::TokenMasks> make() {
      return std::make_shared<detail::TokenMasks>(
          *grammar.automaton(), counts, trie, options.memory, static_cast<std::size_t>(options.ambiguity),
          static_cast<std::size_t>(options.masks), options.certain == CertainText::longest);
    }
    Grammar grammar;
    TokenTrie trie;
    StructureOptions options;
    detail::SharedCounts counts;
    std::mutex mutex;                           // guards what is below
    std::shared_ptr<detail::TokenMasks> masks;  // for new sentences
  };
  std::shared_ptr<Data> data_;
};

/// Any search, with all outputs matching a grammar.
template <Search S>
using Structured = Ruled<S, Structure>;

}  // namespace sluice::inline v0
