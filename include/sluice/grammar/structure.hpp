// SPDX-License-Identifier: Apache-2.0
/// \file
/// Outputs that obey a grammar, under any search.
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

/// Which tokens may spell text that is certain (the name of a member, say, where a schema allows one).
enum class CertainText : std::uint8_t {
  any,      ///< any that do: the model's choice
  longest,  ///< the longest, one after the other, as far as no token reaches beyond it: so its tokens are certain too
};

struct StructureOptions {
  /// Bytes for the states of a grammar that outputs have come to, about. Where half of it is used, new sentences begin anew
  /// beside those that run; a sentence that alone needs more ends with an error.
  std::size_t memory = std::size_t{64} << 20;
  std::int32_t masks = 1024;  ///< sets of tokens that are kept, of V / 8 bytes each, of two kinds; >= 1
  CertainText certain = CertainText::any;
  /// Works out at once what else takes some milliseconds when outputs first come to a string, or another place where almost
  /// any token may stand. Not for grammars that count far: each of the last places of a count is such a place.
  bool eager = false;
};

/// Outputs obey a grammar: a Rule for any search, `Structured<S>`. Tokens that would break it, or after which it could not be
/// completed within the search's maximum length, are forbidden, and the end is allowed where the text is complete: nothing
/// incomplete ends, at the maximum length neither. What cannot be completed from the start is refused, and so is a
/// forced prefix that breaks the grammar. The text is that of the output's tokens, prefix included; control tokens other
/// than the end are not allowed in it.
///
/// How many tokens an output still needs is exact for small vocabularies; for large ones it is what the shortest text
/// takes, so that an output is turned to its end sooner than it must be, never too late. See docs/structure.md.
///
/// States that outputs come to, and their sets of tokens, are kept for all sentences of all copies, in all threads.
template <class = void>
class LazyStructure {
 public:
  /// A value of a few words; equal: the same may follow.
  struct State {
    std::shared_ptr<detail::TokenMasks> masks;
    detail::TokenMasks::State state = 0;
    friend bool operator==(State const&, State const&) = default;
  };

  /// Anything goes.
  LazyStructure() = default;
  /// \param tokens  of the vocabulary with which the search will run; shared by all grammars of a model
  /// \throws std::invalid_argument  for options that make no sense, or tokens of which there are none
  /// \throws std::length_error  if `options.eager` takes more than `options.memory`
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, where the linter does not see it in a template
  LazyStructure(Grammar grammar, TokenTrie tokens, StructureOptions const& options = {}) {
    require(options.masks >= 1, "options.masks", options.masks, "must be at least 1");
    if (grammar.trivial()) return;
    require(!tokens.empty(), "tokens", "none", "a grammar needs the tokens' bytes: TokenTrie(bytes, vocabulary)");
    data_ = std::make_shared<Data>(std::move(grammar), std::move(tokens), options);
    if (options.eager) data_->make()->prepare(*data_->grammar.automaton());
  }

  /// \throws std::invalid_argument  for another vocabulary than the tokens are of
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
  /// Before the first token, of the vocabulary that the tokens are of.
  State start() const {
    if (data_ == nullptr) return {};
    auto const lock = std::scoped_lock(data_->mutex);
    auto& masks = data_->masks;
    if (masks == nullptr || masks->bytes() > data_->options.memory / 2) masks = data_->make();
    return {masks, masks->initial()};
  }
  State next(State const& state, Token token) const {
    if (data_ == nullptr || state.masks == nullptr) return state;
    if (state.state == dead || state.state == ended) return {state.masks, dead};
    auto const lock = std::scoped_lock(data_->mutex);
    auto& machine = state.masks->machine();
    if (data_->trie.vocabulary().ends(token)) return {state.masks, machine.complete(state.state) ? ended : dead};
    auto const text = data_->trie.bytes(token);
    return {state.masks, text.empty() ? dead : machine.next(state.state, text)};
  }
  void edit(State const&, Output const&, std::vector<Edit>&) const {}

  /// The tokens that may follow; null: all. Valid as long as it is held.
  /// \param left  how many may, the end included
  std::shared_ptr<TokenSet const> may_follow(State const& state, std::int32_t left) const {
    if (data_ == nullptr || state.masks == nullptr || state.state == dead) return nullptr;
    auto const lock = std::scoped_lock(data_->mutex);
    return state.masks->allowed(state.state, left);
  }

  /// Whether the output obeys so far.
  bool alive(State const& state) const { return state.masks == nullptr || state.state != dead; }
  /// Whether it may end here, or has.
  bool complete(State const& state) const {
    if (state.masks == nullptr || state.state == ended) return true;
    auto const lock = std::scoped_lock(data_->mutex);
    return state.masks->machine().complete(state.state);
  }

  /// \throws std::invalid_argument  if no output can begin so: for a prefix that breaks the grammar, a maximum length within
  ///   which nothing can be completed, tokens that cannot spell what the grammar wants
  void require_possible(State const& state, Output const& output, std::int32_t left) const {
    if (data_ == nullptr || state.masks == nullptr) return;
    auto const prefix = std::to_string(output.prefix) + " tokens";
    require(state.state != dead && state.state != ended, "prefix", prefix, "breaks the grammar, or ends");
    auto const lock = std::scoped_lock(data_->mutex);
    auto& completion = state.masks->completion();
    require(completion.fits(state.state, detail::Completion::never - 1), "grammar", prefix + " of prefix",
            "no token, or sequence of tokens, of the vocabulary spells what the grammar wants next");
    require(left >= 1 && completion.fits(state.state, left - 1), "length.max",
            static_cast<std::int64_t>(output.prefix) + left,
            "the grammar needs " + std::to_string(completion.fewest(state.state)) +
                " tokens more, and the end, behind a prefix of " + prefix);
  }

  /// The grammar's nodes, and states come to so far.
  std::pair<std::int32_t, std::int32_t> sizes() const {
    if (data_ == nullptr) return {0, 0};
    auto const lock = std::scoped_lock(data_->mutex);
    return {data_->grammar.automaton()->nodes(), data_->masks == nullptr ? 0 : data_->masks->machine().states()};
  }

 private:
  static constexpr auto dead = detail::Pushdown::dead;
  static constexpr auto ended = detail::TokenMasks::ended;

  struct Data {
    Data(Grammar its_grammar, TokenTrie its_trie, StructureOptions const& its_options)
        : grammar(std::move(its_grammar)),
          trie(std::move(its_trie)),
          options(its_options),
          fewest(*grammar.automaton(), trie),
          nodes(*grammar.automaton()) {}
    std::shared_ptr<detail::TokenMasks> make() {
      return std::make_shared<detail::TokenMasks>(*grammar.automaton(), fewest, trie, nodes, options.memory,
                                                  static_cast<std::size_t>(options.masks),
                                                  options.certain == CertainText::longest);
    }
    Grammar grammar;
    TokenTrie trie;
    StructureOptions options;
    detail::FewestTokens fewest;
    detail::NodeTokenTable nodes;
    std::mutex mutex;                           // of all that follows, and of all masks
    std::shared_ptr<detail::TokenMasks> masks;  // with which sentences begin
  };
  std::shared_ptr<Data> data_;
};
using Structure = LazyStructure<>;

/// Any search, all of whose outputs obey a grammar.
template <Search S>
using Structured = Ruled<S, Structure>;

}  // namespace sluice::inline v0
